internal import SoraICE
internal import SoraNetwork

/// How the servers of one connection are met over TLS.
struct TLSContexts {
    /// For signaling.
    let client: TLSContext
    /// For TURN servers.
    let turn: TLSContext
    /// For TURN servers whose certificate the application does not want checked, and their hosts.
    let uncheckedTURN: TLSContext?
    let uncheckedHosts: Set<String>

    /// The context for a TURN server's name.
    func turn(for host: String) -> TLSContext {
        uncheckedHosts.contains(host) ? uncheckedTURN ?? turn : turn
    }

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
            let minimum = settings.transportSecurity.minimumVersion.network
            client = try TLSContext(
                client: TLSClientConfiguration(
                    trust: trust, minimumVersion: minimum, identity: settings.transportSecurity.identity))
            // The client's certificate is for signaling: a TURN server has no business with it.
            turn =
                settings.transportSecurity.identity == nil
                ? client : try TLSContext(client: TLSClientConfiguration(trust: trust, minimumVersion: minimum))
            let unchecked = settings.iceServers.filter(\.skipsCertificateCheck)
            uncheckedHosts = Set(
                unchecked.flatMap { server in
                    server.urls.compactMap { (try? ICEServer(url: $0, username: nil, credential: nil))?.uri.host }
                })
            uncheckedTURN =
                uncheckedHosts.isEmpty
                ? nil : try TLSContext(client: TLSClientConfiguration(trust: .anything, minimumVersion: minimum))
        } catch {
            throw .configurationError(reason: error.description)
        }
    }
}
