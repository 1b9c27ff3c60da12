import Foundation
import LocalSora
import SoraLocking
import TestSupport
import Testing

@testable import Sora

/// An interface goes down and another comes up. The server lives in a network namespace of its own, behind two veth
/// pairs, so that every packet really takes the one or the other.
@Suite(.serialized, .enabled(if: Interop.isEnabled, Interop.reason))
struct NetworkChangeTests {
    private static func ip(_ words: String) throws {
        let outcome = try Tool.command("ip", words.split(separator: " ").map(String.init))
        try #require(outcome.status == 0, "ip \(words): \(outcome.errors)")
    }

    /// The two networks: 10.77.1.0/24 by `path1` and 10.77.2.0/24 by `path2`; the server is 10.77.0.1 behind both.
    private final class Site: Sendable {
        static let server = "10.77.0.1"
        let url: String
        private let namespace: Companion
        private let coturn: Coturn?
        private let server: Transfer<Process>

        /// Runs a test at a site, which is taken down in any case.
        /// - Parameter relay: `udp` or `tcp`: media goes through a TURN server beside the server, and no other way.
        static func with(relay: String? = nil, _ body: (Site) async throws -> Void) async throws {
            let site = try await Site(relay)
            do {
                try await body(site)
            } catch {
                site.close()
                throw error
            }
            site.close()
        }

        private init(_ relay: String?) async throws {
            namespace = try Companion(
                "unshare", ["-n", "sh", "-c", "echo apart; exec sleep 600"], ready: .output("apart"))
            let identifier = namespace.identifier
            func inside(_ words: String) throws {
                let command = ["-t", "\(identifier)", "-n"] + words.split(separator: " ").map(String.init)
                let outcome = try Tool.command("nsenter", command)
                try #require(outcome.status == 0, "in the server's namespace, \(words): \(outcome.errors)")
            }
            try inside("ip link set lo up")
            try inside("ip addr add \(Self.server)/32 dev lo")
            for number in [1, 2] {
                try NetworkChangeTests.ip("link add path\(number) type veth peer name peer\(number)")
                try NetworkChangeTests.ip("link set peer\(number) netns \(identifier)")
                try inside("ip addr add 10.77.\(number).2/24 dev peer\(number)")
                try inside("ip link set peer\(number) up")
                try NetworkChangeTests.ip("addr add 10.77.\(number).1/24 dev path\(number)")
            }
            try Self.up(1)
            var turn: [String] = []
            if let relay {
                coturn = try Coturn(
                    host: Self.server, port: 3478, through: ["nsenter", "-t", "\(identifier)", "-n"])
                turn = [
                    "--turn", "turn:\(Self.server):3478?transport=\(relay)", "--turn-user", "user", "--turn-password",
                    "pass", "--turn-policy", "relay",
                ]
            } else {
                coturn = nil
            }
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/nsenter")
            process.arguments =
                [
                    "-t", "\(identifier)", "-n", Tool.sora.path, "serve", "--host", Self.server, "--port", "0",
                    "--json",
                ] + turn
            let output = Pipe()
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            process.standardInput = FileHandle.nullDevice
            try process.run()
            server = Transfer(process)
            let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
            let object =
                try JSONSerialization.jsonObject(with: Data(line.split(separator: "\n")[0].utf8)) as? [String: Any]
            url = try #require(object?["url"] as? String)
        }

        static func up(_ number: Int) throws {
            try NetworkChangeTests.ip("link set path\(number) up")
            try NetworkChangeTests.ip("route add \(server)/32 via 10.77.\(number).2 dev path\(number)")
        }

        /// Takes the route along.
        static func down(_ number: Int) throws { try NetworkChangeTests.ip("link set path\(number) down") }

        private func close() {
            server.value.terminate()
            server.value.waitUntilExit()
            coturn?.end()
            for number in [1, 2] { try? NetworkChangeTests.ip("link del path\(number)") }
            namespace.end()
        }

        func connect(_ change: (inout Configuration) -> Void = { _ in }) async throws -> SwiftPeer {
            try await SwiftPeer.connect(url: url, channel: "moving", role: .sendrecv) { configuration in
                configuration.audioEnabled = false
                configuration.videoCodec = .vp8
                configuration.initialCameraEnabled = false
                configuration.dataChannelSignaling = true
                // Signaling must not hang on the TCP connection, which dies with its address.
                configuration.ignoreDisconnectWebSocket = true
                configuration.dataChannels = [["label": "#plain", "direction": "sendrecv"]]
                change(&configuration)
            }
        }
    }

