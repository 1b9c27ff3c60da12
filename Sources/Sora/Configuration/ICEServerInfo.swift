import Foundation
internal import SoraLocking

/// Whether the certificate of a `turns:` server is checked.
@available(*, deprecated, message: "use Configuration.insecure and Configuration.caCertificate")
public enum TLSSecurityPolicy: Sendable {
    /// The certificate is checked.
    case secure
    /// The certificate is not checked. For tests.
    case insecure
}

/// A STUN or TURN server.
public final class ICEServerInfo: Codable, CustomStringConvertible {
    private struct Values {
        var urls: [String]
        var userName: String?
        var credential: String?
        var skipsCertificateCheck = false
    }
    private let values: Locked<Values>

    /// URIs, kept as they are: `stun:`, `turn:` and `turns:` are not the kind of URL that `URL` understands.
    public var urls: [String] {
        get { values.withLock { $0.urls } }
        set { values.withLock { $0.urls = newValue } }
    }
    /// For TURN.
    public var userName: String? {
        get { values.withLock { $0.userName } }
        set { values.withLock { $0.userName = newValue } }
    }
    /// For TURN.
    public var credential: String? {
        get { values.withLock { $0.credential } }
        set { values.withLock { $0.credential = newValue } }
    }

    public init(urls: [String], userName: String?, credential: String?) {
        values = Locked(Values(urls: urls, userName: userName, credential: credential))
    }

    /// `.insecure` skips certificate checks for this server only.
    @available(*, deprecated, message: "use Configuration.insecure and Configuration.caCertificate")
    public var tlsSecurityPolicy: TLSSecurityPolicy {
        get { skipsCertificateCheck ? .insecure : .secure }
        set { values.withLock { $0.skipsCertificateCheck = newValue == .insecure } }
    }

    @available(*, deprecated, message: "use init(urls:userName:credential:)")
    public convenience init(
        urls: [String], userName: String?, credential: String?, tlsSecurityPolicy: TLSSecurityPolicy
    ) {
        self.init(urls: urls, userName: userName, credential: credential)
        self.tlsSecurityPolicy = tlsSecurityPolicy
    }

    var skipsCertificateCheck: Bool { values.withLock { $0.skipsCertificateCheck } }

    /// Another object with the same values, which later changes of this one do not reach.
    func copy() -> ICEServerInfo {
        let current = values.read()
        let copy = ICEServerInfo(urls: current.urls, userName: current.userName, credential: current.credential)
        copy.values.withLock { $0.skipsCertificateCheck = current.skipsCertificateCheck }
        return copy
    }

    private enum CodingKeys: String, CodingKey {
        case urls
        case userName = "username"
        case credential
    }

    public convenience init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            urls: try container.decode([String].self, forKey: .urls),
            userName: try container.decodeIfPresent(String.self, forKey: .userName),
            credential: try container.decodeIfPresent(String.self, forKey: .credential))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(urls, forKey: .urls)
        try container.encodeIfPresent(userName, forKey: .userName)
        try container.encodeIfPresent(credential, forKey: .credential)
    }

    /// The JSON form as text.
    public var description: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        guard let data = try? encoder.encode(self) else { return "{}" }
        return String(decoding: data, as: UTF8.self)
    }
}
