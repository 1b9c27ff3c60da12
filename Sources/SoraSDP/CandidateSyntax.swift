// Syntax of tokens that descriptions carry: numbers, ICE strings, candidates, fingerprints.

extension Substring {
    /// Without spaces at both ends.
    var trimmingSpaces: Substring {
        var view = utf8
        while view.first == UInt8(ascii: " ") { view = view.dropFirst() }
        while view.last == UInt8(ascii: " ") { view = view.dropLast() }
        return Substring(view)
    }

    /// The words between spaces; runs of spaces count as one.
    var words: [Substring] {
        utf8.split(separator: UInt8(ascii: " ")).map { Substring($0) }
    }

    /// Splits at the first `separator`, which is in neither half; nil without one.
    func splitOnce(_ separator: Unicode.Scalar) -> (Substring, Substring)? {
        guard let index = utf8.firstIndex(of: UInt8(truncatingIfNeeded: separator.value)) else { return nil }
        return (self[..<index], self[utf8.index(after: index)...])
    }
}

/// A decimal number of digits only, at most `maximum`.
func decimal(_ text: some StringProtocol, maximum: UInt64) -> UInt64? {
    let digits = text.utf8
    guard !digits.isEmpty, digits.count <= 20 else { return nil }
    var value: UInt64 = 0
    for digit in digits {
        guard (48...57).contains(digit) else { return nil }
        let (scaled, overflowed) = value.multipliedReportingOverflow(by: 10)
        let (sum, carried) = scaled.addingReportingOverflow(UInt64(digit &- 48))
        guard !overflowed, !carried else { return nil }
        value = sum
    }
    return value <= maximum ? value : nil
}

func isHexadecimalDigit(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (65...70).contains(byte) || (97...102).contains(byte)
}

/// Characters of user names, passwords and foundations: `ice-char` of RFC 8839, and the four that
/// some senders use beside them.
func isICECharacter(_ byte: UInt8) -> Bool {
    switch byte {
    case 48...57, 65...90, 97...122: true
    case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "="),
        UInt8(ascii: "#"):
        true
    default: false
    }
}

/// `token` of RFC 8866.
func isToken(_ text: some StringProtocol) -> Bool {
    !text.isEmpty
        && text.utf8.allSatisfy { byte in
            switch byte {
            case 0x21, 0x23...0x27, 0x2A...0x2B, 0x2D...0x2E, 0x30...0x39, 0x41...0x5A, 0x5E...0x7E: true
            default: false
            }
        }
}

/// Hash name and colon-separated bytes (RFC 8122, 5); the number of bytes must fit a known hash.
func isFingerprint(_ text: Substring) -> Bool {
    let words = text.words
    guard words.count == 2, isToken(words[0]) else { return false }
    let pairs = words[1].utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard pairs.allSatisfy({ $0.count == 2 && $0.allSatisfy(isHexadecimalDigit) }) else { return false }
    let length: Int? =
        switch words[0].lowercased() {
        case "md5", "md2": 16
        case "sha-1": 20
        case "sha-224": 28
        case "sha-256": 32
        case "sha-384": 48
        case "sha-512": 64
        default: nil
        }
    return length.map { $0 == pairs.count } ?? true
}

/// Whether `value` (what follows `candidate:`) fits the grammar of RFC 8839, 5.1 and, for TCP,
/// RFC 6544, 4.5. Fields are taken by their places; nothing is guessed. A transport other than UDP and
/// TCP is correct syntax, to be ignored by whoever uses it.
package func isCandidate(_ value: Substring) -> Bool {
    // Split without joining runs of spaces, so that an empty foundation is seen as one.
    let fields = value.utf8.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).map { Substring($0) }
    guard fields.count >= 8, fields.allSatisfy({ !$0.isEmpty }) else { return false }
    guard fields[0].utf8.count <= 32, fields[0].utf8.allSatisfy(isICECharacter) else { return false }
    guard let component = decimal(fields[1], maximum: 256), component >= 1 else { return false }
    guard isToken(fields[2]), decimal(fields[3], maximum: UInt64(UInt32.max)) != nil else { return false }
    guard decimal(fields[5], maximum: 65_535) != nil, fields[6] == "typ" else { return false }
    guard ["host", "srflx", "prflx", "relay"].contains(fields[7]) else { return false }
    let extensions = fields[8...]
    guard extensions.count % 2 == 0 else { return false }
    var tcpType: Substring?
    var position = extensions.startIndex
    while position < extensions.endIndex {
        let value = extensions[position + 1]
        switch extensions[position] {
        case "rport": if decimal(value, maximum: 65_535) == nil { return false }
        case "tcptype":
            guard ["active", "passive", "so"].contains(value) else { return false }
            tcpType = value
        default: break
        }
        position += 2
    }
    return fields[2].lowercased() != "tcp" || tcpType != nil
}
