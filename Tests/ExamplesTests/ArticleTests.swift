import Foundation
import Testing

/// The articles of the documentation: their code is code of this test target, and they build without a warning.
@Suite struct ArticleTests {
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    static let catalogue = root.appendingPathComponent("Sources/Sora/Sora.docc")
    static let articles = [
        "CallbacksAndEvents", "CameraAndViews", "ErrorsAndReconnecting", "GettingStarted", "Messaging",
        "MovingFromIOS", "RemoteProcedureCalls", "Sora", "TestingAgainstTheLocalServer",
    ]

    /// Lines of the compiled snippets without indentation and without empty ones.
    static let snippets: [[String]] = {
        let folder = root.appendingPathComponent("Tests/ExamplesTests/Snippets")
        let files = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
        return files.compactMap { try? String(contentsOf: $0, encoding: .utf8) }.map(lines)
    }()

    /// Lines without indentation and comments, and without those that are empty then.
    static func lines(_ text: String) -> [String] {
        text.split(separator: "\n").map { line in
            let code = line.hasPrefix("//") ? "" : line.components(separatedBy: " //")[0]
            return code.trimmingCharacters(in: .whitespaces)
        }.filter { !$0.isEmpty && !$0.hasPrefix("import ") }
    }

    static func article(_ name: String) throws -> String {
        try String(contentsOf: catalogue.appendingPathComponent("\(name).md"), encoding: .utf8)
    }

    /// The Swift code of a text.
    static func code(in text: String) -> [String] {
        text.components(separatedBy: "```swift\n").dropFirst().map { $0.components(separatedBy: "\n```")[0] }
    }

    static func isManifest(_ code: String) -> Bool { code.hasPrefix("// swift-tools-version") }

    /// Declarations of a block: each begins with an unindented line behind an empty one.
    static func declarations(_ code: String) -> [[String]] {
        var parts = [""]
        for paragraph in code.components(separatedBy: "\n\n") {
            if paragraph.first?.isWhitespace == true {
                parts[parts.count - 1] += "\n" + paragraph
            } else {
                parts.append(paragraph)
            }
        }
        return parts.map(lines).filter { !$0.isEmpty }
    }

    static func occurs(_ wanted: [String], in file: [String]) -> Bool {
        guard wanted.count <= file.count else { return false }
        return (0...(file.count - wanted.count)).contains { Array(file[$0..<($0 + wanted.count)]) == wanted }
    }

    @Test func noArticleIsForgotten() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.catalogue.path)
        #expect(files.sorted() == Self.articles.map { "\($0).md" })
    }

    @Test(arguments: articles) func everyLineOfCodeIsCompiled(name: String) throws {
        let blocks = Self.code(in: try Self.article(name)).filter { !Self.isManifest($0) }
        #expect(!blocks.isEmpty || name == "Sora")
        for declaration in blocks.flatMap(Self.declarations) {
            #expect(
                Self.snippets.contains { Self.occurs(declaration, in: $0) },
                "this code of \(name).md is in no file of Tests/ExamplesTests/Snippets: \(declaration.joined(separator: "\n"))"
            )
        }
    }

    @Test func codeOfTheReadmeIsCompiled() throws {
        let text = try String(contentsOf: Self.root.appendingPathComponent("README.md"), encoding: .utf8)
        let blocks = Self.code(in: text).filter { !$0.hasPrefix("// Package.swift") }
        #expect(!blocks.isEmpty)
        for declaration in blocks.flatMap(Self.declarations) {
            #expect(
                Self.snippets.contains { Self.occurs(declaration, in: $0) },
                "this code of README.md is in no file of Tests/ExamplesTests/Snippets: \(declaration.joined(separator: "\n"))"
            )
        }
    }

    @Test(arguments: ["fault-injection", "local-server"]) func codeOfTheServersDocumentsIsCompiled(name: String) throws
    {
        let text = try String(contentsOf: Self.root.appendingPathComponent("docs/\(name).md"), encoding: .utf8)
        let blocks = Self.code(in: text)
        #expect(!blocks.isEmpty)
        for declaration in blocks.flatMap(Self.declarations) {
            #expect(
                Self.snippets.contains { Self.occurs(declaration, in: $0) },
                "this code of docs/\(name).md is in no file of Tests/ExamplesTests/Snippets: \(declaration.joined(separator: "\n"))"
            )
        }
    }

    @Test func codeThatIsNotCompiledIsFound() {
        #expect(!Self.occurs(["let a = 1"], in: ["let b = 1"]))
        #expect(Self.declarations("import Sora\n\nfunc a() {\n    b()\n\n    c()\n}").map(\.count) == [4])
    }

    @Test(.timeLimit(.minutes(2)), arguments: ["GettingStarted", "MovingFromIOS"])
    func manifestsAreReadable(name: String) throws {
        let manifest = try #require(Self.code(in: try Self.article(name)).first(where: Self.isManifest))
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("manifest-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try manifest.write(to: folder.appendingPathComponent("Package.swift"), atomically: true, encoding: .utf8)
        let (status, output) = try run("swift", ["package", "--package-path", folder.path, "dump-package"])
        #expect(status == 0, "\(output)")
        #expect(output.contains("sora-swift") && !output.contains("sora-ios-sdk"), "\(output)")
    }

    @Test(.timeLimit(.minutes(3))) func theDocumentationBuildsWithoutAWarning() throws {
        let products = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let output = FileManager.default.temporaryDirectory.appendingPathComponent("docs-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: output) }
        let script = Self.root.appendingPathComponent("scripts/docs.sh").path
        let (status, text) = try run(script, ["--products", products.path, "--output", output.path])
        #expect(status == 0 && !text.contains("warning:"), "\(text)")
        for page in ["gettingstarted", "mediachannel", "sora/connect(configuration:prepare:)"] {
            let file = output.appendingPathComponent("data/documentation/sora/\(page).json")
            #expect(FileManager.default.fileExists(atPath: file.path), "\(page) has no page")
        }
    }

    private func run(_ program: String, _ arguments: [String]) throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [program] + arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: output, as: UTF8.self))
    }
}
