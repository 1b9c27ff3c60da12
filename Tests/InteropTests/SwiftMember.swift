import Foundation
import LocalSora
import SoraLocking
import TestSupport
import Testing

import struct SoraFrames.AudioFrame
import struct SoraFrames.TestTone

@testable import Sora

/// A member on this package's SDK.
final class SwiftMember: ChannelMember {
    let connectionID: String
    let greeting: String
    private let peer: SwiftPeer
    private let receiver: Receiver
    private let source: CountedSource?
    private let voice: Voice?

    /// What comes in, by stream.
    private final class Receiver: Sendable {
        private struct State {
            var screens: [String: CountedScreen] = [:]
            var sinks: [String: AnyObject] = [:]
            var loud: [String: Int] = [:]
        }
        private let state = Locked(State())

        func add(_ stream: any MediaStream) {
            let id = stream.streamId
            let screen = CountedScreen()
            let sink = stream.addVideoSink { screen.show($0) }
            state.withLockUnchecked {
                $0.screens[id] = screen
                $0.sinks[id] = sink
            }
            stream.addAudioTrackSink(Ear { [weak self] in self?.state.withLock { $0.loud[id, default: 0] += 1 } })
        }

        func remove(_ stream: any MediaStream) {
            let id = stream.streamId
            state.withLock {
                $0.screens[id] = nil
                $0.sinks[id] = nil
                $0.loud[id] = nil
            }
        }

        var screens: [String: CountedScreen] { state.withLock { $0.screens } }
        var audible: Int { state.withLock { $0.loud.values.count { $0 > 25 } } }
    }

    private final class Ear: RTCAudioTrackSink {
        private let isLoud: @Sendable () -> Void
        init(_ isLoud: @escaping @Sendable () -> Void) { self.isLoud = isLoud }
        func onData(
            _ audioData: Data, bitsPerSample: Int, sampleRate: Int, numberOfChannels: Int, numberOfFrames: Int
        ) {
            let peak = audioData.withUnsafeBytes { bytes in
                stride(from: 0, to: bytes.count - 1, by: 16).map {
                    abs(Int(bytes.loadUnaligned(fromByteOffset: $0, as: Int16.self)))
                }.max() ?? 0
            }
            if peak > 500 { isLoud() }
        }
    }

    private init(
        _ peer: SwiftPeer, _ receiver: Receiver, _ source: CountedSource?, _ voice: Voice?, id: String,
        greeting: String
    ) {
        self.peer = peer
        self.receiver = receiver
        self.source = source
        self.voice = voice
        connectionID = id
        self.greeting = greeting
    }

    deinit { stop() }

    private func stop() {
        source?.stop()
        voice?.stop()
    }

    static func join(_ server: SoraServer, _ joining: Joining) async throws -> SwiftMember {
        let receiver = Receiver()
        let role: Role =
            switch joining.role {
            case "sendonly": .sendonly
            case "recvonly": .recvonly
            default: .sendrecv
            }
        let peer = try await SwiftPeer.connect(
            url: joining.url ?? server.signalingURL, channel: joining.channel, role: role
        ) { configuration in
            joining.fill(&configuration)
            let own = configuration.publisherStreamId
            configuration.mediaChannelHandlers.onAddStream = { if $0.streamId != own { receiver.add($0) } }
            configuration.mediaChannelHandlers.onRemoveStream = { receiver.remove($0) }
        }
        let id = try #require(peer.channel.connectionId)
        let greeting = try await peer.signaled("notify") {
            $0["event_type"] as? String == "connection.created" && $0["connection_id"] as? String == id
        }
        if joining.path != .webSocket { try await peer.switched() }
        for channel in joining.channels { try await peer.opened(channel.label) }
        var source: CountedSource?
        var voice: Voice?
        if joining.sends, joining.hasMedia, let stream = peer.channel.senderStream.map(Transfer.init) {
            if let picture = joining.picture {
                source = CountedSource(
                    width: picture.width, height: picture.height, first: picture.first, isRough: picture.isRough
                ) {
                    stream.value.send(frame: $0)
                }
            }
            if joining.sound { voice = Voice { stream.value.send(audio: $0) } }
        }
        return SwiftMember(peer, receiver, source, voice, id: id, greeting: try sortedJSON(greeting))
    }

    /// Speaks, or is silent though its microphone is on.
    func speak(_ isSpeaking: Bool) { voice?.isSpeaking = isSpeaking }

    func send(_ label: String, _ text: String) async throws { try await peer.send(label, Data(text.utf8)) }

    func message(_ label: String) async throws -> Data { try await peer.message(label) }

    func videos(reset: Bool) async throws -> [SeenVideo] {
        receiver.screens.map { stream, screen in
            let pictures = screen.pictures
            defer { if reset { screen.clear() } }
            let all = Standstill(pictures)
            return SeenVideo(
                stream: stream, frames: pictures.count + screen.unreadable, unreadable: screen.unreadable,
                senders: Set(pictures.map { Int($0.number >> 20) }).sorted(), first: Int(pictures.first?.number ?? 0),
                last: Int(pictures.last?.number ?? 0), step: all.numbers, backwards: all.backwards,
                width: pictures.last?.width ?? 0, height: pictures.last?.height ?? 0)
        }
    }

    func audibleSenders() async throws -> Int { receiver.audible }

    func call(_ method: String, _ params: String) async throws -> MemberAnswer {
        do {
            switch method {
            case AnyCall.LayerRequest.name: return try await call(AnyCall.LayerRequest.self, params)
            case AnyCall.Metadata.name: return try await call(AnyCall.Metadata.self, params)
            default: return try await call(AnyCall.Unknown.self, params)
            }
        } catch SoraError.rpcServerError(let detail) {
            return .error(detail.code)
        }
    }

