import LocalSora
import SoraMessages
import SoraNetwork
import TestSupport
import Testing

@testable import SoraDiagnostics

@Suite(.serialized, .leavesNoObjects) struct DoctorHealthyTests {
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

    @Test func leavesNothingBehind() async throws {
        let server = try await SoraServer.start()
        let loop = try EventLoop(name: "test-doctor")
        weak var examination: Examination?
        do {
            var configuration = DoctorConfiguration(urls: [], channelID: "leak")
            configuration.timeout = .seconds(10)
            let walked = Examination(
                of: server.signalingURL, configuration: configuration, loop: loop, onReport: { _ in })
            examination = walked
            #expect(await walked.run().isHealthy)
        }
        loop.stop()
        await server.stop()
        #expect(examination == nil)
    }

    /// CLI5: a signal leaves the server in order, at once.
    @Test func aCancelledExaminationLeavesTheServer() async throws {
        var settings = ServerConfiguration()
        // The stage of data channels waits for this.
        settings.script = { $0.type == "switched" ? [.drop] : [.pass] }
        let server = try await SoraServer.start(settings)
        var configuration = DoctorConfiguration(urls: [server.signalingURL], channelID: "cancel")
        configuration.timeout = .seconds(60)
        let (stages, continuation) = AsyncStream.makeStream(of: DoctorStage.self)
        let task = Task { [configuration] in
            try await Doctor(configuration).examine(onReport: { continuation.yield($0.stage) })
        }
        for await stage in stages where stage == .srtp { break }
        task.cancel()
        let diagnosis = try #require(try await task.value.first)
        let left = server.recordedEvents.contains { $0.kind == .left || $0.kind == .disconnected }
        await server.stop()
        #expect(diagnosis.wasInterrupted && diagnosis.failure == nil)
        #expect(diagnosis.stages.last?.stage == .srtp)
        #expect(diagnosis.jsonText.contains("interrupted"))
        #expect(left)
    }
}
