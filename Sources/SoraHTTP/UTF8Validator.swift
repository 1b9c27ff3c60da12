/// Checks UTF-8 that comes in pieces (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
///
/// Invariant: after `true`, everything so far is the beginning of valid UTF-8.
struct UTF8Validator: Sendable {
    /// Continuation bytes that must still come.
    private var missing = 0
    /// Range of the next continuation byte; narrower than 80...BF right behind some lead bytes.
    private var lowest: UInt8 = 0x80
    private var highest: UInt8 = 0xBF

    /// Whether no character is cut in half.
    var isComplete: Bool { missing == 0 }

    /// False as soon as no continuation could make the text valid.
    mutating func check(_ bytes: some Collection<UInt8>) -> Bool {
        for byte in bytes {
            if missing > 0 {
                guard byte >= lowest, byte <= highest else { return false }
                lowest = 0x80
                highest = 0xBF
                missing -= 1
                continue
            }
            if byte < 0x80 { continue }
            switch byte {
            case 0xC2...0xDF: missing = 1
            case 0xE0: (missing, lowest) = (2, 0xA0)
            case 0xED: (missing, highest) = (2, 0x9F)
            case 0xE1...0xEF: missing = 2
            case 0xF0: (missing, lowest) = (3, 0x90)
            case 0xF1...0xF3: missing = 3
            case 0xF4: (missing, highest) = (3, 0x8F)
            default: return false
            }
        }
        return true
    }
}