    private func call<M: RPCMethodProtocol>(_ method: M.Type, _ params: String) async throws -> MemberAnswer
    where M.Params == AnyCall.JSON, M.Result == AnyCall.JSON {
        let value = try JSONDecoder().decode(AnyCall.JSON.self, from: Data(params.utf8))
        let response = try await peer.channel.rpc(method: method, params: value, timeout: 20)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        return .result(String(decoding: try encoder.encode(try #require(response).result), as: UTF8.self))
    }

    func notification(_ type: String, about id: String?) async throws -> [String: Any] {
        try await peer.signaled("notify") {
            $0["event_type"] as? String == type && (id == nil || $0["connection_id"] as? String == id)
        }
    }

    func push() async throws -> [String: Any] { try await peer.signaled("push") { _ in true } }

    func decodedFrames() async throws -> Int {
        try await peer.channel.getStatsSnapshot().entries.filter { $0.type == "inbound-rtp" }.compactMap { entry in
            if case .decimal(let number)? = entry.values["framesDecoded"] {
                NSDecimalNumber(decimal: number).intValue
            } else {
                nil
            }
        }.reduce(0, +)
    }

    func ended() async throws -> MemberEnding {
        guard case .ok(let code, let reason) = try await peer.ended(within: .seconds(20)) else {
            return MemberEnding(code: 0, reason: "error")
        }
        return MemberEnding(code: code, reason: reason)
    }

    func leave() async throws {
        stop()
        try await peer.leave()
    }
}

/// A microphone: 100 pieces of sound a second.
private final class Voice: Sendable {
    private let speaking = Locked(true)
    private let task = Locked<Task<Void, Never>?>(nil)

    var isSpeaking: Bool {
        get { speaking.withLock { $0 } }
        set { speaking.withLock { $0 = newValue } }
    }

    init(_ send: @escaping @Sendable (AudioFrame) -> Void) {
        let running = Task.detached { [weak self] in
            let tone = TestTone()
            let clock = ContinuousClock()
            let begin = clock.now
            var number = 0
            while !Task.isCancelled {
                var frame = tone.frame(from: number * 480, count: 480, timestamp: Int64(number) * 10_000_000)
                guard let isSpeaking = self?.isSpeaking else { return }
                if !isSpeaking { frame.samples = frame.samples.map { $0 / 512 } }
                send(frame)
                number += 1
                try? await clock.sleep(until: begin + .milliseconds(10 * number))
            }
        }
        task.withLock { $0 = running }
    }

    func stop() { task.withLock { $0?.cancel() } }
    deinit { stop() }
}

/// Methods of the server with any parameters and results.
private enum AnyCall {
    typealias JSON = JSONValue
    enum LayerRequest: RPCMethodProtocol {
        typealias Params = JSON
        typealias Result = JSON
        static let name = "2025.2.0/RequestSimulcastRid"
    }
    enum Metadata: RPCMethodProtocol {
        typealias Params = JSON
        typealias Result = JSON
        static let name = "2025.2.0/PutSignalingNotifyMetadata"
    }
    enum Unknown: RPCMethodProtocol {
        typealias Params = JSON
        typealias Result = JSON
        static let name = "2025.2.0/Unknown"
    }
}

extension Joining {
    fileprivate func fill(_ configuration: inout Configuration) {
        configuration.clientId = clientID
        configuration.dataChannelSignaling = path != .webSocket
        if path != .webSocket { configuration.ignoreDisconnectWebSocket = path == .dataChannels }
        configuration.audioEnabled = hasMedia
        configuration.videoEnabled = hasMedia
        configuration.initialCameraEnabled = false
        configuration.initialMicrophoneEnabled = false
        if hasMedia {
            configuration.videoCodec =
                switch codec {
                case "VP8": .vp8
                case "VP9": .vp9
                case "H264": .h264
                default: .default
                }
            configuration.videoBitRate = bitRate
        }
        configuration.simulcastEnabled = simulcast
        configuration.simulcastRequestRid =
            switch layer {
            case "none": SimulcastRequestRid.none
            case "r0": .r0
            case "r1": .r1
            case "r2": .r2
            default: .unspecified
            }
        if let spotlight {
            func rid(_ text: String?) -> SpotlightRid {
                switch text {
                case "none": SpotlightRid.none
                case "r0": .r0
                case "r1": .r1
                case "r2": .r2
                default: .unspecified
                }
            }
            configuration.isSpotlightEnabled = true
            configuration.spotlightNumber = spotlight.number
            configuration.spotlightFocusRid = rid(spotlight.focus)
            configuration.spotlightUnfocusRid = rid(spotlight.unfocus)
        }
        if !channels.isEmpty {
            configuration.dataChannels = channels.map { channel in
                var object: [String: Any] = ["label": channel.label, "direction": "sendrecv"]
                if channel.isCompressed { object["compress"] = true }
                if channel.hasHeader { object["header"] = [["type": "sender_connection_id"]] }
                return object
            }
        }
        if let blocking {
            configuration.forwardingFilters = [
                ForwardingFilter(
                    action: .block,
                    rules: [
                        [
                            ForwardingFilterRule(field: .clientId, operator: .isIn, values: blocking.clientIDs),
                            ForwardingFilterRule(field: .kind, operator: .isIn, values: [blocking.kind]),
                        ]
                    ])
            ]
        }
    }
}
