import Foundation
import Testing

/// Every line of the checklist of pain points (section 5 of the API's specification, 73 lines) has a test that says so.
///
/// The mark is a comment line of its own, `// api 5.17` or `// api 5.18, 5.19`, among the comments and attributes
/// directly above the test's function. Further marks of other lists may stand beside it.
@Suite struct PainPointTests {
    static let lines = 1...73

    struct Mark: Hashable {
        var number: Int
        var test: String
    }
    struct Findings {
        var marks: [Mark] = []
        var faults: [String] = []
    }

    /// The marks of one file, and what is wrong with them.
    static func findings(in text: String, file: String) -> Findings {
        var findings = Findings()
        var waiting: [(number: Int, line: Int)] = []
        var isDisabled = false
        var isTest = false
        func fault(_ line: Int, _ text: String) { findings.faults.append("\(file):\(line): \(text)") }
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let code = line.trimmingCharacters(in: .whitespaces)
            if let list = code.wholeMatch(of: #/// api ((?:5\.\d+(?:, )?)+)/#)?.output.1 {
                for match in list.matches(of: #/5\.(\d+)/#) { waiting.append((Int(match.output.1) ?? 0, index + 1)) }
                continue
            }
            if code.hasPrefix("// api 5") { fault(index + 1, "cannot read the mark \"\(code)\"") }
            // Comments do not come between a mark and its test.
            if code.hasPrefix("//") { continue }
            if code.contains("@Test") { isTest = true }
            if code.contains(".disabled") { isDisabled = true }
            if let name = code.firstMatch(of: #/\bfunc (\w+)\(/#)?.output.1, isTest {
                for (number, line) in waiting {
                    let mark = Mark(number: number, test: "\(file) \(name)")
                    if !lines.contains(number) { fault(line, "there is no line \(number)") }
                    if isDisabled { fault(line, "the test of 5.\(number) is disabled") }
                    if findings.marks.contains(mark) { fault(line, "5.\(number) stands twice at one test") }
                    findings.marks.append(mark)
                }
                (waiting, isTest, isDisabled) = ([], false, false)
                continue
            }
            // Attributes may go over several lines; anything else ends the run.
            guard !isTest else { continue }
            for (number, line) in waiting { fault(line, "no test follows the mark 5.\(number)") }
            waiting = []
        }
        for (number, line) in waiting { fault(line, "no test follows the mark 5.\(number)") }
        return findings
    }

    static func findings() throws -> Findings {
        let folder = ArchitectureTests.root.appending(path: "Tests")
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
        var whole = Findings()
        for case let file as URL in files ?? .init() where file.pathExtension == "swift" {
            // The examples of this file are no tests.
            guard file.lastPathComponent != "PainPointTests.swift" else { continue }
            let part = findings(in: try String(contentsOf: file, encoding: .utf8), file: file.lastPathComponent)
            whole.marks += part.marks
            whole.faults += part.faults
        }
        return whole
    }

    @Test func everyPainPointHasATest() throws {
        let findings = try Self.findings()
        #expect(findings.faults == [])
        let covered = Set(findings.marks.map(\.number))
        let missing = Self.lines.filter { !covered.contains($0) }
        #expect(missing == [], "lines of the checklist without a test marked `// api 5.N`")
    }

    @Test func marksThatProveNothingAreFound() {
        func faults(_ text: String) -> [String] { Self.findings(in: text, file: "f").faults }
        func numbers(_ text: String) -> [Int] { Self.findings(in: text, file: "f").marks.map(\.number) }
        #expect(numbers("// api 5.1\n@Test func a() {}") == [1] && faults("// api 5.1\n@Test func a() {}") == [])
        let rich =
            "    // api 5.7, 5.8\n    // LIF5: why\n    @Test(\n        arguments: [1]\n    )\n    func a(x: Int) {}"
        #expect(numbers(rich) == [7, 8] && faults(rich) == [])
        #expect(numbers("// api 5.2\n// api 5.3\n@Test @MainActor func a() {}") == [2, 3])
        #expect(faults("// api 5.1\nfunc a() {}") == ["f:1: no test follows the mark 5.1"])
        #expect(faults("// api 5.1\n\n@Test func a() {}") == ["f:1: no test follows the mark 5.1"])
        #expect(faults("// api 5.1") == ["f:1: no test follows the mark 5.1"])
        #expect(faults("// api 5.74\n@Test func a() {}") == ["f:1: there is no line 74"])
        #expect(faults("// api 5.1\n// api 5.1\n@Test func a() {}") == ["f:2: 5.1 stands twice at one test"])
        #expect(faults("// api 5.1\n@Test(.disabled()) func a() {}") == ["f:1: the test of 5.1 is disabled"])
        #expect(faults("// api 5(1)\n@Test func a() {}") == ["f:1: cannot read the mark \"// api 5(1)\""])
        #expect(numbers("// no api 5.1 here\n@Test func a() {}") == [])
    }
}
