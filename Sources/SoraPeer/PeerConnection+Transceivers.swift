import SoraSDP
import SoraWire

extension PeerConnection {
    /// Adds an m-line to the next offer. `mid` is made up if nil.
    package func addTransceiver(kind: MediaKind, direction: MediaDirection, mid: Mid? = nil) -> Transceiver {
        let transceiver = Transceiver(
            id: TransceiverID(nextTransceiverID), kind: kind, direction: direction,
            mid: mid ?? makeMid(prefix: kind.text))
        nextTransceiverID += 1
        transceivers.append(transceiver)
        return transceiver
    }

    package func transceiver(_ id: TransceiverID) -> Transceiver? {
        transceivers.first { $0.id == id }
    }

    package func transceiver(mid: Mid) -> Transceiver? {
        transceivers.first { $0.mid == mid && !$0.isStopped }
    }

    /// Stops sending and receiving on a transceiver. The next offer rejects its m-line.
    package func stop(_ id: TransceiverID) {
        guard let transceiver = transceiver(id), !transceiver.isStopped else { return }
        transceiver.isStopped = true
        transceiver.direction = .inactive
        rtp.forget(transceiver)
        // One that no description has named yet needs no m-line to be rejected.
        if !sections.contains(where: { $0.transceiver === transceiver }) {
            transceivers.removeAll { $0 === transceiver }
        }
    }

    /// Asks for an m-line for data channels in the next offer.
    package func enableDataChannels() { wantsDataChannels = true }

    /// A sending description with fresh SSRCs.
    package func makeEncoding(rid: RestrictionID? = nil) -> Encoding {
        Encoding(ssrc: makeSSRC(), repairSSRC: makeSSRC(), rid: rid)
    }

    private func makeSSRC() -> SSRC {
        // 0 is legal but confuses too many tools.
        SSRC(UInt32(truncatingIfNeeded: random.next() % 0xFFFF_FFFE) + 1)
    }

    func makeMid(prefix: String) -> Mid {
        var mid: Mid
        repeat {
            mid = Mid(prefix + "_" + random.string(4, from: Array("abcdefghijkmnpqrstuvwxyz23456789")))
        } while transceivers.contains { $0.mid == mid } || sections.contains { $0.mid == mid }
        return mid
    }
}
