import Foundation
import LocalSora
import Testing

/// The unmodified Python SDK (libwebrtc) against the local server.
@Suite(.serialized, .enabled(if: Interop.isEnabled, Interop.reason))
struct PythonSDKTests {
    static func messagingOptions(_ server: SoraServer, channel: String, _ more: [String: Any] = [:]) -> [String: Any] {
        Interop.pythonOptions(
            server, channel: channel,
            [
                "role": "sendrecv", "audio": false, "video": false, "data_channel_signaling": true,
                "data_channels": [
                    ["label": "#plain", "direction": "sendrecv"],
                    ["label": "#zipped", "direction": "sendrecv", "compress": true],
                ],
            ].merging(more) { $1 })
    }

    /// Sizes from one byte to the limit, both ways, compressed and not, byte for byte.
    @Test func twoClientsExchangeMessages() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let a = try PeerProcess(.pythonSDK, name: "a")
        let b = try PeerProcess(.pythonSDK, name: "b")
        for peer in [a, b] {
            try peer.send(["do": "connect", "options": Self.messagingOptions(server, channel: "messages")])
            _ = try await peer.next("switched")
            _ = try await peer.next("data_channel") { $0.string("label") == "#zipped" }
        }
        let created = try await b.next("notify") {
            $0.object("message")?["event_type"] as? String == "connection.created"
        }
        #expect(created.object("message")?["channel_connections"] as? Int == 2)
        #expect((created.object("message")?["data"] as? [Any])?.count == 1)

