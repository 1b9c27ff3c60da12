import SoraMessages
import SoraPeer
import SoraRTP
import SoraWire

/// One track of a sender on its way to one receiver.
final class TrackForwarder {
    let kind: TrackKind
    /// Set once both sides have negotiated the track.
    private(set) var isRunning = false
    private(set) var packets: UInt64 = 0
    private(set) var bytes: UInt64 = 0
    /// The source whose packets go on.
    private(set) var source: SSRC?

    init(kind: TrackKind) { self.kind = kind }

    func start() { isRunning = true }
    func stop() { isRunning = false }

    /// Whether this packet is to be forwarded.
    func accepts(_ received: ReceivedRTP) -> Bool {
        guard isRunning, received.header.payloadLength > 0 else { return false }
        source = received.ssrc
        packets += 1
        bytes += UInt64(received.header.payloadLength)
        return true
    }
}
