import Foundation
import Testing

/// The house of docs/ARCHITECTURE.md, kept true: what may import what, read from the sources.
@Suite struct ArchitectureTests {
    struct Module {
        var name: String
        var uses: Set<String>
    }

    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The rows of the module table in Package.swift.
    static let modules: [String: Module] = {
        guard let text = try? String(contentsOf: root.appending(path: "Package.swift"), encoding: .utf8) else {
            return [:]
        }
        let row = #/Module\(\s*name: "(\w+)"(?:,\s*uses: \[([^\]]*)\])?(?:,\s*usesForMedia: \[([^\]]*)\])?/#
        var result: [String: Module] = [:]
        for match in text.matches(of: row) {
            let lists = [match.output.2, match.output.3].compactMap { $0.map(String.init) }.joined(separator: ",")
            let names = lists.matches(of: #/"(\w+)"/#).map { String($0.output.1) }
            result[String(match.output.1)] = Module(name: String(match.output.1), uses: Set(names))
        }
        return result
    }()

    static func swiftFiles(of module: String) -> [URL] {
        let folder = root.appending(path: "Sources/\(module)")
        let all = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
        return (all?.compactMap { $0 as? URL } ?? []).filter { $0.pathExtension == "swift" }
    }

    static func imports(of file: URL) throws -> [String] {
        let text = try String(contentsOf: file, encoding: .utf8)
        return text.matches(
            of:
                #/(?m)^\s*(?:@\w+(?:\(\w+\))?\s+)*(?:(?:public|package|internal|private)\s+)?import\s+(?:(?:struct|class|enum|func)\s+)?(\w+)/#
        )
        .map { String($0.output.1) }
    }

    @Test func theModuleTableIsReadable() {
        #expect(Self.modules.count > 20)
        #expect(Self.modules["SoraPeer"]?.uses.contains("SoraICE") == true)
    }

    @Test func everyImportIsInTheModuleTable() throws {
        let ours = Set(Self.modules.keys)
        for module in Self.modules.values where module.name != "SoraBenchmarks" {
            for file in Self.swiftFiles(of: module.name) {
                for imported in try Self.imports(of: file) where ours.contains(imported) {
                    #expect(
                        module.uses.contains(imported),
                        "\(module.name)/\(file.lastPathComponent) imports \(imported), which its row in Package.swift does not list"
                    )
                }
            }
        }
    }

    @Test func arrowsPointDownwardsOnly() {
        // A circle would make some module reach itself.
        for start in Self.modules.keys {
            var seen = Set<String>()
            var queue = Array(Self.modules[start]?.uses ?? [])
            while let name = queue.popLast() {
                guard seen.insert(name).inserted else { continue }
                #expect(name != start, "\(start) reaches itself")
                queue += Self.modules[name]?.uses ?? []
            }
        }
    }

    @Test(arguments: ["SoraWire", "SoraSDP", "SoraICE", "SoraSCTP", "SoraRTP", "SoraEmulator"])
    func protocolLayersDoWithoutFoundation(module: String) throws {
        for file in Self.swiftFiles(of: module) {
            let imports = try Self.imports(of: file)
            #expect(!imports.contains { $0.hasPrefix("Foundation") }, "\(file.lastPathComponent)")
        }
    }

    @Test(arguments: [
        "SoraClient", "SoraPeer", "SoraSDP", "SoraICE", "SoraSCTP", "SoraRTP", "SoraSecureTransport", "SoraHTTP",
        "SoraWebM",
        "SoraMessages",
    ])
    func sansIOModulesOwnNoClockSocketOrThread(module: String) throws {
        let forbidden =
            #/\b(ContinuousClock|SuspendingClock|DispatchQueue|Thread\.|pthread_|clock_gettime|gettimeofday|Task\.sleep|usleep|print\()/#
        for file in Self.swiftFiles(of: module) {
            for (index, line) in try String(contentsOf: file, encoding: .utf8).split(
                separator: "\n", omittingEmptySubsequences: false
            ).enumerated() {
                let code = line.split(separator: "//", maxSplits: 1, omittingEmptySubsequences: false).first ?? ""
                let isClean = code.firstMatch(of: forbidden) == nil
                #expect(
                    isClean, "\(module)/\(file.lastPathComponent):\(index + 1): \(line)")
            }
        }
    }

    /// A sans-IO machine has one owner; and there is one lock, because the thread sanitizer must see it.
    @Test func locksAreOfOneKindAndAboveTheMachines() throws {
        for module in Self.modules.values where module.name.hasPrefix("Sora") || module.name == "LocalSora" {
            guard module.name != "SoraLocking" else { continue }
            for file in Self.swiftFiles(of: module.name) {
                let text = try String(contentsOf: file, encoding: .utf8)
                let isClean = text.firstMatch(of: #/\b(Mutex[<(]|pthread_mutex_)/#) == nil
                #expect(isClean, "\(module.name)/\(file.lastPathComponent) has a lock that is not Locked")
            }
        }
        let machines = [
            "SoraClient", "SoraPeer", "SoraSDP", "SoraICE", "SoraSCTP", "SoraRTP", "SoraSecureTransport", "SoraHTTP",
            "SoraMessages", "SoraCrypto", "SoraEmulator", "SoraWire",
        ]
        for name in machines { #expect(Self.modules[name]?.uses.contains("SoraLocking") == false, "\(name)") }
    }

    @Test func theServerNeverDecodes() {
        let reached = Self.modules["LocalSora"].map { Set($0.uses) } ?? []
        #expect(reached.isDisjoint(with: ["SoraMedia", "SoraCodecs", "SoraDevices", "SoraFrames"]))
    }
}
