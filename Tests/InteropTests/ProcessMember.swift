import Foundation
import LocalSora
import SoraLocking
import Testing

/// A member in the Python SDK, in a process of its own, or in a page of the one browser that the tests share.
final class ProcessMember: ChannelMember {
    let connectionID: String
    let greeting: String
    private let process: PeerProcess
    private let kind: PeerKind
    private let name: String
    private let path: Joining.Path
    private let nextCall = Locked(0)

    private init(
        _ kind: PeerKind, _ process: PeerProcess, _ name: String, _ connectionID: String, _ path: Joining.Path,
        greeting: String
    ) {
        self.kind = kind
        self.process = process
        self.name = name
        self.connectionID = connectionID
        self.path = path
        self.greeting = greeting
    }

    static func join(_ kind: PeerKind, _ server: SoraServer, _ joining: Joining) async throws -> ProcessMember {
        let name = "\(kind)-\(UUID().uuidString.prefix(8))"
        let process = kind == .python ? try PeerProcess(.pythonSDK, name: name) : try await Browser.shared()
        var command: [String: Any] = ["do": "connect", "peer": name]
        if joining.sends, let picture = joining.picture {
            command["send_video"] = [
                "width": picture.width, "height": picture.height, "fps": picture.fps, "first": picture.first,
                "rough": picture.isRough,
            ]
        }
        if joining.sends, joining.sound { command["send_audio"] = true }
        var options = joining.options
        switch kind {
        case .python:
            options["signaling_urls"] = [joining.url ?? server.signalingURL]
            if joining.hasMedia {
                options["audio"] = true
                options["video"] = true
                options["video_codec_type"] = joining.codec
                options["video_bit_rate"] = joining.bitRate
            }
            options["simulcast_rid"] = joining.layer
        default:
            command["url"] = joining.url ?? server.signalingURL
            if joining.hasMedia {
                var video: [String: Any] = ["codec_type": joining.codec]
                video["bit_rate"] = joining.bitRate
                options["video"] = video
            }
            options["simulcast_request_rid"] = joining.layer
        }
        command["options"] = options
        try process.send(command)
        let isOurs: @Sendable (PeerProcess.Event) -> Bool = {
            kind == .python || $0.string("peer") == name
        }
        let offer = try await process.next("offer", within: .seconds(30), where: isOurs)
        let id = try #require(offer.object("message")?["connection_id"] as? String)
        let greeting = try await process.next("notify", within: .seconds(30)) {
            let message = $0.object("message")
            return isOurs($0) && message?["event_type"] as? String == "connection.created"
                && message?["connection_id"] as? String == id
        }
        if joining.path != .webSocket { _ = try await process.next("switched", where: isOurs) }
        let member = ProcessMember(
            kind, process, name, id, joining.path, greeting: try sortedJSON(greeting.object("message") ?? [:]))
        for channel in joining.channels {
            _ = try await member.next("data_channel") { $0.string("label") == channel.label }
        }
        return member
    }

    private func next(
        _ event: String, within limit: Duration = .seconds(20),
        where condition: @escaping @Sendable (PeerProcess.Event) -> Bool = { _ in true }
    ) async throws -> PeerProcess.Event {
        let (kind, name) = (kind, name)
        return try await process.next(event, within: limit) {
            (kind == .python || $0.string("peer") == name) && condition($0)
        }
    }

    private func tell(_ command: [String: Any]) throws {
        try process.send(command.merging(["peer": name]) { $1 })
    }

    func send(_ label: String, _ text: String) async throws {
        try tell(["do": "send", "label": label, "base64": Data(text.utf8).base64EncodedString()])
        let sent = try await next("sent") { $0.string("label") == label }
        #expect(sent["ok"] as? Bool == true)
    }

    func message(_ label: String) async throws -> Data {
        let event = try await next("message") { $0.string("label") == label }
        return try #require(Data(base64Encoded: event.string("base64") ?? "-"))
    }

    private func tracks(reset: Bool) async throws -> [[String: Any]] {
        try tell(["do": "media", "reset": reset])
        return try await next("media").objects("tracks")
    }

    func videos(reset: Bool) async throws -> [SeenVideo] {
        try await tracks(reset: reset).compactMap { track in
            guard track["kind"] as? String == "video", let seen = track["seen"] as? [String: Any] else { return nil }
            func int(_ key: String) -> Int { (seen[key] as? NSNumber)?.intValue ?? 0 }
            return SeenVideo(
                stream: track["stream_id"] as? String ?? "", frames: int("frames"), unreadable: int("unreadable"),
                senders: (seen["senders"] as? [NSNumber] ?? []).map(\.intValue), first: int("first"),
                last: int("last"), step: int("step"), backwards: int("backwards"), width: int("width"),
                height: int("height"))
        }
    }

