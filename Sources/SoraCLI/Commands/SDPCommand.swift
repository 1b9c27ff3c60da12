import Foundation
import SoraDiagnostics

/// `sora sdp`: reads session descriptions.
enum SDPCommand {
    static let definition = CommandDefinition(
        name: "sdp",
        abstract: "Explains and compares session descriptions.",
        subcommands: [explain, diff])

    private static let explain = CommandDefinition(
        name: "explain",
        abstract: "Explains a session description in plain words and says what will fail.",
        discussion: """
            FILE holds SDP, or JSON of signaling messages with SDP in them. ICE credentials and TURN passwords are
            masked.
            Exits with 81 if the description cannot work.
            """,
        options: [.flag("json", "Prints one JSON object for each description.")],
        operands: [OperandDefinition(name: "file", help: "The file, or - for standard input.")],
        run: runExplain)

    private static let diff = CommandDefinition(
        name: "diff",
        abstract: "Says what changed between two session descriptions.",
        discussion: """
            Compares by meaning: codecs, directions, transport, streams. The order of lines makes no difference.
            Exits with 1 if they differ.
            """,
        options: [.flag("json", "Prints one JSON object for each change.")],
        operands: [
            OperandDefinition(name: "before", help: "The first file, or - for standard input."),
            OperandDefinition(name: "after", help: "The second file."),
        ],
        run: runDiff)

    private static func runExplain(_ arguments: ParsedArguments) async throws -> ExitStatus {
        var hasFaults = false
        for (index, document) in try documents(arguments.operands[0]).enumerated() {
            let explanation = SDPExplanation(document)
            hasFaults = hasFaults || explanation.hasFaults
            if arguments.has("json") {
                Terminal.result(explanation.jsonText)
            } else {
                Terminal.result((index > 0 ? "\n" : "") + explanation.text)
            }
        }
        return hasFaults ? .sessionDescription : .success
    }

    private static func runDiff(_ arguments: ParsedArguments) async throws -> ExitStatus {
        let before = try only(arguments.operands[0])
        let after = try only(arguments.operands[1])
        let difference = SDPDifference(from: before.description, to: after.description)
        if arguments.has("json") {
            for change in difference.changes { Terminal.result(change.jsonText) }
        } else {
            Terminal.result(difference.text)
        }
        return difference.isEmpty ? .success : .failure
    }

    private static func only(_ path: String) throws -> SDPDocument {
        let found = try documents(path)
        guard found.count == 1 else {
            throw CommandFailure(
                .noInput, "\(path) holds \(found.count) session descriptions; a comparison takes one a file")
        }
        return found[0]
    }

    private static func documents(_ path: String) throws -> [SDPDocument] {
        let data: Data
        if path == "-" {
            data = FileHandle.standardInput.readDataToEndOfFile()
        } else {
            do {
                data = try Data(contentsOf: URL(fileURLWithPath: path))
            } catch {
                throw CommandFailure(.noInput, "cannot read \(path)")
            }
        }
        do {
            return try SDPDocument.find(in: String(decoding: data, as: UTF8.self))
        } catch {
            throw CommandFailure(.noInput, "\(path): \(error)")
        }
    }
}
