import Foundation
import LocalSora
import SoraMessages
import Testing

@Suite("Documents of the server", .serialized, .leavesNoObjects) struct DocumentTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
    }

    /// SAF7 (pitfalls 13): a test that is named must exist.
    @Test func everyTestThatSecurityNamesExists() throws {
        let names = try text("SECURITY.md").matches(of: #/`([a-z]\w{12,})`/#).map { String($0.output.1) }
        #expect(names.count > 30)
        var sources = ""
        let files = FileManager.default.enumerator(
            at: Self.root.appending(path: "Tests"), includingPropertiesForKeys: nil)
        for case let file as URL in files?.allObjects ?? [] where file.lastPathComponent.hasSuffix("Tests.swift") {
            sources += try String(contentsOf: file, encoding: .utf8)
        }
        for name in names { #expect(sources.contains("func \(name)("), "\(name)") }
    }

    @Test func everyFaultInTheDocumentationCanBeRead() throws {
        let document = try text("docs/fault-injection.md")
        let flags = document.matches(of: #/--fault (fault=[^`\s]+)/#).map { String($0.output.1) }
        #expect(flags.count >= 10)
        for flag in flags { #expect(throws: Never.self, "\(flag)") { try Fault(parsing: flag) } }
        for match in document.matches(of: #/-d '(\{"fault".*?\})'/#) {
            let json = try #require(try JSONValue(parsing: String(match.output.1)).objectValue)
            #expect(throws: Never.self) { try Fault(json: json) }
        }
    }

    @Test func everyCallInTheDocumentationExists() async throws {
        let document = try text("docs/local-server.md")
        let names = document.matches(of: #/`((?:Sora_\d{8}|LocalSora)\.\w+)`/#).map { String($0.output.1) }
        #expect(names.count > 10)
        try await withServer { server in
            for name in names where !name.hasSuffix("Create") {
                let answer = try await server.call(name)
                #expect(answer.json.objectValue?["error_type"] != "UNKNOWN-TARGET", "\(name)")
            }
        }
    }

    @Test func documentedLimitsAreTheDefaults() throws {
        let configuration = ServerConfiguration()
        #expect(configuration.connectTimeout == .seconds(5))
        #expect(configuration.maximumMessagesPerSecond == 100)
        #expect(configuration.maximumWaitingSocketsPerAddress == 1000)
        #expect(configuration.maximumSockets == 10_000)
        #expect(configuration.maximumConnectionsPerChannel == 1000)
        #expect(configuration.maximumChannels == 10_000)
        #expect(configuration.answerTimeout == .seconds(30))
        #expect(configuration.silenceTimeout == .seconds(60))
        #expect(configuration.maximumSignalingMessageSize == 1 << 20)
        #expect(configuration.maximumBufferedSignalingBytes == 4 << 20)
        #expect(configuration.maximumRequestHeadSize == 16 << 10)
        #expect(configuration.maximumRequestBodySize == 1 << 20)
        #expect(configuration.maximumMessageSize == 256 << 10)
        #expect(configuration.maximumBufferedMessageBytes == 8 << 20)
        #expect(configuration.maximumDataMessagesPerSecond == 50_000)
        #expect(configuration.maximumDataBytesPerSecond == 256 << 20)
    }
}
