import LocalSora
import SoraMessages
import Testing

@testable import SoraDiagnostics

@Suite(.serialized) struct DoctorHealthyTests {
    @Test func findsNothingWrongWithAServer() async throws {
        let server = try await SoraServer.start()
        let diagnosis = try await diagnose(server.signalingURL, timeout: .seconds(10))
        await server.stop()
        #expect(diagnosis.isHealthy, "\(diagnosis.allText)")
        let passed = diagnosis.stages.filter { $0.verdict == .passed }.map(\.stage)
        #expect(passed == [.dns, .tcp, .upgrade, .connect, .offer, .ice, .dtls, .srtp, .dataChannels], "\(diagnosis.allText)")
    }
}
