import SoraMessages
import SoraPeer
import SoraRTP
import SoraWire

struct SubscriptionKey: Hashable {
    var sender: ConnectionID
    var kind: TrackKind
}

/// Which layer of a simulcast sender a receiver wants.
package enum LayerWish: Sendable, Equatable {
    /// The best that its bandwidth carries.
    case auto
    case rid(LayerRID)
}

/// One track of one sender on its way to one receiver.
final class Subscription {
    let track: SenderTrack
    let receiver: Member
    let transceiver: Transceiver
    /// Exists once the receiver can take packets: its section is agreed and its connection is up.
    var forwarder: StreamForwarder?
    /// The layer chosen; the forwarder follows at that layer's next key frame.
    var selected: Int?
    /// What the receiver was last told it gets; nil before the first packet.
    var announced: LayerRID?
    /// Why the next change of layer happens, for its notification.
    var trigger = Trigger.sender
    /// Stopped by the HTTP API.
    var isPaused = false
    /// Stopped by a forwarding filter.
    var isBlocked = false
    /// No higher layer than this: the receiver's bandwidth does not carry it. Nil: no limit.
    var bandwidthCap: Int?
    var packets: UInt64 = 0
    var bytes: UInt64 = 0

    enum Trigger: String { case sender, receiver }

    init(track: SenderTrack, receiver: Member, transceiver: Transceiver) {
        self.track = track
        self.receiver = receiver
        self.transceiver = transceiver
    }

    var key: SubscriptionKey { SubscriptionKey(sender: track.sender.id, kind: track.kind) }
    var isFlowing: Bool { forwarder != nil }
}
