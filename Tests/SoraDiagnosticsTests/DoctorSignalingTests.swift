import LocalSora
import SoraMessages
import TestSupport
import Testing

@testable import SoraDiagnostics

/// Set-ups that are broken in signaling: connect, redirect, offer (issue 5, what must hold 5).
@Suite(.serialized, .leavesNoObjects) struct DoctorSignalingTests {
    private func diagnose(
        actions: [BrokenServer.WebSocketAction], timeout: Duration = .seconds(2),
        _ change: (inout DoctorConfiguration) -> Void = { _ in }
    ) async throws -> Diagnosis {
        let server = try await BrokenServer.start(.webSocket(actions))
        let diagnosis = try await examine(
            "ws://127.0.0.1:\(await server.port)/signaling", timeout: timeout, change)
        await server.stop()
        return diagnosis
    }

    /// A local server whose offers are changed.
    private func diagnose(
        offer change: @escaping @Sendable (String) -> String, timeout: Duration = .seconds(3)
    ) async throws -> Diagnosis {
        var configuration = ServerConfiguration()
        configuration.script = { message in message.type == "offer" ? [.send(change(message.text))] : [.pass] }
        let server = try await SoraServer.start(configuration)
        let diagnosis = try await examine(server.signalingURL, timeout: timeout)
        await server.stop()
        return diagnosis
    }

    @Test func namesAServerThatNeverOffers() async throws {
        let diagnosis = try await diagnose(actions: [], timeout: .milliseconds(500))
        expect(
            diagnosis, failsAt: .connect,
            summary: "no offer came within 0.5 "
                + "s", advice: "webhook", failure: .timedOut)
        #expect(diagnosis.report(.upgrade)?.verdict == .passed)
    }

    @Test func namesARefusalWithItsReason() async throws {
        let diagnosis = try await diagnose(actions: [.close(4490, "CONNECTION-LIMIT")])
        expect(diagnosis, failsAt: .connect, summary: "4490: CONNECTION-LIMIT", advice: "channel_id", failure: .refused)
        let other = try await diagnose(actions: [.close(1011, "")])
        expect(other, failsAt: .connect, summary: "closed the WebSocket with 1011", advice: "log")
    }

    @Test func neverRepeatsASecretThatTheServerEchoes() async throws {
        let token = "eyJhbGciOiJIUzI1NiJ9.secret-token"
        let diagnosis = try await diagnose(actions: [.close(4490, "BAD-TOKEN \(token)")]) { configuration in
            try? configuration.setMetadata(json: "{\"access_token\": \"\(token)\", \"n\": [\"another-secret\"]}")
        }
        expect(diagnosis, failsAt: .connect, summary: "BAD-TOKEN •••", advice: "token")
        #expect(!diagnosis.allText.contains(token))
    }

    @Test func namesRedirectsInACircle() async throws {
        let diagnosis = try await diagnose(actions: [
            .text(#"{"type":"redirect","location":"ws://127.0.0.1:{port}/signaling?hop=1"}"#)
        ])
        expect(diagnosis, failsAt: .connect, summary: "redirect in a circle", advice: "cluster", failure: .malformed)
        // The redirect before it was followed.
        #expect(diagnosis.stages.filter { $0.stage == .connect && $0.verdict == .passed }.count == 1)
        #expect(!diagnosis.allText.contains("hop=1"))
    }

    @Test func followsARedirect() async throws {
        let server = try await SoraServer.start()
        let diagnosis = try await diagnose(
            actions: [.text(#"{"type":"redirect","location":"\#(server.signalingURL)"}"#)], timeout: .seconds(10))
        await server.stop()
        #expect(diagnosis.isHealthy, "\(diagnosis.allText)")
        #expect(diagnosis.stages.filter { $0.stage == .upgrade }.count == 2)
        #expect(diagnosis.stages.last?.url == server.signalingURL)
    }

    @Test(arguments: [
        (
            "not JSON at all",
            "cannot be "
                + "read"
        ), (#"{"type":"offer","sdp":"v=0"}"#, "connection_id"), ("[1]", "cannot be read"),
    ])
    func namesAnOfferThatCannotBeRead(text: String, summary: String) async throws {
        let diagnosis = try await diagnose(actions: [.text(text)])
        expect(diagnosis, failsAt: .offer, summary: summary, advice: "not Sora's signaling", failure: .malformed)
        #expect(diagnosis.failure?.details.first?.contains("begins with") == true)
    }

    @Test func namesAnOfferWhoseDescriptionIsMalformed() async throws {
        let diagnosis = try await diagnose { $0.replacing("a=ice-ufrag:", with: "a=ice-ufrag:?? ") }
        expect(diagnosis, failsAt: .offer, summary: "SDP cannot be read", advice: "version", failure: .malformed)
    }

    @Test func namesAnOfferWithoutFingerprint() async throws {
        let diagnosis = try await diagnose { $0.replacing("a=fingerprint:", with: "a=x-fingerprint:") }
        expect(diagnosis, failsAt: .offer, summary: "no a=fingerprint", advice: "DTLS", failure: .malformed)
        #expect(diagnosis.failure?.details.contains { $0.contains("fault in session") } == true)
    }

    @Test func namesAnOfferWithoutCandidates() async throws {
        let diagnosis = try await diagnose { $0.replacing("a=candidate:", with: "a=x-candidate:") }
        expect(diagnosis, failsAt: .offer, summary: "no candidate", advice: "media address")
    }

    @Test func examinesEachURLByItself() async throws {
        let server = try await SoraServer.start()
        let closed = try await BrokenServer.start(.silent)
        let port = await closed.port
        await closed.stop()
        var configuration = DoctorConfiguration(
            urls: ["ws://127.0.0.1:\(port)/signaling", server.signalingURL], channelID: "both")
        configuration.timeout = .seconds(10)
        let diagnoses = try await Doctor(configuration).examine()
        await server.stop()
        #expect(diagnoses.map(\.isHealthy) == [false, true], "\(diagnoses.map(\.allText))")
    }
}
