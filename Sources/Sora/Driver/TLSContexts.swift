internal import SoraNetwork

/// How the servers of one connection are met over TLS.
struct TLSContexts {
    /// For signaling.
    let client: TLSContext
    /// For TURN servers.
    let turn: TLSContext

    /// Unusable settings are ``SoraError/configurationError(reason:)``.
    init(_ settings: ConfigurationSnapshot) throws(SoraError) {
        let trust: TLSClientConfiguration.Trust
        if settings.insecure {
            Logger.warn(
                type: .webSocketChannel, message: "insecure mode is enabled: server certificates are not verified")
            trust = .anything
        } else if let pem = settings.caCertificate {
            do throws(CertificateBundleError) {
                trust = .authorities(try CertificateBundle(pem: pem))
            } catch {
                throw .configurationError(reason: error.description)
            }
        } else {
            trust = .system
        }
        do throws(TLSFailure) {
            client = try TLSContext(client: TLSClientConfiguration(trust: trust))
        } catch {
            throw .configurationError(reason: error.description)
        }
        turn = client
    }
}
