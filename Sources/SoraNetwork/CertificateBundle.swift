import COpenSSL
import SoraCrypto

/// CA certificates given as PEM text, with any text around and between the blocks.
package struct CertificateBundle: Sendable, Equatable {
    /// Each certificate in DER.
    package let certificates: [[UInt8]]

    /// Takes the text between each `-----BEGIN CERTIFICATE-----` and the next end line; blanks inside are
    /// dropped.
    package init(pem: String) throws(CertificateBundleError) {
        let begin = Array("-----BEGIN CERTIFICATE-----".utf8)
        let end = Array("-----END CERTIFICATE-----".utf8)
        var rest = Array(pem.utf8)[...]
        var found: [[UInt8]] = []
        while let start = CertificateBundle.position(of: begin, in: rest) {
            let body = rest[(start + begin.count)...]
            guard let stop = CertificateBundle.position(of: end, in: body) else { break }
            let base64 = body[..<stop].filter { ![0x20, 0x09, 0x0A, 0x0B, 0x0C, 0x0D].contains($0) }
            guard !base64.isEmpty, let der = Base64.decode(String(decoding: base64, as: UTF8.self)) else {
                throw .invalidBase64
            }
            guard let certificate = CertificateBundle.x509(der) else { throw .invalidCertificate }
            X509_free(certificate)
            found.append(der)
            rest = body[(stop + end.count)...]
        }
        guard !found.isEmpty else { throw .noBlocks }
        certificates = found
    }

    /// An owned X509, or nil if `der` is none.
    static func x509(_ der: [UInt8]) -> OpaquePointer? {
        der.withUnsafeBufferPointer { buffer in
            var cursor = buffer.baseAddress
            return d2i_X509(nil, &cursor, buffer.count)
        }
    }

    /// Index of the first occurrence; linear but for texts made of many near-misses of a 27-byte pattern.
    private static func position(of pattern: [UInt8], in bytes: ArraySlice<UInt8>) -> Int? {
        guard bytes.count >= pattern.count else { return nil }
        return (bytes.startIndex...(bytes.endIndex - pattern.count)).first { start in
            bytes[start] == pattern[0] && bytes[start..<(start + pattern.count)].elementsEqual(pattern)
        }
    }
}

/// Why CA text cannot be used. The texts are those that the public API promises (`caCertificate`).
package enum CertificateBundleError: Error, Equatable, Sendable, CustomStringConvertible {
    case noBlocks
    case invalidBase64
    case invalidCertificate

    package var description: String {
        switch self {
        case .noBlocks: "caCertificate contains no valid PEM blocks"
        case .invalidBase64: "failed to decode Base64 in PEM block"
        case .invalidCertificate: "failed to create SecCertificate from DER data"
        }
    }
}
