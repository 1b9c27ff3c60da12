import Foundation
import LocalSora
import SoraMessages
import Testing

/// The page says what the JavaScript SDK was recorded to say (`connect-js-*`, `flow-js-*` of the signaling
/// fixtures), and ends its connections as that does. What counts is what reaches the server.
@Suite(.serialized, .enabled(if: Interop.isEnabled, Interop.reason))
struct BrowserPatternTests {
    private static let fixtures = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Fixtures/signaling")

    private static func fixture(_ name: String) throws -> JSONValue {
        try JSONValue(parsing: Array(Data(contentsOf: fixtures.appending(path: name + ".json"))))
    }

    /// What the server of the recording got to hear of the client's joining and leaving, as ``SignalingTap`` writes
    /// it. How many candidates there are, and what was said in between, is each recording's own.
    private static func recorded(_ name: String) throws -> [String] {
        try #require(try fixture(name).arrayValue).compactMap { entry in
            let entry = try #require(entry.objectValue)
            let transport = try #require(entry["transport"]?.stringValue)
            if let message = entry["message"]?.objectValue, entry["direction"]?.stringValue == "client->server",
                let type = message["type"]?.stringValue
            {
                return ([transport, type] + [message["reason"]?.stringValue].compactMap(\.self))
                    .joined(separator: " ")
            }
            guard let code = entry["event"]?.objectValue?["websocket_ended"]?.arrayValue?.first?.intValue else {
                return nil
            }
            return "ws ended \(code)"
        }.filter(counts)
    }

    private static func counts(_ line: String) -> Bool {
        ["connect", "answer", "disconnect", "ended", "binary"].contains(line.split(separator: " ").dropFirst().first)
    }

    /// A peer in the shared browser, connected through a tap.
    private struct Page: Sendable {
        let browser: PeerProcess
        let name = "page-\(UUID().uuidString.prefix(8))"
        let tap: SignalingTap
        let server: SoraServer

        func tell(_ command: [String: Any]) throws { try browser.send(command.merging(["peer": name]) { $1 }) }

        func next(
            _ event: String, within limit: Duration = .seconds(20),
            where condition: @escaping @Sendable (PeerProcess.Event) -> Bool = { _ in true }
        ) async throws -> PeerProcess.Event {
            try await browser.next(event, within: limit) { [name] in $0.string("peer") == name && condition($0) }
        }

        func connect(_ options: [String: Any]) throws {
            try tell(["do": "connect", "url": tap.url, "options": options])
        }

        /// Connects and is announced to the channel, over its data channels if it asks for them.
        func join(_ path: Joining.Path) async throws -> String {
            var options: [String: Any] = ["channel_id": "c", "role": "sendonly"]
            if path != .webSocket {
                options["audio"] = false
                options["video"] = false
                options["data_channel_signaling"] = true
                options["ignore_disconnect_websocket"] = path == .dataChannels
            }
            try connect(options)
            let offer = try await next("offer", within: .seconds(30))
            if path != .webSocket { _ = try await next("switched", within: .seconds(30)) }
            _ = try await next("notify", within: .seconds(30))
            if path == .dataChannels { #expect(await heard(upTo: "ws ended 1005")) }
            return try #require(offer.object("message")?["connection_id"] as? String)
        }

        /// Whether this line comes.
        func heard(upTo line: String) async -> Bool {
            await tap.lines.wait(within: .seconds(20)) { $0.contains(line) ? true : nil } ?? false
        }
    }

    private func withPage(
        withholdsClose: Bool = false, _ change: (inout ServerConfiguration) -> Void = { _ in },
        _ body: (Page) async throws -> Void
    ) async throws {
        let (tap, server) = try await SignalingTap.start(withholdsClose: withholdsClose, change)
        do {
            try await body(Page(browser: Browser.shared(), tap: tap, server: server))
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    /// The page tells its ending as the SDK's `disconnect` event would (spec/signaling.md, appendix A), and the server
    /// has heard what was recorded, in that order, and nothing else.
    private func ends(
        _ page: Page, as flow: String, _ type: String, _ title: String, code: Int? = nil, reason: String? = nil,
        location: SourceLocation = #_sourceLocation
    ) async throws {
        let ending = try await page.next("disconnect", within: .seconds(40))
        #expect(ending.string("type") == type, sourceLocation: location)
        #expect(ending.string("title") == title, sourceLocation: location)
        #expect(ending.int("code") == code, sourceLocation: location)
        #expect(ending.string("reason") == reason, sourceLocation: location)
        #expect(await page.server.waitForEvent(.left, within: .seconds(20)) != nil, sourceLocation: location)
        let recorded = try Self.recorded(flow)
        #expect(recorded.count > 2, sourceLocation: location)
        _ = await page.tap.lines.wait(within: .seconds(10)) { $0.filter(Self.counts) == recorded ? true : nil }
        #expect(page.tap.lines.value.filter(Self.counts) == recorded, sourceLocation: location)
    }

    // MARK: connect

    /// Every recorded set of options makes the recorded message, with its keys in the recorded order.
    @Test(
        arguments: [
            "dcs-options", "defaults-recvonly", "forwarding-filter-legacy", "forwarding-filters", "messaging",
            "metadata-object", "recvonly-audio-false", "sendonly-av1", "sendonly-h264", "sendonly-h265",
            "sendrecv-full-params", "simulcast-receiver", "simulcast-receiver-request-rid", "simulcast-sender",
            "spotlight",
        ]) func connectIsAsRecorded(options: String) async throws
    {
        let recorded = try #require(try Self.fixture("connect-js-" + options).objectValue)
        try await withPage { page in
            try page.connect(try Self.given(recorded))
            try await expectConnect(recorded, at: page.tap)
            _ = try await page.next("offer", within: .seconds(30))
            try page.tell(["do": "disconnect"])
            _ = try await page.next("ended")
        }
    }

    /// The second `connect` says that it was redirected; the first socket was closed by the page, without a code.
    @Test func redirectedConnectIsAsRecorded() async throws {
        let recorded = try #require(try Self.fixture("connect-js-redirected").objectValue)
        try await withPage { target in
            try await withPage(withholdsClose: true, { $0.redirectLocation = target.tap.url }) { page in
                try page.connect(try Self.given(recorded))
                try await expectConnect(recorded, at: target.tap)
                #expect(await page.heard(upTo: "ws ended 1005"))
                #expect(page.tap.lines.value == ["ws connect", "ws ended 1005"])
                _ = try await page.next("offer", within: .seconds(30))
                try page.tell(["do": "disconnect"])
                _ = try await page.next("ended")
            }
        }
    }

    /// What the application gives; the rest the page has to add itself.
    private static func given(_ connect: JSONObject) throws -> [String: Any] {
        let all = try JSONSerialization.jsonObject(with: Data(connect.text.utf8)) as? [String: Any]
        var given = try #require(all)
        for key in ["environment", "sdp", "sora_client", "type", "redirect"] { given[key] = nil }
        for key in ["audio", "video"] where connect[key] == .bool(true) { given[key] = nil }
        if connect["metadata"]?.isNull == true { given["metadata"] = nil }
        return given
    }

    private func expectConnect(_ recorded: JSONObject, at tap: SignalingTap) async throws {
        let text = try #require(await tap.texts.wait(within: .seconds(30)) { $0.first })
        var sent = try #require(try JSONValue(parsing: text).objectValue)
        #expect(sent.keys == recorded.keys)
        let sdp = sent["sdp"]?.stringValue ?? ""
        #expect(sdp.contains("\r\nm=audio ") && sdp.contains("\r\nm=video ") && !sdp.contains("m=application"))
        #expect(sdp.contains("\r\na=recvonly\r\n"))
        #expect(sent["environment"]?.stringValue?.hasPrefix("Mozilla/5.0 ") == true)
        for key in ["sdp", "environment"] { sent[key] = recorded[key] }
        #expect(sent == recorded)
    }

    // MARK: Endings

    @Test(arguments: [
        (Joining.Path.webSocket, "flow-js-websocket"), (.hybrid, "flow-js-switched-ignore-false"),
        (.dataChannels, "flow-js-switched-ignore-true"),
    ])
    func leavesAsRecorded(path: Joining.Path, flow: String) async throws {
        // In the hybrid recording the server left the WebSocket to the client.
        try await withPage(withholdsClose: path == .hybrid, { $0.dataChannelSignaling = path != .webSocket }) { page in
            _ = try await page.join(path)
            try page.tell(["do": "disconnect"])
            _ = try await page.next("ended")
            try await ends(page, as: flow, "normal", "DISCONNECT", code: 1000, reason: "TYPE-DISCONNECT")
        }
    }

    @Test(arguments: [
        (Joining.Path.webSocket, "flow-js-websocket-server-close"), (.dataChannels, "flow-js-server-close"),
    ])
    func endsWhenTheServerClosesAsRecorded(path: Joining.Path, flow: String) async throws {
        try await withPage({ $0.dataChannelSignaling = path != .webSocket }) { page in
            let id = try await page.join(path)
            #expect(await page.server.disconnect(channelID: "c", connectionID: id))
            try await ends(page, as: flow, "normal", "SHUTDOWN", code: 1000, reason: "DISCONNECTED-API")
        }
    }

    @Test func leavesWhenOneChannelIsClosedAsRecorded() async throws {
        try await withPage { page in
            let id = try await page.join(.dataChannels)
            _ = try await page.next("data_channel") { $0.string("label") == "push" }
            let fault = Fault(.closeDataChannel(label: "push", after: .zero), connectionID: id)
            #expect(await page.server.inject(fault) == 1)
            let closed = try await page.next("channel_closed")
            #expect(closed.string("label") == "push")
            // Unlike the recording's server this one closes the others as well, so that the page need not give up.
            try await ends(
                page, as: "flow-js-one-channel-closed", "normal", "DISCONNECT", code: 1000, reason: "TYPE-DISCONNECT")
        }
    }

    @Test func reportsTheLossOfItsWebSocketAsRecorded() async throws {
        try await withPage { page in
            _ = try await page.join(.hybrid)
            page.tap.cut()
            try await ends(
                page, as: "flow-js-websocket-lost-hybrid", "abend", "WEBSOCKET-ONCLOSE", code: 1006, reason: "")
        }
    }

    /// 10 s after ICE has lost the server the page gives up, without a word.
    @Test func givesUpWhenTheMediaPathIsLostAsRecorded() async throws {
        try await withPage({ $0.dataChannelSignaling = false }) { page in
            // Chromium's ICE fails 15 s after the last answer and is disconnected from 5 s on, so that either ending
            // may be first. Here 10 s pass in two.
            let browser = page.browser
            func evaluate(_ script: String) async throws {
                try browser.send(["do": "evaluate", "script": "(\(script), true)"])
                _ = try await browser.next("evaluated")
            }
            try await evaluate(
                "window.wait = setTimeout, window.setTimeout = (f, ms) => window.wait(f, ms === 10000 ? 2000 : ms)")
            let result: Result<Void, any Error>
            do {
                result = .success(try await losesItsMediaPath(page))
            } catch {
                result = .failure(error)
            }
            try await evaluate("window.setTimeout = window.wait")
            try result.get()
        }
    }

    private func losesItsMediaPath(_ page: Page) async throws {
        let id = try await page.join(.webSocket)
        var nothing = Fault.NetworkConditions()
        nothing.loss = 1
        // What the page sends still arrives: the server does not end the connection first.
        func lose(upload: Fault.NetworkConditions) async {
            let fault = Fault(.network(upload: upload, download: nothing), connectionID: id)
            #expect(await page.server.inject(fault) == 1)
        }
        await lose(upload: .init())
        _ = try await page.next("ice", within: .seconds(30)) { $0.string("state") == "disconnected" }
        // Nor does it hear that the page closes its transport.
        await lose(upload: nothing)
        try await ends(page, as: "flow-js-media-lost", "abend", "ICE-CONNECTION-STATE-DISCONNECTED-TIMEOUT")
    }
}