        for label in ["#plain", "#zipped"] {
            for (seed, size) in [1, 100, 1200, 16_384, 65_536, 200_000, 262_144].enumerated() {
                // Random bytes do not compress: leave room for zlib's own.
                let length = label == "#zipped" ? min(size, 262_000) : size
                for (sender, receiver) in [(a, b), (b, a)] {
                    try sender.send(["do": "send", "label": label, "size": length, "seed": seed])
                    let sent = try await sender.next("sent")
                    let received = try await receiver.next("message")
                    #expect(received.string("label") == label)
                    #expect(received.int("size") == length)
                    #expect(Interop.digest(received) == Interop.digest(sent))
                }
            }
        }
        try await a.leave()
        let gone = try await b.next("notify") {
            $0.object("message")?["event_type"] as? String == "connection.destroyed"
        }
        #expect(gone.object("message")?["channel_connections"] as? Int == 1)
        try await b.leave()
        let ended = b.all.first { $0.name == "disconnect" }
        #expect(ended?.string("code") == "CLOSE_SUCCEEDED")
        let closed = b.all.first { $0.name == "ws_close" }
        #expect(closed?.int("code") == 1000)
        #expect(closed?.string("reason") == "TYPE-DISCONNECT")
    }

    @Test func senderHeaderPrecedesTheMessage() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let a = try PeerProcess(.pythonSDK, name: "a")
        let b = try PeerProcess(.pythonSDK, name: "b")
        let channels: [[String: Any]] = [
            ["label": "#h", "direction": "sendrecv", "header": [["type": "sender_connection_id"]]]
        ]
        var ids: [String] = []
        for peer in [a, b] {
            try peer.send([
                "do": "connect",
                "options": Self.messagingOptions(server, channel: "header", ["data_channels": channels]),
            ])
            let offer = try await peer.next("offer")
            ids.append(offer.object("message")?["connection_id"] as? String ?? "")
            _ = try await peer.next("data_channel") { $0.string("label") == "#h" }
        }
        try a.send(["do": "send", "label": "#h", "base64": Data("hello".utf8).base64EncodedString()])
        let received = try await b.next("message")
        #expect(received.int("size") == 26 + 5)
        let data = Data(base64Encoded: received.string("base64") ?? "") ?? Data()
        #expect(String(decoding: data, as: UTF8.self) == ids[0] + "hello")
        try await a.leave()
        try await b.leave()
    }

    /// Pure data channel signaling: the WebSocket goes away after `switched`.
    @Test func goesOnWithoutTheWebSocket() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let a = try PeerProcess(.pythonSDK, name: "a")
        let b = try PeerProcess(.pythonSDK, name: "b")
        for peer in [a, b] {
            try peer.send([
                "do": "connect",
                "options": Self.messagingOptions(server, channel: "pure", ["ignore_disconnect_websocket": true]),
            ])
            _ = try await peer.next("ws_close")
            _ = try await peer.next("data_channel") { $0.string("label") == "#plain" }
        }
        try a.send(["do": "send", "label": "#plain", "size": 5000, "seed": 4])
        let sent = try await a.next("sent")
        #expect(try await Interop.digest(b.next("message")) == Interop.digest(sent))
        try await a.leave()
        #expect(a.all.first { $0.name == "disconnect" }?.string("code") == "CLOSE_SUCCEEDED")
        try await b.leave()
    }

    @Test func soundAndPictureReachTheOtherMembers() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let a = try PeerProcess(.pythonSDK, name: "a")
        let b = try PeerProcess(.pythonSDK, name: "b")
        try a.send([
            "do": "connect", "send_video": Interop.videoFeed, "send_audio": true,
            "options": Interop.pythonOptions(
                server, channel: "media", ["role": "sendonly", "video_codec_type": "VP8"]),
        ])
        let id = try await a.next("offer").object("message")?["connection_id"] as? String
        _ = try await a.next("notify")
        try b.send([
            "do": "connect", "options": Interop.pythonOptions(server, channel: "media", ["role": "recvonly"]),
        ])
        let video = try await b.next("track") { $0.string("kind") == "video" }
        #expect(video.string("stream_id") == id)
        let plays = try await eventually(within: .seconds(20)) {
            try b.send(["do": "media"])
            let tracks = try await b.next("media").objects("tracks")
            let video = tracks.first { $0["kind"] as? String == "video" }
            let audio = tracks.first { $0["kind"] as? String == "audio" }
            return video?["distinct"] as? Int ?? 0 > 60 && audio?["loud"] as? Int ?? 0 > 16_000
        }
        #expect(plays)
        // A sender that leaves takes its tracks along.
        try await a.leave()
        try await b.leave()
    }

    /// A member that vanishes is noticed and the others are told.
    @Test func killedClientIsRemoved() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let a = try PeerProcess(.pythonSDK, name: "a")
        let b = try PeerProcess(.pythonSDK, name: "b")
        for peer in [a, b] {
            try peer.send([
                "do": "connect",
                "options": Self.messagingOptions(server, channel: "killed", ["ignore_disconnect_websocket": true]),
            ])
            _ = try await peer.next("switched")
        }
        _ = try await a.next("notify") { $0.object("message")?["channel_connections"] as? Int == 2 }
        b.kill()
        let gone = try await a.next("notify", within: .seconds(30)) {
            $0.object("message")?["event_type"] as? String == "connection.destroyed"
        }
        #expect(gone.object("message")?["channel_connections"] as? Int == 1)
        try await a.leave()
    }

    @Test func refusalReachesTheApplication() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let a = try PeerProcess(.pythonSDK, name: "a")
        try a.send([
            "do": "connect",
            "options": Interop.pythonOptions(
                server, channel: "x", ["role": "recvonly", "spotlight_focus_rid": "r1"]),
        ])
        let closed = try await a.next("ws_close")
        #expect(closed.int("code") == 4490)
        #expect(closed.string("reason") == "SPOTLIGHT-FOCUS-RID-WITHOUT-SPOTLIGHT")
        #expect(try await a.next("disconnect").string("code") == "WEBSOCKET_ONCLOSE")
        try a.send(["do": "exit"])
    }

    @Test func serverSideDisconnectCarriesItsReason() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let a = try PeerProcess(.pythonSDK, name: "a")
        try a.send(["do": "connect", "options": Self.messagingOptions(server, channel: "api")])
        let offer = try await a.next("offer")
        _ = try await a.next("switched")
        _ = try await a.next("notify")
        let id = offer.object("message")?["connection_id"] as? String ?? ""
        #expect(await server.disconnect(channelID: "api", connectionID: id))
        let closed = try await a.next("ws_close")
        #expect(closed.int("code") == 1000)
        #expect(closed.string("reason") == "DISCONNECTED-API")
        #expect(try await a.next("disconnect").string("code") == "CLOSE_SUCCEEDED")
        try a.send(["do": "exit"])
    }

    @Test func redirectIsFollowed() async throws {
        let target = try await Interop.startServer()
        let first = try await Interop.startServer { $0.redirectLocation = target.signalingURL }
        defer {
            Task {
                await first.stop()
                await target.stop()
            }
        }
        let a = try PeerProcess(.pythonSDK, name: "a")
        try a.send(["do": "connect", "options": Self.messagingOptions(first, channel: "r")])
        _ = try await a.next("switched")
        #expect(first.recordedEvents.contains { $0.kind == .redirected })
        #expect(target.recordedEvents.contains { $0.kind == .connectReceived })
        try await a.leave()
    }

    @Test func rpcIsAnswered() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let a = try PeerProcess(.pythonSDK, name: "a")
        try a.send(["do": "connect", "options": Self.messagingOptions(server, channel: "rpc")])
        _ = try await a.next("data_channel") { $0.string("label") == "rpc" }
        _ = try await a.next("switched")
        try a.send([
            "do": "rpc",
            "message": [
                "jsonrpc": "2.0", "id": 7, "method": "2025.2.0/PutSignalingNotifyMetadata",
                "params": ["metadata": ["name": "a"]],
            ],
        ])
        #expect(try await a.next("rpc").string("text") == #"{"jsonrpc":"2.0","id":7,"result":{"name":"a"}}"#)
        try a.send(["do": "rpc", "message": ["jsonrpc": "2.0", "id": 8, "method": "unknown"]])
        #expect(try await a.next("rpc").string("text")?.contains("-32601") == true)
        try await a.leave()
    }
}
