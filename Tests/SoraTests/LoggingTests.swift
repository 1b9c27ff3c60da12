import Foundation
import SoraLocking
import Testing

@testable import Sora

/// The logger is one for the process, so these tests run one after the other.
@Suite(.serialized, .leavesNoObjects) struct LoggingTests {
    private func withLogger(_ body: (Logger, Journal) throws -> Void) rethrows {
        let former = Logger.shared
        let logger = Logger()
        logger.destination = .none
        let journal = Journal()
        logger.onOutputHandler = { journal.add("\($0.type) \($0.level): \($0.message)") }
        Logger.shared = logger
        defer { Logger.shared = former }
        try body(logger, journal)
    }

    @Test func defaultsAreInfoOfChannelsAndUser() {
        let logger = Logger()
        #expect(logger.level == .info && logger.groups == [.channels, .user])
    }

    // A program that never runs its main queue is told so once, with the remedy, as the log stands by default.
    @Test func aMainQueueThatNobodyRunsIsNamedOnce() {
        withLogger { _, journal in
            let late = Locked<[MainQueue.Job]>([])
            let stuck = MainQueue(run: { _ in }, later: { job in late.withLock { $0.append(job) } })
            for _ in 0..<3 { stuck.async {} }
            for job in late.exchange([]) { job() }
            stuck.async {}
            for job in late.exchange([]) { job() }
            #expect(
                journal.entries == [
                    "MediaStream WARN: VideoRenderer callbacks wait because nothing runs the main queue; call "
                        + "dispatchMain(), RunLoop.main.run() or use an async @main"
                ])
            let running = MainQueue(run: { $0() }, later: { job in late.withLock { $0.append(job) } })
            running.async { journal.add("ran") }
            for job in late.exchange([]) { job() }
            #expect(journal.entries.count == 2 && journal.entries.last == "ran")
        }
    }

    @Test func levelsFilter() {
        withLogger { logger, journal in
            let levels: [LogLevel] = [.fatal, .error, .warn, .info, .debug, .trace]
            for (index, level) in levels.enumerated() {
                logger.level = level
                let before = journal.entries.count
                Logger.fatal(type: .user("t"), message: "m")
                Logger.error(type: .user("t"), message: "m")
                Logger.warn(type: .user("t"), message: "m")
                Logger.info(type: .user("t"), message: "m")
                Logger.debug(type: .user("t"), message: "m")
                Logger.trace(type: .user("t"), message: "m")
                #expect(journal.entries.count - before == index + 1)
            }
            logger.level = .off
            let before = journal.entries.count
            Logger.fatal(type: .user("t"), message: "m")
            #expect(journal.entries.count == before)
        }
    }

    @Test func groupsCoverTheirTypes() {
        let all: [LogType] = [
            .sora, .webSocketChannel, .signaling, .signalingChannel, .peerChannel, .nativePeerChannel,
            .connectionTimer, .mediaChannel, .mediaStream, .cameraVideoCapturer, .videoRenderer, .videoView,
            .user("u"), .configurationViewController, .dataChannel,
        ]
        let covered: [(Logger.Group, [String])] = [
            (
                .channels,
                [
                    "Sora", "WebSocketChannel", "SignalingChannel", "PeerChannel", "NativePeerChannel", "MediaChannel",
                    "MediaStream", "CameraVideoCapturer", "DataChannel",
                ]
            ),
            (.connectionTimer, ["ConnectionTimer"]), (.videoCapturer, ["CameraVideoCapturer"]),
            (.videoRenderer, ["VideoRenderer", "VideoView"]), (.user, ["u"]),
            (.configurationViewController, ["ConfigurationViewController"]),
        ]
        for (group, names) in covered {
            #expect(all.filter(group.covers).map(\.description) == names)
        }
    }

    @Test func linesHaveTheDocumentedForm() throws {
        let log = Log(level: .warn, type: .mediaChannel, timestamp: Date(timeIntervalSince1970: 1), message: "text")
        let text = log.description
        #expect(text.hasSuffix(" MediaChannel WARN: text"))
        #expect(text.prefix(19).allSatisfy { $0.isNumber || "-: ".contains($0) })
        let formatter = DateFormatter()
        formatter.dateFormat = "yyyy-MM-dd HH:mm:ss"
        #expect(text.hasPrefix(formatter.string(from: log.timestamp)))
        #expect(LogLevel.off.description == "OFF")
    }

    // api 5.70
    @Test func theHandlerMayLogAndChangeSettings() {
        withLogger { logger, journal in
            logger.onOutputHandler = { [unowned logger] log in
                guard journal.entries.isEmpty else { return }
                journal.add(log.message)
                logger.level = .trace
                logger.onOutputHandler = { journal.add("second \($0.message)") }
                Logger.info(type: .user("x"), message: "inner")
            }
            Logger.info(type: .user("x"), message: "outer")
            #expect(journal.entries == ["outer", "second inner"])
        }
    }

    // api 5.36
    @Test func documentedKeysAreMasked() {
        for key in ["access_token", "token", "secret", "authorization", "credential"] {
            #expect(SecretMask.apply(to: "{\"\(key)\":\"v\\\"al\"}") == "{\"\(key)\": \"***\"}")
            #expect(SecretMask.apply(to: "x \"\(key)\"  :  \"val\", \"k\": 1") == "x \"\(key)\": \"***\", \"k\": 1")
        }
        #expect(SecretMask.apply(to: #"{"label":"token"}"#) == #"{"label":"token"}"#)
        #expect(SecretMask.apply(to: #"{"my_token_x":"v"}"#) == #"{"my_token_x":"v"}"#)
    }

    // SAF4: by place.
    @Test func secretsAreMaskedByPlace() {
        let cases: [(String, String)] = [
            (#"{"metadata":{"a":["SECRET"]},"k":1}"#, #"{"metadata": "***","k":1}"#),
            (#"{"signaling_notify_metadata":"SECRET"}"#, #"{"signaling_notify_metadata": "***"}"#),
            (#"{"authn_metadata":[{"x":"SECRET}"}],"k":1}"#, #"{"authn_metadata": "***","k":1}"#),
            (#"text "{\"access_token\":\"SECRET\"}""#, #"text "{\"access_token\": \"***\"}""#),
            ("wss://user:SECRET@h.example.com/p?token=SECRET x", "wss://***@h.example.com/p?*** x"),
            ("a=ice-pwd:SECRET\r\na=x", "a=ice-pwd:***\r\na=x"),
            (#"{"sdp":"v=0\r\na=ice-pwd:SECRET\r\na=x"}"#, #"{"sdp":"v=0\r\na=ice-pwd:***\r\na=x"}"#),
            ("Authorization: Basic SECRET\r\nHost: h", "Authorization:***\r\nHost: h"),
            ("token eyJhbGciOiJI.eyJSECRET.sig_-1 end", "token *** end"),
            (#"{"password":"SECRET"}"#, #"{"password": "***"}"#),
        ]
        for (text, masked) in cases { #expect(SecretMask.apply(to: text) == masked) }
        #expect(SecretMask.apply(to: "plain text") == "plain text")
        #expect(SecretMask.apply(to: "see https://example.com/page") == "see https://example.com/page")
    }

    // SAF4: by value, in every form.
    @Test func registeredSecretsAreMaskedByValueWhileTheyLive() {
        let secret = "p@ss \"w/rd\"+1"
        do {
            let registration = SecretRegistry.shared.register([secret, "abc"])
            let encoded = secret.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            for form in [secret, encoded, #"p@ss \"w\/rd\"+1"#, Data(secret.utf8).base64EncodedString()] {
                #expect(SecretMask.apply(to: "x \(form) y") == "x *** y", "\(form)")
            }
            #expect(SecretMask.apply(to: "abc") == "abc")
            withExtendedLifetime(registration) {}
        }
        #expect(SecretMask.apply(to: secret) == secret)
    }

    @Test func maskingSurvivesAnyText() {
        var generator = SystemRandomNumberGenerator()
        let alphabet = Array("\"\\:{}[],a?/@ eyJ.token=metadata")
        for _ in 0..<3_000 {
            var text = ""
            for _ in 0..<Int.random(in: 0..<40, using: &generator) {
                text.append(alphabet.randomElement(using: &generator) ?? "a")
            }
            let once = SecretMask.apply(to: text)
            #expect(SecretMask.apply(to: once) == once, "\(text)")
        }
        #expect(SecretMask.apply(to: #"{"token":"unfinished"#) == #"{"token": "***""#)
    }

    @Test func maskingTakesLinearTime() {
        let text = String(repeating: #"{"token":"x"},"#, count: 20_000)
        let clock = ContinuousClock()
        let half = clock.measure { _ = SecretMask.apply(to: String(text.prefix(text.count / 2))) }
        let whole = clock.measure { _ = SecretMask.apply(to: text) }
        #expect(whole < half * 6)
    }

    @Test func engineMessagesHaveALevelOfTheirOwn() {
        withLogger { _, _ in
            defer { Sora.setWebRTCLogLevel(.none) }
            var made = 0
            func text() -> String {
                made += 1
                return "m"
            }
            EngineLog.write(.error, text())
            #expect(made == 0)
            Sora.setWebRTCLogLevel(.warning)
            EngineLog.write(.info, text())
            #expect(made == 0)
            EngineLog.write(.warning, text())
            #expect(made == 1)
        }
    }
}