    func audibleSenders() async throws -> Int {
        try await tracks(reset: false).count {
            $0["kind"] as? String == "audio"
                && ((($0["loud"] as? NSNumber)?.intValue ?? 0) > 4000
                    || (($0["audio_energy"] as? NSNumber)?.doubleValue ?? 0) > 0.000_001)
        }
    }

    func call(_ method: String, _ params: String) async throws -> MemberAnswer {
        let id = nextCall.withLock { number in
            number += 1
            return number
        }
        let params = try JSONSerialization.jsonObject(with: Data(params.utf8))
        try tell(["do": "rpc", "message": ["jsonrpc": "2.0", "id": id, "method": method, "params": params]])
        let text = try #require(try await next("rpc").string("text"))
        let answer = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        #expect("\(answer["id"] ?? "")" == "\(id)")
        if let error = answer["error"] as? [String: Any] { return .error((error["code"] as? NSNumber)?.intValue ?? 0) }
        return .result(try sortedJSON(try #require(answer["result"])))
    }

    func notification(_ type: String, about id: String?) async throws -> [String: Any] {
        try await next("notify") {
            let message = $0.object("message")
            return message?["event_type"] as? String == type
                && (id == nil || message?["connection_id"] as? String == id)
        }.object("message") ?? [:]
    }

    func push() async throws -> [String: Any] { try await next("push").object("message") ?? [:] }

    func decodedFrames() async throws -> Int {
        try tell(["do": "stats"])
        return try await next("stats").objects("reports").filter { $0["type"] as? String == "inbound-rtp" }
            .compactMap { ($0["framesDecoded"] as? NSNumber)?.intValue }.reduce(0, +)
    }

    func ended() async throws -> MemberEnding {
        // Where the WebSocket is gone the reason comes in the `close` message; Python hands it out as its ending.
        if kind == .chromium, path == .dataChannels {
            let message = try await next("close").object("message")
            _ = try await next("channel_closed") { $0.string("label") == "signaling" }
            return MemberEnding(
                code: (message?["code"] as? NSNumber)?.intValue ?? 0, reason: message?["reason"] as? String ?? "")
        }
        if kind == .python, path == .dataChannels {
            let event = try await next("disconnect")
            return MemberEnding(
                code: event.string("code") == "CLOSE_SUCCEEDED" ? 1000 : 0, reason: event.string("message") ?? "")
        }
        let closed = try await next("ws_close")
        return MemberEnding(code: closed.int("code") ?? 0, reason: closed.string("reason") ?? "")
    }

    func leave() async throws {
        try tell(["do": "disconnect"])
        let ended = try await next("ended")
        if kind == .python {
            process.exit()
            let code = process.all.first { $0.name == "disconnect" }?.string("code")
            #expect(code == "CLOSE_SUCCEEDED")
        } else {
            #expect(ended["channels_closed"] as? Bool == true)
            #expect(ended["ws_closed"] as? Bool == true)
        }
    }
}

extension Joining {
    /// The keys of `connect` that both SDKs call alike.
    fileprivate var options: [String: Any] {
        var options: [String: Any] = ["role": role, "channel_id": channel]
        options["client_id"] = clientID
        options["data_channel_signaling"] = path != .webSocket
        if path != .webSocket { options["ignore_disconnect_websocket"] = path == .dataChannels }
        if !hasMedia {
            options["audio"] = false
            options["video"] = false
        }
        if simulcast { options["simulcast"] = true }
        if let spotlight {
            options["spotlight"] = true
            options["spotlight_number"] = spotlight.number
            options["spotlight_focus_rid"] = spotlight.focus
            options["spotlight_unfocus_rid"] = spotlight.unfocus
        }
        if !channels.isEmpty {
            options["data_channels"] = channels.map { channel in
                var object: [String: Any] = ["label": channel.label, "direction": "sendrecv"]
                if channel.isCompressed { object["compress"] = true }
                if channel.hasHeader { object["header"] = [["type": "sender_connection_id"]] }
                return object
            }
        }
        if let blocking {
            options["forwarding_filters"] = [
                [
                    "action": "block",
                    "rules": [
                        [
                            ["field": "client_id", "operator": "is_in", "values": blocking.clientIDs],
                            ["field": "kind", "operator": "is_in", "values": [blocking.kind]],
                        ]
                    ],
                ]
            ]
        }
        return options
    }
}

/// The browser that all members in Chromium share.
enum Browser {
    private static let process = Locked<PeerProcess?>(nil)

    /// Starts it when there is none, or when it has died.
    static func shared() async throws -> PeerProcess {
        if let running = process.withLock({ $0 }), running.isRunning { return running }
        let new = try PeerProcess(.browser, name: "browser")
        _ = try await new.next("ready", within: .seconds(60))
        process.withLock { $0 = new }
        return new
    }
}
