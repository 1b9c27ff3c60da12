import Foundation
import SoraSDP
import SoraWire
import Testing

/// Recorded descriptions, found relative to this file.
enum SDPFixtures {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Fixtures/signaling")

    static let names: [String] =
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [])
        .filter { $0.hasSuffix(".sdp") }.sorted()

    static func text(_ name: String) throws -> String {
        try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
    }

    /// Every description inside the JSON fixtures: the values of keys named `sdp`.
    static func embedded() throws -> [(file: String, text: String)] {
        var found: [(file: String, text: String)] = []
        func collect(_ value: Any, _ file: String) {
            if let object = value as? [String: Any] {
                for (key, item) in object {
                    if key == "sdp", let text = item as? String, text.hasPrefix("v=0") { found.append((file, text)) }
                    collect(item, file)
                }
            } else if let list = value as? [Any] {
                for item in list { collect(item, file) }
            }
        }
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name.hasSuffix(".json") {
            let data = try Data(contentsOf: folder.appendingPathComponent(name))
            collect(try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed), name)
        }
        return found
    }
}

@Suite struct SDPFixtureTests {
    @Test(arguments: SDPFixtures.names)
    func recordedDescriptionSurvivesParseAndWrite(name: String) throws {
        let text = try SDPFixtures.text(name)
        let first = try SessionDescription(parsing: text)
        let second = try SessionDescription(parsing: first.serialized())
        #expect(first == second)
        // No line may be lost: attributes are written once each, in our order.
        let lines = { (text: String) in
            Set(
                text.split(whereSeparator: \.isNewline).map {
                    $0.replacingOccurrences(of: "semantic: ", with: "semantic:")
                })
        }
        #expect(lines(text).subtracting(lines(first.serialized())) == [])
    }

    @Test func descriptionsInsideMessagesSurviveParseAndWrite() throws {
        let all = try SDPFixtures.embedded()
        #expect(all.count > 10)
        for (file, text) in all {
            let first = try SessionDescription(parsing: text)
            #expect(try SessionDescription(parsing: first.serialized()) == first, "\(file)")
        }
    }
}
