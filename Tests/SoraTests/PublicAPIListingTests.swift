import Foundation
import SoraLocking
import Testing

/// The public surface of the SDK is written down in `docs/api/Sora.txt`. A change of the surface fails here until the
/// listing is made anew on purpose: `UPDATE_API_LISTING=1 swift test --filter PublicAPIListingTests`.
@Suite struct PublicAPIListingTests {
    @Test func thePublicSurfaceIsAsWrittenDown() throws {
        let listing = try APIListing.current(module: "Sora")
        #expect(listing.contains("Sora.connect(configuration:webRTCConfiguration:handler:)"))
        let file = APIListing.root.appendingPathComponent("docs/api/Sora.txt")
        if ProcessInfo.processInfo.environment["UPDATE_API_LISTING"] == "1" {
            try listing.write(to: file, atomically: true, encoding: .utf8)
        }
        let written = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        let difference = listing.split(separator: "\n").difference(from: written.split(separator: "\n"))
        let lines = difference.map { change in
            switch change {
            case .insert(_, let line, _): "+ \(line)"
            case .remove(_, let line, _): "- \(line)"
            }
        }
        #expect(lines == [], "the public surface changed; if on purpose, make the listing anew (see this suite)")
    }
}

/// Makes the listing of a built module from its symbol graph.
enum APIListing {
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    static func current(module: String) throws -> String {
        let products = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let output = FileManager.default.temporaryDirectory.appendingPathComponent("symbols-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: output, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: output) }
        try extract(module, from: products, to: output)
        let data = try Data(contentsOf: output.appendingPathComponent("\(module).symbols.json"))
        guard let graph = try JSONSerialization.jsonObject(with: data) as? [String: Any] else {
            throw Failure(description: "the symbol graph is no object")
        }
        return listing(graph)
    }

    private static func extract(_ module: String, from products: URL, to output: URL) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            [
                "swift", "symbolgraph-extract", "-module-name", module, "-I",
                products.appendingPathComponent("Modules").path, "-target", "\(architecture)-unknown-linux-gnu",
                "-output-dir", output.path, "-minimum-access-level", "public", "-skip-synthesized-members",
            ]
        process.arguments? += try clangArguments(products)
        let pipe = Pipe()
        process.standardError = pipe
        process.standardOutput = pipe
        try process.run()
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Failure(description: "swift symbolgraph-extract failed: \(text)")
        }
    }

    /// Where the C modules are that the module imports internally: our own module maps and the headers they name.
    private static func clangArguments(_ products: URL) throws -> [String] {
        let sources = root.appendingPathComponent("Sources")
        var arguments: [String] = []
        for folder in try FileManager.default.contentsOfDirectory(atPath: sources.path).sorted() {
            for place in ["module.modulemap", "include/module.modulemap"] {
                let map = sources.appendingPathComponent("\(folder)/\(place)")
                guard FileManager.default.fileExists(atPath: map.path) else { continue }
                arguments += ["-Xcc", "-fmodule-map-file=\(map.path)"]
            }
            let include = sources.appendingPathComponent("\(folder)/include")
            if FileManager.default.fileExists(atPath: include.path) { arguments += ["-Xcc", "-I\(include.path)"] }
        }
        for library in ["openssl", "opus", "vpx", "gstreamer-video-1.0", "gstreamer-app-1.0", "sdl2", "libpulse"] {
            for flag in packageFlags(library) { arguments += ["-Xcc", flag] }
        }
        // C targets have maps that the build made.
        for folder in try FileManager.default.contentsOfDirectory(atPath: products.path).sorted() {
            let map = products.appendingPathComponent("\(folder)/module.modulemap")
            if FileManager.default.fileExists(atPath: map.path) {
                arguments += ["-Xcc", "-fmodule-map-file=\(map.path)"]
            }
        }
        return arguments
    }

    /// Include paths of a library; none if it is not installed.
    private static func packageFlags(_ library: String) -> [String] {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["pkg-config", "--cflags-only-I", library]
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return [] }
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return text.split { $0 == " " || $0.isNewline }.map(String.init)
    }

    private static var architecture: String {
        #if arch(arm64)
        "aarch64"
        #else
        "x86_64"
        #endif
    }

    /// One line per symbol: its path, then its declaration; types with what they conform to.
    private static func listing(_ graph: [String: Any]) -> String {
        var conformances: [String: Set<String>] = [:]
        for relationship in graph["relationships"] as? [[String: Any]] ?? [] {
            guard let kind = relationship["kind"] as? String, kind == "conformsTo" || kind == "inheritsFrom",
                let source = relationship["source"] as? String,
                let target = relationship["targetFallback"] as? String ?? name(relationship["target"], graph)
            else { continue }
            let plain = target.hasPrefix("Swift.") ? String(target.dropFirst(6)) : target
            conformances[source, default: []].insert(plain)
        }
        var lines: [String] = []
        for symbol in graph["symbols"] as? [[String: Any]] ?? [] {
            guard let path = symbol["pathComponents"] as? [String],
                let identifier = (symbol["identifier"] as? [String: Any])?["precise"] as? String,
                let fragments = symbol["declarationFragments"] as? [[String: Any]]
            else { continue }
            var declaration = fragments.compactMap { $0["spelling"] as? String }.joined()
            declaration = declaration.split { $0.isNewline || $0 == " " }.joined(separator: " ")
            if let names = conformances[identifier] {
                declaration +=
                    " : "
                    + names.filter { $0 != "Copyable" && $0 != "Escapable" && $0 != "SendableMetatype" }
                    .sorted().joined(separator: ", ")
            }
            lines.append("\(path.joined(separator: "."))\t\(declaration)")
        }
        return Set(lines).sorted().joined(separator: "\n") + "\n"
    }

    private static func name(_ target: Any?, _ graph: [String: Any]) -> String? {
        guard let target = target as? String else { return nil }
        for symbol in graph["symbols"] as? [[String: Any]] ?? []
        where (symbol["identifier"] as? [String: Any])?["precise"] as? String == target {
            return (symbol["pathComponents"] as? [String])?.joined(separator: ".")
        }
        return target
    }
}
