internal import SoraNetwork

/// How the client meets servers over TLS, beyond ``Configuration/caCertificate`` and ``Configuration/insecure``.
///
/// An addition to the iOS SDK, where the system decides.
public struct TransportSecurity: Sendable {
    /// A version of TLS.
    public enum Version: Sendable {
        /// RFC 5246.
        case v1_2
        /// RFC 8446.
        case v1_3
    }

    /// A certificate that the client shows to a signaling server that asks for one.
    public struct ClientCertificate: Sendable, CustomStringConvertible {
        /// PEM text: the client's certificate first, then those that lead to its root.
        public var certificateChain: String
        /// PEM text without a password.
        public var privateKey: String

        public init(certificateChain: String, privateKey: String) {
            self.certificateChain = certificateChain
            self.privateKey = privateKey
        }

        /// Does not show the key.
        public var description: String { "a certificate and its private key" }
    }

    /// Servers that offer less are refused, for signaling and `turns:` alike.
    public var minimumVersion = Version.v1_2
    /// For signaling (`wss:`) only. One that cannot be used ends the attempt with
    /// ``SoraError/configurationError(reason:)``.
    public var clientCertificate: ClientCertificate?

    public init() {}
}

extension TransportSecurity {
    var identity: TLSIdentity? {
        clientCertificate.map { TLSIdentity(certificateChain: $0.certificateChain, privateKey: $0.privateKey) }
    }
}

extension TransportSecurity.Version {
    var network: TLSVersion {
        switch self {
        case .v1_2: .v12
        case .v1_3: .v13
        }
    }
}
