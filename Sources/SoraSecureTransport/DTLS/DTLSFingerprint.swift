import SoraCrypto

/// The hash of a certificate as SDP carries it in `a=fingerprint` (RFC 8122 5).
package struct DTLSFingerprint: Hashable, Sendable, CustomStringConvertible {
    /// Name of the hash function in lower case, such as `sha-256`.
    package var algorithm: String
    package var bytes: [UInt8]

    package init(algorithm: String, bytes: [UInt8]) {
        self.algorithm = algorithm.lowercased()
        self.bytes = bytes
    }

    /// Reads `sha-256 AB:CD:…`, the value of the attribute. Names and digits may be of either case.
    ///
    /// Nil if it is malformed: not exactly two digits for each byte, or for a hash function that we
    /// know a wrong number of bytes. A function that we do not know is kept; it matches nothing.
    package init?(sdp: String) {
        let parts = sdp.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, parts[0].utf8.allSatisfy(Self.isTokenCharacter) else { return nil }
        var bytes: [UInt8] = []
        for pair in parts[1].split(separator: ":", omittingEmptySubsequences: false) {
            guard pair.utf8.count == 2, let byte = Hexadecimal.decode(String(pair)) else { return nil }
            bytes += byte
        }
        self.init(algorithm: String(parts[0]), bytes: bytes)
        if let hash = hashAlgorithm, bytes.count != hash.length { return nil }
    }

    /// The attribute's value: lower-case name, upper-case digits.
    package var sdp: String {
        algorithm + " " + bytes.map { Hexadecimal.encode([$0]).uppercased() }.joined(separator: ":")
    }

    package var description: String { sdp }

    /// Whether we accept this hash function in a peer's description: MD5 and unknown ones are not.
    package var isUsable: Bool { hashAlgorithm.map { bytes.count == $0.length } ?? false }

    var hashAlgorithm: HashAlgorithm? {
        switch algorithm {
        case "sha-1": .sha1
        case "sha-256": .sha256
        case "sha-384": .sha384
        case "sha-512": .sha512
        default: nil
        }
    }

    private static func isTokenCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    /// Whether the certificate in DER form is one that the description named.
    ///
    /// One match of any usable hash function is enough; SHA-1 counts only where nothing stronger is
    /// given. Every candidate is compared in constant time.
    static func matches(_ fingerprints: [DTLSFingerprint], certificate der: [UInt8]) -> Bool {
        let usable = fingerprints.filter(\.isUsable)
        let strong = usable.filter { $0.hashAlgorithm != .sha1 }
        var isFound = false
        for fingerprint in strong.isEmpty ? usable : strong {
            guard let algorithm = fingerprint.hashAlgorithm else { continue }
            isFound = equalInConstantTime(SoraCrypto.hash(algorithm, der), fingerprint.bytes) || isFound
        }
        return isFound
    }
}
