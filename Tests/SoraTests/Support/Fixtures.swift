import Foundation

/// Files of `Tests/Fixtures`, found relative to this source file.
enum Fixtures {
    static func signaling(_ name: String) -> Data? {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return try? Data(contentsOf: tests.appendingPathComponent("Fixtures/signaling/\(name)"))
    }
}
