extension String {
    /// The text with control characters and line separators written as escapes (`\n`, `\u{1B}`): for logs and
    /// terminals, where text from the wire must stay on its line.
    package var escapingControlCharacters: String {
        func isControl(_ scalar: Unicode.Scalar) -> Bool {
            switch scalar.value {
            case 0x00...0x1F, 0x7F...0x9F, 0x2028, 0x2029: true
            // Marks that reorder what is seen.
            case 0x202A...0x202E, 0x2066...0x2069: true
            default: false
            }
        }
        guard unicodeScalars.contains(where: isControl) else { return self }
        var text = ""
        for scalar in unicodeScalars {
            if !isControl(scalar) {
                text.unicodeScalars.append(scalar)
            } else if scalar == "\n" {
                text += "\\n"
            } else {
                text += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            }
        }
        return text
    }
}
