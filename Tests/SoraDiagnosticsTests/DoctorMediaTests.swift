import LocalSora
import SoraICE
import SoraMessages
import SoraNetwork
import TestSupport
import Testing

@testable import SoraDiagnostics

/// Set-ups that are broken behind signaling: TURN, ICE, DTLS, data channels, media (issue 5, what must hold 5).
@Suite(.serialized, .leavesNoObjects) struct DoctorMediaTests {
    private func diagnose(
        timeout: Duration = .seconds(2), server change: (inout ServerConfiguration) -> Void,
        _ doctor: (inout DoctorConfiguration) -> Void = { _ in }
    ) async throws -> Diagnosis {
        var configuration = ServerConfiguration()
        change(&configuration)
        let server = try await SoraServer.start(configuration)
        let diagnosis = try await examine(server.signalingURL, timeout: timeout, doctor)
        await server.stop()
        return diagnosis
    }

    private static func editing(
        _ change: @escaping @Sendable (String) -> String
    ) -> @Sendable (ScriptedMessage) -> [ScriptAction] {
        { message in message.type == "offer" ? [.send(change(message.text))] : [.pass] }
    }

    // MARK: ICE

    @Test func namesAMediaAddressThatCannotBeReached() async throws {
        let sink = try await DatagramSink.start()
        let port = await sink.port
        let diagnosis = try await diagnose(timeout: .seconds(1)) { configuration in
            configuration.script = Self.editing { text in
                text.replacing(#/127\.0\.0\.1 \d+ typ host/#) { _ in "127.0.0.1 \(port) typ host" }
            }
        }
        await sink.stop()
        expect(
            diagnosis, failsAt: .ice, summary: "no pair of candidates works",
            advice: "UDP is "
                + "blocked", failure: .timedOut)
        let pairs = diagnosis.failure?.details.filter { $0.hasPrefix("pair ") } ?? []
        #expect(
            !pairs.isEmpty
                && pairs.contains {
                    $0.contains(
                        "checks without answer: "
                            + "blocked")
                }, "\(diagnosis.allText)")
        #expect(diagnosis.failure?.advice.contains("127.0.0.1:\(port)") == true)
    }