    // ICE6
    @Test func messagesAndPicturesGoOnOverTheNewInterface() async throws {
        try await Site.with { site in
            let one = try await site.connect()
            let other = try await site.connect()
            try await one.opened("#plain")
            try await other.opened("#plain")
            #expect(one.channel.sendMessage(label: "#plain", data: Data("before".utf8)) == nil)
            #expect(try await other.message("#plain") == Data("before".utf8))
            let feed = try VideoFeed(one, width: 320, height: 180)
            defer { feed.stop() }
            let screen = try await VideoScreen(other)
            #expect(await screen.shows(within: .seconds(30)) { $0.numbers.count > 40 })

            try Site.down(1)
            #expect(one.channel.sendMessage(label: "#plain", data: Data("lost in between".utf8)) == nil)
            let clock = ContinuousClock()
            try Site.up(2)
            let changed = clock.now
            #expect(one.channel.sendMessage(label: "#plain", data: Data("after".utf8)) == nil)
            #expect(try await other.message("#plain") == Data("lost in between".utf8))
            #expect(try await other.message("#plain") == Data("after".utf8))
            let messages = clock.now - changed
            let resumes = await screen.shows(within: .seconds(20)) {
                $0.latest ?? changed > changed + .milliseconds(200)
            }
            let pictures = clock.now - changed
            print("interface changed: messages after \(messages), pictures after \(pictures)")
            #expect(resumes)
            #expect(messages < .seconds(3))
            #expect(pictures < .seconds(3))
            #expect(one.channel.state == .connected && other.channel.state == .connected)

            // And back again.
            try Site.down(2)
            try Site.up(1)
            let back = clock.now
            #expect(other.channel.sendMessage(label: "#plain", data: Data("back".utf8)) == nil)
            #expect(try await one.message("#plain") == Data("back".utf8))
            #expect(clock.now - back < .seconds(3))
            feed.stop()
            try await one.leave()
            try await other.leave()
        }
    }

    /// The relay is reached from the new address by an allocation of its own, and the connection lives on.
    @Test(arguments: ["udp", "tcp"]) func relaysAreReachedOverTheNewInterface(_ transport: String) async throws {
        try await Site.with(relay: transport) { site in
            let one = try await site.connect { $0.videoEnabled = false }
            let other = try await site.connect { $0.videoEnabled = false }
            try await one.opened("#plain")
            try await other.opened("#plain")
            try Site.down(1)
            #expect(one.channel.sendMessage(label: "#plain", data: Data("after".utf8)) == nil)
            try Site.up(2)
            let clock = ContinuousClock()
            let changed = clock.now
            #expect(try await other.message("#plain") == Data("after".utf8))
            let messages = clock.now - changed
            print("interface changed under a relay over \(transport): messages after \(messages)")
            #expect(messages < .seconds(3))
            #expect(one.channel.state == .connected && other.channel.state == .connected)
            try await one.leave()
            try await other.leave()
        }
    }

    /// With nothing in the place of the interface, the connection ends after the grace time, as documented.
    @Test func withoutAnotherInterfaceTheConnectionEnds() async throws {
        try await Site.with { site in
            let peer = try await site.connect { $0.videoEnabled = false }
            try await peer.opened("#plain")
            try Site.down(1)
            let clock = ContinuousClock()
            let start = clock.now
            guard case .error(let error) = try await peer.ended(within: .seconds(20)) else {
                Issue.record("ended without an error")
                return
            }
            #expect(error.localizedDescription == "PeerChannel error (peer connection state: disconnected)")
            #expect(clock.now - start < .seconds(12))
            #expect(clock.now - start > .seconds(4))
        }
    }

    /// Back within the grace time: nothing is told.
    @Test func aShortInterruptionIsSurvived() async throws {
        try await Site.with { site in
            let peer = try await site.connect { $0.videoEnabled = false }
            let other = try await site.connect { $0.videoEnabled = false }
            try await peer.opened("#plain")
            try await other.opened("#plain")
            for _ in 0..<3 {
                try Site.down(1)
                try Site.up(1)
                #expect(peer.channel.sendMessage(label: "#plain", data: Data("still here".utf8)) == nil)
                #expect(try await other.message("#plain") == Data("still here".utf8))
            }
            try await peer.leave()
            try await other.leave()
        }
    }
}
