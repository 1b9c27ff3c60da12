import SoraPeer
import SoraSDP
import SoraSecureTransport
import SoraWire

/// A transceiver that nothing is negotiated for, where a type only wants one.
enum LoneTransceiver {
    static func make() -> Transceiver? {
        guard let certificate = try? DTLSCertificate.selfSigned() else { return nil }
        return PeerConnection(configuration: PeerConfiguration(certificate: certificate), now: .zero)
            .addTransceiver(kind: .video, direction: .sendonly)
    }
}
