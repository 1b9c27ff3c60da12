import SoraSecureTransport
import SoraWire

/// Cost of DTLS for both ends together, on one core, without a network.
enum DTLSBenchmark {
    struct Result: Sendable {
        /// Milliseconds for one handshake, both ends.
        var handshake: Double
        /// Milliseconds to make a certificate.
        var certificate: Double
        /// Microseconds to write and read one record of 1,100 bytes.
        var record: Double
    }

    /// The fastest of `rounds` rounds.
    static func run(handshakes: Int = 100, records: Int = 10_000, rounds: Int = 5) throws -> Result {
        let clock = ContinuousClock()
        var result = Result(handshake: .infinity, certificate: .infinity, record: .infinity)
        let certificates = (try DTLSCertificate.selfSigned(), try DTLSCertificate.selfSigned())
        for _ in 0..<rounds {
            let making = try clock.measure { for _ in 0..<20 { _ = try DTLSCertificate.selfSigned() } }
            result.certificate = min(result.certificate, making.inMilliseconds / 20)

            let shaking = try clock.measure {
                for _ in 0..<handshakes { _ = try connect(certificates.0, certificates.1) }
            }
            result.handshake = min(result.handshake, shaking.inMilliseconds / Double(handshakes))

            let (client, server) = try connect(certificates.0, certificates.1)
            let message = [UInt8](repeating: 1, count: 1100)
            let writing = try clock.measure {
                for _ in 0..<records {
                    try client.send(message)
                    while case .transmit(let bytes)? = client.poll() { server.handle(bytes, now: .zero) }
                    while server.poll() != nil {}
                }
            }
            result.record = min(result.record, writing.inMilliseconds * 1000 / Double(records))
        }
        return result
    }

    /// Two connected endpoints.
    static func connect(
        _ first: DTLSCertificate, _ second: DTLSCertificate
    ) throws -> (client: DTLSEndpoint, server: DTLSEndpoint) {
        let client = try DTLSEndpoint(
            certificate: first, role: .client, remoteFingerprints: [second.fingerprint],
            srtpProfiles: SRTPProfile.allCases)
        let server = try DTLSEndpoint(
            certificate: second, role: .server, remoteFingerprints: [first.fingerprint],
            srtpProfiles: SRTPProfile.allCases)
        server.start(now: .zero)
        client.start(now: .zero)
        var isMoving = true
        while isMoving {
            isMoving = false
            while let output = client.poll() {
                isMoving = true
                if case .transmit(let bytes) = output { server.handle(bytes, now: .zero) }
            }
            while let output = server.poll() {
                isMoving = true
                if case .transmit(let bytes) = output { client.handle(bytes, now: .zero) }
            }
        }
        return (client, server)
    }
}
