import Foundation
import LocalSora
import Testing

@testable import Sora

/// A connection of the SDK under test, with waiting for what its handlers report.
final class SwiftPeer: @unchecked Sendable {
    // `channel` is written once, before `connect` returns the peer to anybody, and usable from any thread
    // (api 1.3.1); all else is under `state`.
    private(set) var channel: MediaChannel!
    private struct State {
        var opened: Set<String> = []
        var isSwitched = false
        var messages: [(label: String, data: Data)] = []
        var ending: SoraCloseEvent?
        /// Signaling messages received and not taken yet, as text.
        var signaling: [String] = []
    }
    private let state = Watched(State())

    static func connect(
        _ server: SoraServer, channel: String, role: Role, _ change: (inout Configuration) -> Void
    ) async throws -> SwiftPeer {
        try await connect(url: server.signalingURL, channel: channel, role: role, change)
    }

    static func connect(
        url: String, channel: String, role: Role, _ change: (inout Configuration) -> Void
    ) async throws -> SwiftPeer {
        let peer = SwiftPeer()
        var configuration = Configuration(url: try #require(URL(string: url)), channelId: channel, role: role)
        configuration.cameraSettings = CameraSettings(isEnabled: false)
        change(&configuration)
        let handlers = configuration.mediaChannelHandlers
        handlers.onDataChannelOpened = { _, label in peer.state.change { $0.opened.insert(label) } }
        handlers.onDataChannelMessage = { _, label, data in
            if label.hasPrefix("#") { peer.state.change { $0.messages.append((label, data)) } }
        }
        handlers.onReceiveSignalingJSON = { json in
            peer.state.change { state in
                if json.contains("\"type\":\"switched\"") { state.isSwitched = true }
                state.signaling.append(json)
            }
        }
        // Beside what the caller does with them.
        handlers.onAddStream = { [added = handlers.onAddStream] in
            added?($0)
            peer.state.change { _ in }
        }
        handlers.onDisconnect = { event in peer.state.change { $0.ending = event } }
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            Sora.shared.connect(configuration: configuration) { channel, error in
                peer.channel = channel
                if let error { continuation.resume(throwing: error) } else { continuation.resume() }
            }
        }
        return peer
    }

    struct Missing: Error { var what: String }

    /// How many messages have come in on a label and were not taken.
    func waiting(_ label: String) -> Int { state.value.messages.count { $0.label == label } }

    private func wait<T>(_ what: String, within limit: Duration, _ look: (inout State) -> T?) async throws -> T {
        guard let found = await state.wait(within: limit, look) else { throw Missing(what: what) }
        return found
    }

    /// Open, and the server has switched: messages may be sent.
    func opened(_ label: String) async throws {
        try await wait("open channel \(label)", within: .seconds(15)) {
            $0.opened.contains(label) && $0.isSwitched ? () : nil
        }
        // The text of `switched` is told a moment before it takes effect.
        try await channel.waitUntilOpen(label: label)
    }

    /// The first stream of another member.
    func remoteStream() async throws -> any MediaStream {
        try await wait("remote stream", within: .seconds(20)) { _ in channel.receiverStreams.first.map { Transfer($0) }
        }
        .value
    }

    func switched() async throws {
        try await wait("switched", within: .seconds(15)) { $0.isSwitched ? () : nil }
    }

    /// The next signaling message of a type that satisfies the condition.
    func signaled(_ type: String, where condition: ([String: Any]) -> Bool) async throws -> [String: Any] {
        try await wait("signaling message \(type)", within: .seconds(20)) { state in
            for (index, text) in state.signaling.enumerated() where text.contains("\"\(type)\"") {
                guard let object = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any],
                    object["type"] as? String == type, condition(object)
                else { continue }
                state.signaling.remove(at: index)
                return object
            }
            return nil
        }
    }

    func message(_ label: String, within limit: Duration = .seconds(15)) async throws -> Data {
        try await wait("message on \(label)", within: limit) { state in
            guard let index = state.messages.firstIndex(where: { $0.label == label }) else { return nil }
            return state.messages.remove(at: index).data
        }
    }

    /// Sends as soon as messages may be sent.
    func send(_ label: String, _ data: Data) async throws {
        try await opened(label)
        if let error = channel.sendMessage(label: label, data: data) { throw error }
    }

    func ended(within limit: Duration) async throws -> SoraCloseEvent {
        try await wait("end of the connection", within: limit) { $0.ending }
    }

    func leave() async throws {
        channel.disconnect(error: nil)
        _ = try await ended(within: .seconds(10))
    }

    static func bytes(_ count: Int) -> Data {
        var state = UInt64(count) &+ 99
        return Data(
            (0..<count).map { _ in
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return UInt8(truncatingIfNeeded: state >> 33)
            })
    }

    static func sha256(_ data: Data) -> String {
        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: file) }
        try? data.write(to: file)
        return ((try? Tool.command("sha256sum", [file.path]).output) ?? "").split(separator: " ").first.map(String.init)
            ?? ""
    }
}

/// The `sora` program and others, run to their end.
enum Tool {
    struct Outcome: Sendable {
        var status: Int32
        var output: String
        var errors: String
        var objects: [[String: Any]] {
            output.split(separator: "\n").compactMap {
                try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
            }
        }
        var object: [String: Any]? { try? JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any] }
    }

    static var sora: URL {
        URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
            .appending(path: "sora")
    }

    static func run(_ words: [String]) throws -> Outcome { try launch(sora, words) }
    static func command(_ name: String, _ words: [String]) throws -> Outcome {
        try launch(URL(fileURLWithPath: "/usr/bin/env"), [name] + words)
    }

    private static func launch(_ program: URL, _ words: [String]) throws -> Outcome {
        let process = Process()
        process.executableURL = program
        process.arguments = words
        let output = Pipe()
        let errors = Pipe()
        process.standardOutput = output
        process.standardError = errors
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let killer = DispatchWorkItem { kill(process.processIdentifier, SIGKILL) }
        DispatchQueue.global().asyncAfter(deadline: .now() + 60, execute: killer)
        let out = output.fileHandleForReading.readDataToEndOfFile()
        let err = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        killer.cancel()
        return Outcome(
            status: process.terminationStatus, output: String(decoding: out, as: UTF8.self),
            errors: String(decoding: err, as: UTF8.self))
    }

    /// `sora serve`, and its URL once it serves.
    static func startServer(host: String) throws -> (Process, () async -> String?) {
        let process = Process()
        process.executableURL = sora
        process.arguments = ["serve", "--host", host, "--port", "0", "--json"]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let handle = output.fileHandleForReading
        return (
            process,
            {
                let line = String(decoding: handle.availableData, as: UTF8.self).split(separator: "\n").first ?? ""
                let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
                return object?["url"] as? String
            }
        )
    }
}
