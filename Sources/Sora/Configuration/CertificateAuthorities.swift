import Foundation

/// The certificate authorities of ``Configuration/caCertificate`` as DER.
struct CertificateAuthorities: Sendable {
    let certificates: [[UInt8]]

    private static let begin = "-----BEGIN CERTIFICATE-----"
    private static let end = "-----END CERTIFICATE-----"

    /// Takes the PEM blocks out of `pem`; text around them is ignored.
    init(pem: String) throws(SoraError) {
        var found: [[UInt8]] = []
        var rest = pem[...]
        while let start = rest.range(of: Self.begin) {
            guard let stop = rest.range(of: Self.end, range: start.upperBound..<rest.endIndex) else { break }
            let base64 = rest[start.upperBound..<stop.lowerBound].filter { !$0.isWhitespace }
            guard !base64.isEmpty, let der = Data(base64Encoded: String(base64)) else {
                throw .configurationError(reason: "failed to decode Base64 in PEM block")
            }
            let bytes = [UInt8](der)
            guard Self.looksLikeCertificate(bytes) else {
                throw .configurationError(reason: "failed to create SecCertificate from DER data")
            }
            found.append(bytes)
            rest = rest[stop.upperBound...]
        }
        guard !found.isEmpty else {
            throw .configurationError(reason: "caCertificate contains no valid PEM blocks")
        }
        certificates = found
    }

    /// The outer form of an X.509 certificate (RFC 5280, 4.1): one SEQUENCE that fills the bytes and holds three
    /// elements, SEQUENCE, SEQUENCE, BIT STRING. The TLS library looks at the rest when it loads it.
    private static func looksLikeCertificate(_ der: [UInt8]) -> Bool {
        guard let outer = element(der, at: 0), outer.tag == 0x30, outer.end == der.count else { return false }
        var tags: [UInt8] = []
        var cursor = outer.start
        while cursor < outer.end {
            guard let inner = element(der, at: cursor), inner.end <= outer.end else { return false }
            tags.append(inner.tag)
            cursor = inner.end
        }
        return tags == [0x30, 0x30, 0x03]
    }

    /// Tag, start and end of the content of the DER element at `index`.
    private static func element(_ bytes: [UInt8], at index: Int) -> (tag: UInt8, start: Int, end: Int)? {
        guard index + 2 <= bytes.count else { return nil }
        var cursor = index + 2
        var length = Int(bytes[index + 1])
        if length >= 0x80 {
            let count = length - 0x80
            guard (1...4).contains(count), cursor + count <= bytes.count else { return nil }
            length = bytes[cursor..<(cursor + count)].reduce(0) { $0 << 8 | Int($1) }
            cursor += count
        }
        guard length <= bytes.count - cursor else { return nil }
        return (bytes[index], cursor, cursor + length)
    }
}
