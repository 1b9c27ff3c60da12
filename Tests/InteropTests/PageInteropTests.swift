import Foundation
import LocalSora
import Testing

/// The local server's own page in headless Chromium.
@Suite(.serialized, .enabled(if: Interop.isEnabled, Interop.reason))
struct PageInteropTests {
    /// Opens the page with a pattern instead of a camera, and joins.
    private static func open(_ peer: PeerProcess, _ server: SoraServer, _ query: String) async throws {
        _ = try await peer.next("ready")
        try peer.send(["do": "goto", "url": server.pageURL + "?source=pattern&join=1&" + query])
        _ = try await peer.next("loaded")
        try await expect(peer, "document.body.dataset.state === 'connected'")
    }

    /// Waits in the page until `condition` holds, at most 30 s.
    private static func expect(_ peer: PeerProcess, _ condition: String) async throws {
        let script = """
            new Promise((resolve) => {
              const end = performance.now() + 30000;
              const look = () => {
                if (\(condition)) resolve(true);
                else if (performance.now() > end) resolve(document.body.dataset.state + ": " + document.body.innerText);
                else setTimeout(look, 50);
              };
              look();
            })
            """
        try peer.send(["do": "evaluate", "script": script])
        let result = try await peer.next("evaluated", within: .seconds(40))
        #expect(result["value"] as? Bool == true, "\(condition): \(result["value"] ?? "")")
    }

    private static func evaluate(_ peer: PeerProcess, _ script: String) async throws {
        try peer.send(["do": "evaluate", "script": script])
        _ = try await peer.next("evaluated")
    }

    private static let seesPicture = """
        [...document.querySelectorAll('.tile:not(.mine) video')].some((v) => v.videoWidth > 0 && v.currentTime > 0)
        """
    private static let fits = """
        document.documentElement.scrollWidth <= innerWidth
          && [...document.querySelectorAll('.tile')].every((a, i, all) => all.slice(i + 1).every((b) => {
            const [p, q] = [a.getBoundingClientRect(), b.getBoundingClientRect()];
            return p.right <= q.left || q.right <= p.left || p.bottom <= q.top || q.bottom <= p.top;
          }))
        """

    @Test func twoPagesMeet() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let alice = try PeerProcess(.browser, name: "alice")
        let bob = try PeerProcess(.browser, name: "bob")
        try await Self.open(alice, server, "client=alice&microphone=0")
        try await Self.open(bob, server, "client=bob&microphone=0&dcs=only")
        for peer in [alice, bob] { try await Self.expect(peer, Self.seesPicture) }
        try await Self.expect(alice, "document.getElementById('status-text').textContent.includes('2 connections')")

        // Messages, typed with the keyboard.
        try await Self.evaluate(alice, "document.getElementById('message').focus()")
        for key in ["H", "i", "Enter"] {
            try alice.send(["do": "press", "key": key])
            _ = try await alice.next("pressed")
        }
        try await Self.expect(bob, "document.getElementById('messages').innerText.includes('Hi')")
        try await Self.expect(bob, "document.getElementById('messages').innerText.includes('alice')")

        // Signaling, notifications and statistics are there; tabs follow the arrow keys.
        try await Self.evaluate(alice, "document.getElementById('tab-chat').focus()")
        for panel in ["signaling", "notify", "stats"] {
            try alice.send(["do": "press", "key": "ArrowRight"])
            _ = try await alice.next("pressed")
            try await Self.expect(alice, "!document.getElementById('\(panel)').hidden")
        }
        try await Self.expect(alice, "document.querySelectorAll('#streams tr').length >= 2")
        try await Self.expect(alice, "document.getElementById('signaling-log').textContent.includes('offer')")
        try await Self.expect(alice, "document.getElementById('notify-log').textContent.includes('connection.created')")

        // A phone's size and a desktop's.
        for (width, height) in [(390, 780), (1400, 860)] {
            try alice.send(["do": "viewport", "width": width, "height": height])
            _ = try await alice.next("resized")
            try await Self.expect(alice, Self.fits)
            let path = FileManager.default.temporaryDirectory.appending(path: "page-\(width)-\(UUID().uuidString).png")
            defer { try? FileManager.default.removeItem(at: path) }
            try alice.send(["do": "screenshot", "path": path.path])
            _ = try await alice.next("screenshot")
            #expect(try Data(contentsOf: path).count > 10_000)
        }