    @Test func namesAServerThatGivesUpDuringICE() async throws {
        let diagnosis = try await diagnose(timeout: .seconds(3)) { configuration in
            configuration.script = { message in
                guard message.type == "offer" else { return [.pass] }
                let text = message.text.replacing(#/127\.0\.0\.1 \d+ typ host/#) { _ in "127.0.0.1 9 typ host" }
                return [.send(text), .closeWebSocket(code: 4490, reason: "TIMEOUT")]
            }
        }
        expect(diagnosis, failsAt: .ice, summary: "4490 TIMEOUT", advice: "its log says why")
    }

    // MARK: TURN

    /// Answers every request as a TURN server does that does not know the user.
    private static let refusing: @Sendable ([UInt8]) -> [UInt8]? = { packet in
        guard let request = try? STUNMessage(parsing: packet), request.messageClass == .request else { return nil }
        return STUNMessage(
            .error, request.method, transactionID: request.transactionID,
            attributes: [
                .errorCode(STUNErrorCode(401, "Unauthorized")), .realm(Array("example.org".utf8)),
                .nonce(Array("nonce".utf8)),
            ]
        ).serialized()
    }

    @Test func namesTURNCredentialsThatAreRefused() async throws {
        let turn = try await DatagramSink.start(respond: Self.refusing)
        let url = "turn:127.0.0.1:\(await turn.port)?transport=udp"
        let diagnosis = try await diagnose(timeout: .seconds(3)) { configuration in
            configuration.turnServers = [.init(urls: [url], username: "turn-user", credential: "turn-password")]
            configuration.forcesRelay = true
        }
        await turn.stop()
        expect(diagnosis, failsAt: .turn, summary: url, advice: "user name and password", failure: .refused)
        #expect(!diagnosis.allText.contains("turn-password") && !diagnosis.allText.contains("turn-user"))
    }

    @Test func namesATURNServerThatIsSilentOverUDP() async throws {
        let turn = try await DatagramSink.start()
        let url = "turn:127.0.0.1:\(await turn.port)?transport=udp"
        let diagnosis = try await diagnose(timeout: .seconds(1)) { configuration in
            configuration.turnServers = [.init(urls: [url], username: "u", credential: "p")]
            configuration.forcesRelay = true
        }
        await turn.stop()
        expect(diagnosis, failsAt: .turn, summary: "no answer", advice: "TURN over TCP or TLS", failure: .timedOut)
    }

    @Test func namesATURNServerWithACertificateForAnotherName() async throws {
        let authority = try TLSIdentity.generate(names: ["Test CA"], isAuthority: true)
        let identity = try TLSIdentity.generate(names: ["turn.example.com"], issuer: authority)
        let turn = try await BrokenServer.start(.silent, identity: identity)
        let url = "turns:127.0.0.1:\(await turn.port)?transport=tcp"
        let diagnosis = try await diagnose(timeout: .seconds(3)) { configuration in
            configuration.turnServers = [.init(urls: [url], username: "u", credential: "p")]
            configuration.forcesRelay = true
        } _: { doctor in
            doctor.certificateAuthorities = authority.certificateChain
        }
        await turn.stop()
        expect(diagnosis, failsAt: .turn, summary: "not valid for 127.0.0.1", advice: "DNS:turn.example.com")
    }

    @Test func warnsOfATURNServerThatIsNotNeeded() async throws {
        let closed = try await BrokenServer.start(.silent)
        let url = "turn:127.0.0.1:\(await closed.port)?transport=tcp"
        await closed.stop()
        let diagnosis = try await diagnose(timeout: .seconds(5)) { configuration in
            configuration.turnServers = [.init(urls: [url], username: "u", credential: "p")]
        }
        #expect(diagnosis.isHealthy, "\(diagnosis.allText)")
        #expect(diagnosis.report(.turn)?.verdict == .warning)
        #expect(diagnosis.report(.turn)?.advice.contains("nothing listens there") == true, "\(diagnosis.allText)")
        #expect(diagnosis.summary.contains("warnings at turn"))
    }

    @Test func namesAForcedRelayWithoutTURNServer() async throws {
        let diagnosis = try await diagnose { _ in
        } _: {
            $0.relayOnly = true
        }
        expect(diagnosis, failsAt: .turn, summary: "no TURN server", advice: "--relay")
    }

    // MARK: DTLS

    @Test func namesAFingerprintThatWasAltered() async throws {
        let diagnosis = try await diagnose(timeout: .seconds(3)) { configuration in
            configuration.script = Self.editing { text in
                text.replacing(#/sha-256 [0-9A-F:]{95}/#) { _ in
                    "sha-256 " + Array(repeating: "AB", count: 32).joined(separator: ":")
                }
            }
        }
        expect(diagnosis, failsAt: .dtls, summary: "is not the one in its description", advice: "another certificate")
        #expect(diagnosis.report(.ice)?.verdict == .passed)
    }

    // MARK: Data channels

    @Test func namesAServerThatNeverSwitches() async throws {
        let diagnosis = try await diagnose(timeout: .seconds(1)) { configuration in
            configuration.script = { $0.type == "switched" ? [.drop] : [.pass] }
        }
        expect(
            diagnosis, failsAt: .dataChannels,
            summary: "never said "
                + "switched", advice: "WebSocket", failure: .timedOut)
    }

    @Test func namesDataChannelsThatAreNeverOpened() async throws {
        let diagnosis = try await diagnose(timeout: .seconds(1)) { configuration in
            configuration.script = Self.editing { text in
                text.replacing(
                    ##""data_channels":["##, with: ##""data_channels":[{"label":"#ghost","compress":false},"##)
            }
        }
        expect(diagnosis, failsAt: .dataChannels, summary: "did not open #ghost", advice: "SCTP", failure: .timedOut)
        #expect(diagnosis.failure?.details.contains("#ghost: not open") == true)
        #expect(diagnosis.failure?.details.contains("signaling: open") == true)
    }

    @Test func namesASocketThatIsLostBeforeTheSwitch() async throws {
        let diagnosis = try await diagnose(timeout: .seconds(3)) { configuration in
            configuration.script = { $0.type == "switched" ? [.resetWebSocket] : [.pass] }
        }
        // Whichever of the two ends is noticed first: the socket's or the media path's.
        expect(diagnosis, failsAt: .dataChannels, summary: "the server closed the ", advice: "log")
    }

    // MARK: Media

    private func diagnose(_ media: MediaServer.Media, timeout: Duration) async throws -> (Diagnosis, Int) {
        let server = try await MediaServer.start(media)
        let diagnosis = try await examine(await server.url, timeout: timeout)
        let requests = await server.keyFrameRequests
        await server.stop()
        return (diagnosis, requests)
    }

    @Test func followsMediaToTheFirstKeyFrame() async throws {
        let (diagnosis, requests) = try await diagnose(MediaServer.Media(), timeout: .seconds(8))
        #expect(diagnosis.isHealthy, "\(diagnosis.allText)")
        for stage in [DoctorStage.ice, .dtls, .srtp, .rtp, .keyFrame] {
            #expect(diagnosis.report(stage)?.verdict == .passed, "\(diagnosis.allText)")
        }
        #expect(diagnosis.report(.srtp)?.summary.contains("SRTP_AEAD_AES_128_GCM") == true)
        #expect(diagnosis.report(.dataChannels)?.verdict == .skipped)
        #expect(requests > 0)
    }

    @Test func answersAReOffer() async throws {
        let server = try await MediaServer.start(.init(offersVideoLater: true))
        let diagnosis = try await examine(await server.url, timeout: .seconds(8))
        let answers = await server.reAnswers
        await server.stop()
        #expect(diagnosis.isHealthy, "\(diagnosis.allText)")
        #expect(answers == 1)
        #expect(diagnosis.report(.keyFrame)?.verdict == .passed, "\(diagnosis.allText)")
    }

    @Test func namesMediaThatNeverComes() async throws {
        let (diagnosis, _) = try await diagnose(.init(sendsAudio: false, sendsVideo: false), timeout: .seconds(1))
        expect(diagnosis, failsAt: .rtp, summary: "no media within", advice: "forwards nothing", failure: .timedOut)
        #expect(diagnosis.failure?.details.filter { $0.contains("no packet") }.count == 2)
    }

    @Test func warnsOfSilentSound() async throws {
        let (diagnosis, _) = try await diagnose(.init(sendsAudio: false), timeout: .seconds(2))
        #expect(diagnosis.isHealthy, "\(diagnosis.allText)")
        #expect(diagnosis.report(.rtp)?.verdict == .warning)
        #expect(diagnosis.report(.rtp)?.advice.contains("microphone") == true)
    }

    @Test func namesVideoWithoutKeyFrame() async throws {
        let (diagnosis, requests) = try await diagnose(.init(hasKeyFrames: false), timeout: .milliseconds(2_500))
        expect(diagnosis, failsAt: .keyFrame, summary: "no key frame within", advice: "PLI", failure: .timedOut)
        #expect(diagnosis.report(.rtp)?.verdict == .passed)
        // Asked at once, and again.
        #expect(requests >= 2)
    }
}
