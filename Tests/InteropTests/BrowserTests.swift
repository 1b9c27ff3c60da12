import Foundation
import LocalSora
import Testing

/// A page in headless Chromium that follows the JavaScript SDK's message patterns, against the local server.
@Suite(.serialized, .enabled(if: Interop.isEnabled, Interop.reason))
struct BrowserTests {
    static func connect(
        _ peer: PeerProcess, _ server: SoraServer, channel: String, _ options: [String: Any], video: Bool = false,
        audio: Bool = false
    ) async throws {
        _ = try await peer.next("ready")
        var command: [String: Any] = [
            "do": "connect", "url": server.signalingURL, "options": ["channel_id": channel].merging(options) { $1 },
        ]
        if video { command["send_video"] = ["width": 640, "height": 360] }
        if audio { command["send_audio"] = true }
        try peer.send(command)
        _ = try await peer.next("state", within: .seconds(30)) { $0.string("state") == "connected" }
    }

    @Test func messagesBetweenBrowserAndPython() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let python = try PeerProcess(.pythonSDK, name: "python")
        let browser = try PeerProcess(.browser, name: "browser")
        let channels: [[String: Any]] = [["label": "#a", "direction": "sendrecv"]]
        try python.send([
            "do": "connect",
            "options": PythonSDKTests.messagingOptions(server, channel: "c", ["data_channels": channels]),
        ])
        _ = try await python.next("switched")
        try await Self.connect(
            browser, server, channel: "c",
            [
                "role": "sendonly", "audio": false, "video": false, "data_channel_signaling": true,
                "data_channels": channels,
            ])
        let opened = try await browser.next("data_channel") { $0.string("label") == "#a" }
        #expect(opened["ordered"] as? Bool == true)
        _ = try await browser.next("switched")
        for (sender, receiver) in [(python, browser), (browser, python)] {
            for size in [1, 5000, 262_144] {
                try sender.send(["do": "send", "label": "#a", "size": size, "seed": size])
                let sent = try await sender.next("sent")
                let received = try await receiver.next("message")
                #expect(Interop.digest(received) == Interop.digest(sent))
            }
        }
        try await python.leave()
        try browser.send(["do": "disconnect"])
        let ended = try await browser.next("ended")
        #expect(ended["channels_closed"] as? Bool == true)
        #expect(ended["ws_closed"] as? Bool == true)
        // Both sides close the WebSocket once the channels are gone (flow-js-switched-ignore-false); 1005: the page's
        // close came first.
        let code = try await browser.next("ws_close").int("code")
        #expect(code == 1000 || code == 1005)
        try browser.send(["do": "exit"])
    }

    @Test func mediaBetweenBrowserAndPython() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let python = try PeerProcess(.pythonSDK, name: "python")
        let browser = try PeerProcess(.browser, name: "browser")
        try python.send([
            "do": "connect", "send_video": Interop.videoFeed, "send_audio": true,
            "options": Interop.pythonOptions(server, channel: "m", ["role": "sendrecv", "video_codec_type": "VP8"]),
        ])
        _ = try await python.next("notify")
        try await Self.connect(
            browser, server, channel: "m", ["role": "sendrecv", "video": ["codec_type": "VP8"]], video: true,
            audio: true)
        _ = try await python.next("track") { $0.string("kind") == "video" }
        let seesPython = try await eventually(within: .seconds(30)) {
            try browser.send(["do": "media"])
            let tracks = try await browser.next("media").objects("tracks")
            return tracks.contains { ($0["frames"] as? NSNumber)?.intValue ?? 0 > 60 }
        }
        #expect(seesPython)
        let seesBrowser = try await eventually(within: .seconds(30)) {
            try python.send(["do": "media"])
            let tracks = try await python.next("media").objects("tracks")
            return tracks.contains { $0["distinct"] as? Int ?? 0 > 30 }
        }
        #expect(seesBrowser)
        try await python.leave()
        try browser.send(["do": "disconnect"])
        _ = try await browser.next("ended")
        try browser.send(["do": "exit"])
    }
}
