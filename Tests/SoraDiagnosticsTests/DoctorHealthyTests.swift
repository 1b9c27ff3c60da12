import LocalSora
import SoraMessages
import Testing

@testable import SoraDiagnostics

@Suite(.serialized) struct DoctorHealthyTests {
    @Test func findsNothingWrongWithAServer() async throws {
        let server = try await SoraServer.start()
        let diagnosis = try await examine(server.signalingURL, timeout: .seconds(10))
        await server.stop()
        #expect(diagnosis.isHealthy, "\(diagnosis.allText)")
        let passed = diagnosis.stages.filter { $0.verdict == .passed }.map(\.stage)
        #expect(
            passed == [.dns, .tcp, .upgrade, .connect, .offer, .ice, .dtls, .srtp, .dataChannels],
            "\(diagnosis.allText)")
    }

    /// SAF7.
    @Test func printsVersionsOfLibraries() throws {
        #expect(LibraryVersions.all.contains { $0.name == "OpenSSL" && $0.version.contains("3.") })
        #if Media
        for name in ["libvpx", "libaom", "dav1d", "openh264", "opus"] {
            let version = LibraryVersions.all.first { $0.name == name }?.version ?? ""
            #expect(version.contains { $0.isNumber }, "\(name) \(version)")
        }
        #endif
        #expect(try JSONValue(parsing: LibraryVersions.jsonText).objectValue?["versions"] != nil)
    }

    @Test func writesOneJSONObjectALine() async throws {
        let server = try await SoraServer.start()
        let diagnosis = try await examine(server.signalingURL, timeout: .seconds(10))
        await server.stop()
        for stage in diagnosis.stages {
            let object = try #require(try JSONValue(parsing: stage.jsonText).objectValue)
            #expect(object["stage"]?.stringValue == stage.stage.rawValue)
            #expect(object["verdict"]?.stringValue == stage.verdict.rawValue)
            #expect((object["milliseconds"]?.doubleValue ?? -1) >= 0)
            #expect(!stage.jsonText.contains("\n"))
        }
        let verdict = try #require(try JSONValue(parsing: diagnosis.jsonText).objectValue)
        #expect(verdict["verdict"]?.stringValue == "healthy")
    }

    @Test(arguments: ConnectionRole.allCases) func connectsInEveryRole(_ role: ConnectionRole) async throws {
        let server = try await SoraServer.start()
        let diagnosis = try await examine(server.signalingURL, timeout: .seconds(10)) { $0.role = role }
        // It leaves in order.
        let left = server.recordedEvents.contains { $0.kind == .left || $0.kind == .disconnected }
        await server.stop()
        #expect(diagnosis.isHealthy, "\(diagnosis.allText)")
        #expect(left)
    }
}
