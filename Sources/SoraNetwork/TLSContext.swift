import COpenSSL
import SoraWire

package enum TLSVersion: Sendable { case v12, v13 }

/// How a client meets a server.
package struct TLSClientConfiguration: Sendable, Equatable {
    package enum Trust: Sendable, Equatable {
        /// The system's CA store.
        case system
        /// These CAs only. Self-signed ones are anchors, others help to build the chain.
        case authorities(CertificateBundle)
        /// No check at all, neither of the chain nor of the name.
        case anything
    }
    package var trust: Trust
    package var minimumVersion: TLSVersion
    /// Shown when the server asks for a client certificate.
    package var identity: TLSIdentity?

    package init(trust: Trust = .system, minimumVersion: TLSVersion = .v12, identity: TLSIdentity? = nil) {
        self.trust = trust
        self.minimumVersion = minimumVersion
        self.identity = identity
    }
}

/// How a server meets its clients.
package struct TLSServerConfiguration: Sendable, Equatable {
    package var identity: TLSIdentity
    package var minimumVersion: TLSVersion
    /// Set: every client must show a certificate of one of these CAs.
    package var clientAuthorities: CertificateBundle?

    package init(
        identity: TLSIdentity, minimumVersion: TLSVersion = .v12, clientAuthorities: CertificateBundle? = nil
    ) {
        self.identity = identity
        self.minimumVersion = minimumVersion
        self.clientAuthorities = clientAuthorities
    }
}

/// A checked configuration, shared by any number of connections on any loops.
// Unchecked: SSL_CTX is set up here, only read afterwards, and counts its references atomically.
package final class TLSContext: @unchecked Sendable {
    let pointer: OpaquePointer
    let isClient: Bool
    let verifiesPeer: Bool

    package init(client configuration: TLSClientConfiguration) throws(TLSFailure) {
        guard let context = SSL_CTX_new(TLS_client_method()) else {
            throw .badConfiguration(reason: openSSLErrors())
        }
        pointer = context
        isClient = true
        verifiesPeer = configuration.trust != .anything
        prepare(configuration.minimumVersion)
        switch configuration.trust {
        case .system:
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
            guard SSL_CTX_set_default_verify_paths(context) == 1 else {
                throw .badConfiguration(reason: "the system's CA store cannot be read: \(openSSLErrors())")
            }
        case .authorities(let bundle):
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
            trust(bundle)
        case .anything: SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nil)
        }
        if let identity = configuration.identity { try use(identity) }
    }

    package init(server configuration: TLSServerConfiguration) throws(TLSFailure) {
        guard let context = SSL_CTX_new(TLS_server_method()) else {
            throw .badConfiguration(reason: openSSLErrors())
        }
        pointer = context
        isClient = false
        verifiesPeer = configuration.clientAuthorities != nil
        prepare(configuration.minimumVersion)
        SSL_CTX_set_num_tickets(context, 0)  // connections are long; resumption would gain nothing
        if let authorities = configuration.clientAuthorities {
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
            trust(authorities)
        }
        try use(configuration.identity)
    }

    deinit { SSL_CTX_free(pointer) }

    private func prepare(_ minimum: TLSVersion) {
        _ = sora_SSL_CTX_set_min_proto_version(pointer, minimum == .v13 ? TLS1_3_VERSION : TLS1_2_VERSION)
        // MEM4: an idle connection gives its record buffers back.
        _ = sora_SSL_CTX_set_mode(pointer, Int(SSL_MODE_RELEASE_BUFFERS))
        _ = sora_SSL_CTX_set_session_cache_mode(pointer, Int(SSL_SESS_CACHE_OFF))
        SSL_CTX_set_options(pointer, UInt64(1) << 30)  // SSL_OP_NO_RENEGOTIATION
    }

    private func trust(_ bundle: CertificateBundle) {
        let store = SSL_CTX_get_cert_store(pointer)
        for der in bundle.certificates {
            guard let certificate = CertificateBundle.x509(der) else { continue }
            X509_STORE_add_cert(store, certificate)  // takes a reference of its own
            X509_free(certificate)
        }
        ERR_clear_error()
    }

    private func use(_ identity: TLSIdentity) throws(TLSFailure) {
        let parts = try PEM.identity(identity)
        defer { parts.free() }
        var isUsable = SSL_CTX_use_certificate(pointer, parts.leaf) == 1
        for certificate in parts.intermediates where isUsable {
            isUsable = sora_SSL_CTX_add1_chain_cert(pointer, certificate) == 1
        }
        guard isUsable, SSL_CTX_use_PrivateKey(pointer, parts.key) == 1 else {
            throw .badConfiguration(reason: "the certificate cannot be used: \(openSSLErrors())")
        }
    }
}
