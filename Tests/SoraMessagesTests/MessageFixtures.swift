import Foundation
import SoraMessages
import Testing

/// Recorded messages, found relative to this file.
enum MessageFixtures {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Fixtures/signaling")

    static let names: [String] =
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [])
        .filter { $0.hasSuffix(".json") }.sorted()

    static func names(_ prefix: String) -> [String] { names.filter { $0.hasPrefix(prefix) } }

    static func text(_ name: String) throws -> String {
        try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
    }

    static func json(_ name: String) throws -> JSONValue { try JSONValue(parsing: text(name)) }

    /// Every object with a `type` string inside a fixture, as whole messages.
    static func messages(_ name: String) throws -> [JSONValue] {
        let json = try json(name)
        guard name.hasPrefix("flow") else { return json.arrayValue ?? [json] }
        return json.arrayValue?.compactMap { entry in
            guard case .object(var message)? = entry.objectValue?["message"] else { return nil }
            // The recordings leave statistics out; an empty list takes their place.
            for key in ["stats", "reports"] where message[key]?.stringValue != nil { message[key] = [] }
            return .object(message)
        } ?? []
    }

    static func bytes(hex: String) -> [UInt8] {
        let digits = Array(hex.utf8)
        return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(decoding: digits[$0...($0 + 1)], as: UTF8.self), radix: 16)
        }
    }
}
