import SoraRTP
import SoraWire

/// Spreads the packets of large frames, so that a key frame does not overflow the queue of a slow link.
///
/// What fits into 5 ms at two and a half times the target rate leaves at once; the rest follows in turns of 5 ms. No
/// packet waits longer than about a quarter of a second: then the rate is raised.
struct PacketPacer {
    private static let turn: Duration = .milliseconds(5)
    private static let mostWaiting = 4_096
    private var queue: [OutgoingPacket] = []
    private var start = 0
    private var queuedBytes = 0
    private var bytesPerTurn = 6_000
    private var budget = 6_000
    private var nextTurn: Instant?

    /// Bits per second of all layers.
    mutating func setRate(_ bitrate: Int) {
        // Never below four packets in a turn, which no access link of today notices.
        bytesPerTurn = max(4_800, bitrate / 8 * 5 / 2 / 200)
    }

    mutating func put(_ packet: OutgoingPacket) {
        guard queue.count - start < Self.mostWaiting else { return }
        queue.append(packet)
        queuedBytes += packet.packet.payload.count
    }

    var nextTimeout: Instant? { start < queue.count ? nextTurn ?? .zero : nil }

    mutating func poll(now: Instant) -> OutgoingPacket? {
        guard start < queue.count else {
            if start > 0 {
                queue.removeAll(keepingCapacity: true)
                start = 0
            }
            return nil
        }
        if nextTurn.map({ now >= $0 }) ?? true {
            nextTurn = now + Self.turn
            budget = max(bytesPerTurn, queuedBytes / 50)
        }
        guard budget > 0 else { return nil }
        let packet = queue[start]
        start += 1
        let size = packet.packet.payload.count
        queuedBytes -= size
        budget -= size
        return packet
    }
}
