import COpenSSL

/// The hash functions that the protocols above name. MD5 and SHA-1 are here because RFC 8489 (STUN
/// long-term credentials, MESSAGE-INTEGRITY), RFC 7616 (HTTP Digest), RFC 6455 and SRTP prescribe
/// them; nothing new is to be built on them.
package enum HashAlgorithm: Sendable, Hashable, CaseIterable {
    case md5, sha1, sha256, sha384, sha512

    /// Length of the result in bytes.
    package var length: Int {
        switch self {
        case .md5: 16
        case .sha1: 20
        case .sha256: 32
        case .sha384: 48
        case .sha512: 64
        }
    }

    /// OpenSSL's name of the algorithm.
    var name: String {
        switch self {
        case .md5: "MD5"
        case .sha1: "SHA1"
        case .sha256: "SHA256"
        case .sha384: "SHA384"
        case .sha512: "SHA512"
        }
    }

    fileprivate var implementation: OpaquePointer {
        switch self {
        case .md5: FetchedDigests.md5.pointer
        case .sha1: FetchedDigests.sha1.pointer
        case .sha256: FetchedDigests.sha256.pointer
        case .sha384: FetchedDigests.sha384.pointer
        case .sha512: FetchedDigests.sha512.pointer
        }
    }
}

/// The hash of `bytes`, ``HashAlgorithm/length`` bytes long.
package func hash(_ algorithm: HashAlgorithm, _ bytes: [UInt8]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
        var length: UInt32 = 0
        let status = EVP_Digest(
            bytes, bytes.count, buffer.baseAddress, &length, algorithm.implementation, nil)
        // OpenSSL fails here only when memory is exhausted, where Swift's own allocations trap too.
        // A wrong hash must not be returned: it would be compared with what a peer sent.
        precondition(status == 1, "OpenSSL cannot compute \(algorithm.name)")
        count = Int(length)
    }
}

/// Algorithms looked up once in OpenSSL's providers; the look-up costs more than a short hash.
private enum FetchedDigests {
    static let md5 = FetchedDigest(.md5)
    static let sha1 = FetchedDigest(.sha1)
    static let sha256 = FetchedDigest(.sha256)
    static let sha384 = FetchedDigest(.sha384)
    static let sha512 = FetchedDigest(.sha512)
}

/// A fetched `EVP_MD`. `@unchecked`: an `EVP_MD` is immutable after the fetch, its reference count
/// is atomic, and this one is never freed.
private struct FetchedDigest: @unchecked Sendable {
    let pointer: OpaquePointer

    init(_ algorithm: HashAlgorithm) {
        // "-fips" takes back a system-wide demand for validated algorithms: MD5 is no protection
        // here but a formula that the protocols prescribe.
        guard let found = EVP_MD_fetch(nil, algorithm.name, "-fips") else {
            preconditionFailure("OpenSSL offers no \(algorithm.name): enable its default provider in openssl.cnf")
        }
        pointer = found
    }
}