        try await Self.evaluate(bob, "document.getElementById('leave').click()")
        try await Self.expect(bob, "document.getElementById('status-text').textContent === 'You left'")
        try await Self.expect(alice, "document.querySelectorAll('.tile').length === 1")
        #expect(alice.all.contains { $0.name == "page_error" } == false)
        #expect(bob.all.contains { $0.name == "page_error" } == false)
        for peer in [alice, bob] { try peer.send(["do": "exit"]) }
    }

    @Test func simulcastLayerIsChosenInThePage() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let sender = try PeerProcess(.browser, name: "sender")
        let viewer = try PeerProcess(.browser, name: "viewer")
        try await Self.open(sender, server, "role=sendonly&simulcast=1&microphone=0&codec=VP8&bitrate=2500")
        try await Self.open(viewer, server, "role=recvonly&simulcast=1")
        try await Self.expect(viewer, Self.seesPicture)
        try await Self.evaluate(
            viewer,
            """
            (() => {
              const choice = document.querySelector('.tile select');
              choice.value = 'none';
              choice.dispatchEvent(new Event('change'));
            })()
            """)
        try await Self.expect(
            viewer, "document.getElementById('notify-log').textContent.includes('simulcast.switched')")
        for peer in [sender, viewer] { try peer.send(["do": "exit"]) }
    }

    // MARK: Looks

    /// Contrast, names of controls and overflow at a desktop's and a phone's size, light and dark.
    private static func expectGoodLooks(_ peer: PeerProcess, _ state: String) async throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Interop/peers/page_audit.js")
        let audit = try String(contentsOf: file, encoding: .utf8)
        for (width, height) in [(390, 844), (1400, 860)] {
            try peer.send(["do": "viewport", "width": width, "height": height])
            _ = try await peer.next("resized")
            try await expect(peer, fits)
            for scheme in ["dark", "light"] {
                try peer.send(["do": "scheme", "scheme": scheme])
                _ = try await peer.next("shown")
                try peer.send(["do": "evaluate", "script": audit])
                let problems = try await peer.next("evaluated")["value"] as? String
                #expect(problems == "", "\(state), \(width) wide, \(scheme)")
            }
        }
    }

    private static func press(_ peer: PeerProcess, _ keys: String...) async throws {
        for key in keys {
            try peer.send(["do": "press", "key": key])
            _ = try await peer.next("pressed")
        }
    }

    @Test(.timeLimit(.minutes(4))) func nineMembersFitAndEveryPanelLooksGood() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let viewer = try PeerProcess(.browser, name: "viewer")
        let others = try PeerProcess(.browser, name: "others")
        try await Self.open(viewer, server, "client=viewer&microphone=0&bitrate=100")
        _ = try await others.next("ready")
        for (index, count) in [(1..<1, 1), (1..<4, 4), (4..<9, 9)] {
            for number in index {
                try others.send(["do": "page"])
                _ = try await others.next("opened")
                let words = "?source=pattern&join=1&microphone=0&role=sendonly&bitrate=60&client=member-\(number)"
                try others.send(["do": "goto", "url": server.pageURL + words])
                _ = try await others.next("loaded")
                try await Self.expect(others, "document.body.dataset.state === 'connected'")
            }
            try await Self.expect(viewer, "document.querySelectorAll('.tile.has-picture').length === \(count)")
            try await Self.expect(viewer, "document.querySelectorAll('#people li').length === \(count)")
            try await Self.expectGoodLooks(viewer, "\(count) members")
        }
        for panel in ["signaling", "notify", "stats"] {
            try await Self.evaluate(viewer, "document.getElementById('tab-\(panel)').click()")
            try await Self.expect(
                viewer, "document.querySelectorAll('#\(panel) .log details, #\(panel) tbody tr').length > 0")
            try await Self.expectGoodLooks(viewer, panel)
        }
        for peer in [viewer, others] { try peer.send(["do": "exit"]) }
    }

    @Test func keyboardAloneJoinsWritesAndLeaves() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let peer = try PeerProcess(.browser, name: "keyboard")
        _ = try await peer.next("ready")
        try peer.send(["do": "goto", "url": server.pageURL + "?source=pattern&microphone=0"])
        _ = try await peer.next("loaded")
        try await Self.expectGoodLooks(peer, "form")
        /// Tab until this element has the focus, and shows it with a ring.
        func tab(to id: String) async throws {
            for _ in 0..<25 {
                try await Self.press(peer, "Tab")
                try peer.send(["do": "evaluate", "script": "document.activeElement.id"])
                if try await peer.next("evaluated").string("value") == id { break }
            }
            try await Self.expect(
                peer,
                "document.activeElement.id === '\(id)' && parseFloat(getComputedStyle(document.activeElement).outlineWidth) >= 2"
            )
        }
        try await tab(to: "join-button")
        try await Self.press(peer, "Enter")
        try await Self.expect(peer, "document.body.dataset.state === 'connected'")
        try await tab(to: "message")
        try await Self.press(peer, "m", "v", "Enter")
        try await Self.expect(peer, "document.getElementById('messages').innerText.includes('mv')")
        // Letters are shortcuts outside of fields only.
        try await Self.expect(peer, "document.getElementById('mute-video').textContent === 'Hide me'")
        try await tab(to: "tab-chat")
        try await Self.press(peer, "v")
        try await Self.expect(peer, "document.getElementById('mute-video').getAttribute('aria-pressed') === 'true'")
        try await tab(to: "leave")
        try await Self.press(peer, "Enter")
        try await Self.expect(peer, "document.getElementById('status-text').textContent === 'You left'")
        try await Self.expect(peer, "document.activeElement.id === 'join-button'")
        try peer.send(["do": "exit"])
    }

    // MARK: What goes wrong

    @Test func serverThatGoesAwayIsShownAndJoiningAgainWorks() async throws {
        let server = try await Interop.startServer()
        let port = server.port
        let peer = try PeerProcess(.browser, name: "left-alone")
        try await Self.open(peer, server, "microphone=0")
        await server.stop()
        try await Self.expect(peer, "document.body.dataset.state === 'failed'")
        try await Self.expect(peer, "!document.getElementById('problem').hidden")
        try await Self.expectGoodLooks(peer, "server gone")
        try await Self.evaluate(peer, "document.getElementById('join-button').click()")
        try await Self.expect(peer, "document.getElementById('problem').textContent.includes('cannot be reached')")
        let next = try await Interop.startServer { $0.port = port }
        defer { Task { await next.stop() } }
        try await Self.evaluate(peer, "document.getElementById('join-button').click()")
        try await Self.expect(peer, "document.body.dataset.state === 'connected'")
        try peer.send(["do": "exit"])
    }

    @Test func silentServerCanBeGivenUp() async throws {
        let server = try await Interop.startServer { $0.faults = [Fault(.silence(.connect), times: 1)] }
        defer { Task { await server.stop() } }
        let peer = try PeerProcess(.browser, name: "patient")
        _ = try await peer.next("ready")
        try peer.send(["do": "goto", "url": server.pageURL + "?source=pattern&microphone=0&join=1"])
        _ = try await peer.next("loaded")
        try await Self.expect(peer, "!document.getElementById('cancel').hidden")
        try await Self.expectGoodLooks(peer, "connecting")
        try await Self.evaluate(peer, "document.getElementById('cancel').click()")
        try await Self.expect(peer, "document.getElementById('status-text').textContent === 'Cancelled'")
        try await Self.evaluate(peer, "document.getElementById('join-button').click()")
        try await Self.expect(peer, "document.body.dataset.state === 'connected'")
        try peer.send(["do": "exit"])
    }

    @Test func codecThatTheBrowserLacksIsToldBeforeJoining() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let peer = try PeerProcess(.browser, name: "codec")
        _ = try await peer.next("ready")
        try peer.send(["do": "goto", "url": server.pageURL])
        _ = try await peer.next("loaded")
        // A build of Chromium may have any codec: here it has none but VP8.
        try await Self.evaluate(
            peer, "RTCRtpSender.getCapabilities = () => ({ codecs: [{ mimeType: 'video/VP8' }], headerExtensions: [] })"
        )
        try await Self.evaluate(
            peer,
            """
            (() => {
              const form = document.getElementById('join');
              form.elements.source.value = 'pattern';
              form.elements.codec.value = 'AV1';
              form.requestSubmit();
            })()
            """)
        try await Self.expect(peer, "document.getElementById('problem').textContent.includes('cannot send AV1')")
        #expect(!server.recordedEvents.contains { $0.kind == .connectReceived })
        try await Self.evaluate(peer, "document.getElementById('join').elements.codec.value = 'VP8'")
        try await Self.evaluate(peer, "document.getElementById('join').requestSubmit()")
        try await Self.expect(peer, "document.body.dataset.state === 'connected'")
        try peer.send(["do": "exit"])
    }

    @Test func deniedCameraSaysWhatToDo() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let origin = "http://\(Interop.host):\(server.port)"
        let peer = try PeerProcess(
            .browser, name: "denied",
            arguments: ["--no-fake-ui", "--unsafely-treat-insecure-origin-as-secure=\(origin)"])
        _ = try await peer.next("ready")
        try peer.send(["do": "goto", "url": server.pageURL + "?source=camera&join=1"])
        _ = try await peer.next("loaded")
        try await Self.expect(peer, "document.getElementById('problem').textContent.includes('does not allow')")
        try await Self.expectGoodLooks(peer, "denied")
        #expect(!server.recordedEvents.contains { $0.kind == .connectReceived })
        try peer.send(["do": "exit"])
    }

    @Test func refusalIsShown() async throws {
        let server = try await Interop.startServer {
            $0.faults = [Fault(.refuse(.connect, code: 4490, reason: "BUSY-TODAY"))]
        }
        defer { Task { await server.stop() } }
        let peer = try PeerProcess(.browser, name: "refused")
        _ = try await peer.next("ready")
        try peer.send(["do": "goto", "url": server.pageURL + "?source=pattern&join=1"])
        _ = try await peer.next("loaded")
        try await Self.expect(peer, "document.getElementById('problem').textContent.includes('BUSY-TODAY (4490)')")
        try peer.send(["do": "exit"])
    }
}
