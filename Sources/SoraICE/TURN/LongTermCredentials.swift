import SoraCrypto
import SoraWire

/// The client's side of STUN's long-term credential mechanism (RFC 8489, 9.2): what a server said about realm,
/// nonce and algorithm, and the key that follows.
///
/// User name and password are used as they are: credentials with other than ASCII characters have to come normalized
/// (RFC 8265, OpaqueString).
struct LongTermCredentials: Sendable {
    /// What a 401 or 438 leads to.
    enum Verdict: Sendable, Equatable {
        /// Send the request again, with the new nonce and realm.
        case retry
        /// The reason, for users. It never holds the credential.
        case refused(String)
    }

    private static let nonceCookie = Array("obMatJos2".utf8)

    let username: String
    private let password: String
    private(set) var realm: [UInt8]?
    private(set) var nonce: [UInt8]?
    /// The algorithms as the server listed them, to be sent back (RFC 8489, 9.2.5); nil: an older server.
    private var offeredAlgorithms: [UInt16]?
    private var algorithm = STUNPasswordAlgorithm.md5
    /// Nil until the server asked for credentials.
    private(set) var integrity: STUNMessage.Integrity?
    /// The 401s to authenticated requests since the latest success.
    private var refusals = 0

    init(username: String, password: String) {
        self.username = username
        self.password = password
    }

    /// What a request carries beside its own attributes.
    var attributes: [STUNAttribute] {
        guard integrity != nil, let realm, let nonce else { return [] }
        var result: [STUNAttribute] = [.username(Array(username.utf8)), .realm(realm), .nonce(nonce)]
        if let offeredAlgorithms {
            result.append(.passwordAlgorithms(offeredAlgorithms))
            result.append(.passwordAlgorithm(algorithm.rawValue))
        }
        return result
    }

    /// A request succeeded with these credentials.
    mutating func noteSuccess() { refusals = 0 }

    /// Takes over realm, nonce and algorithms of a 401 or 438 answer.
    mutating func update(from answer: STUNMessage) -> Verdict {
        let code = answer.errorCode?.code ?? 0
        guard let newNonce = answer.nonce, let newRealm = answer.realm ?? (code == 438 ? realm : nil) else {
            return .refused("the server's \(code) answer lacks a realm or a nonce")
        }
        if code == 401, integrity != nil, newRealm == realm {
            refusals += 1
            // Some servers say 401 where 438 is meant: one more try if the nonce is new.
            if newNonce == nonce || refusals > 1 {
                return .refused("the server refused the user name or credential (401)")
            }
        }
        let algorithms = answer.passwordAlgorithms
        guard let chosen = LongTermCredentials.choose(from: algorithms, nonce: newNonce) else {
            return .refused("the server offers no password algorithm that is supported, or its offer was tampered with")
        }
        let isSameKey = integrity != nil && newRealm == realm && chosen == algorithm
        realm = newRealm
        nonce = newNonce
        offeredAlgorithms = algorithms
        algorithm = chosen
        if !isSameKey { integrity = makeIntegrity(newRealm) }
        return .retry
    }

    /// The strongest algorithm offered. Nil if none is known, or if the nonce promises an offer that is missing
    /// (a bid-down, RFC 8489, 9.2.1).
    private static func choose(from offered: [UInt16]?, nonce: [UInt8]) -> STUNPasswordAlgorithm? {
        guard let offered else { return promisesAlgorithms(nonce) ? nil : .md5 }
        if offered.contains(STUNPasswordAlgorithm.sha256.rawValue) { return .sha256 }
        return offered.contains(STUNPasswordAlgorithm.md5.rawValue) ? .md5 : nil
    }

    /// Bit 0 of the 24 security feature bits behind the nonce cookie (erratum 6290: the least significant one).
    private static func promisesAlgorithms(_ nonce: [UInt8]) -> Bool {
        guard nonce.count >= nonceCookie.count + 4, nonce.starts(with: nonceCookie) else { return false }
        let text = String(decoding: nonce[nonceCookie.count..<(nonceCookie.count + 4)], as: UTF8.self)
        guard let bits = Base64.decode(text), bits.count == 3 else { return false }
        return bits[2] & 1 == 1
    }

    private func makeIntegrity(_ realm: [UInt8]) -> STUNMessage.Integrity {
        let input = Array(username.utf8) + [0x3A] + realm + [0x3A] + Array(password.utf8)
        let key = hash(algorithm == .sha256 ? .sha256 : .md5, input)
        // A server that lists algorithms is authenticated to with SHA-256 only (RFC 8489, 9.2.5).
        return offeredAlgorithms == nil ? .sha1(HMACKey(.sha1, key: key)) : .sha256(HMACKey(.sha256, key: key))
    }
}
