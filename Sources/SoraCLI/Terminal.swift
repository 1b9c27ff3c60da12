import Foundation

/// Where words go: results to standard output, everything else to standard error.
enum Terminal {
    /// One result, a line (or a text) on standard output.
    static func result(_ text: String) { write(text + "\n", to: FileHandle.standardOutput) }
    /// One result as a JSON object on one line.
    static func result(_ object: [String: Any]) {
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? JSONSerialization.data(withJSONObject: object, options: options) else { return }
        write(String(decoding: data, as: UTF8.self) + "\n", to: FileHandle.standardOutput)
    }
    /// One line of the log on standard error.
    static func log(_ text: String) { write(text + "\n", to: FileHandle.standardError) }
    /// Text without a line end on standard error, for progress.
    static func raw(_ text: String) { write(text, to: FileHandle.standardError) }
    /// The one sentence that says why the command failed.
    static func error(_ text: String) { write("sora: \(text)\n", to: FileHandle.standardError) }

    private static func write(_ text: String, to handle: FileHandle) {
        // A reader that went away is no fault of ours.
        try? handle.write(contentsOf: Data(text.utf8))
    }
}
