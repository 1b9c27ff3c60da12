import SoraWire

/// The way by which a pair's packets leave and arrive.
enum ICEPath: Hashable, Sendable {
    /// Straight from a local UDP socket.
    case socket(SocketID)
    /// Through the allocation of this number on a TURN server.
    case relay(Int)
    /// Over the TCP connection of this number (RFC 6544).
    case stream(Int)
}

/// Where the packets of the pair in use go, looked up once.
enum ICERoute {
    case direct(SocketID, SocketAddress)
    case relay(TURNAllocation, SocketID, server: SocketAddress, peer: SocketAddress)
    case relayStream(TURNAllocation, ICEStreamID, peer: SocketAddress)
    case stream(ICEStreamID)
}

/// A local and a remote candidate, and what checks between them have shown (RFC 8445, 6.1.2).
///
/// Pairs start at `waiting`: there is one stream with one component, so nothing is gained by keeping
/// pairs of equal foundation frozen; ``ICEConfiguration/checkInterval`` bounds the rate.
struct ICECandidatePair: Sendable {
    enum State: Sendable, Equatable {
        /// To be checked. Goes to `inProgress`.
        case waiting
        /// A check is out. Goes to `succeeded`, `failed`, `waiting` (role conflict).
        case inProgress
        /// The latest check was answered. Goes to `waiting` (recovery), `failed` (consent expired).
        case succeeded
        /// Not needed, because another pair is nominated. Goes to `waiting` (triggered check, recovery).
        case paused
        /// No answer, or one that ends the pair. Goes to `waiting` (triggered check, recovery).
        case failed
    }

    let id: Int
    let path: ICEPath
    let remoteAddress: SocketAddress
    var local: ICECandidate
    var remote: ICECandidate
    var state = State.waiting

    /// The check that is retransmitted now, and when to do so next.
    var check: OutstandingCheck?
    /// Both sides have agreed on the pair: our nominating check was answered, or the peer's came and ours was answered.
    var isNominated = false
    /// The peer nominated it (we are controlled); when.
    var nominationReceived: Instant?
    /// When our latest check with a valid answer was answered.
    var lastAnswer: Instant?
    /// When the peer's latest authentic check came.
    var lastRequest: Instant?
    /// Consent checks since the latest answer.
    var unanswered = 0
    var nextConsentCheck: Instant?
    var statistics = ICEPairStatistics()

    init(id: Int, path: ICEPath, local: ICECandidate, remote: ICECandidate, remoteAddress: SocketAddress) {
        self.id = id
        self.path = path
        self.local = local
        self.remote = remote
        self.remoteAddress = remoteAddress
    }

    /// RFC 8445, 6.1.2.3.
    func priority(isControlling: Bool) -> UInt64 {
        let controlling = UInt64(isControlling ? local.priority : remote.priority)
        let controlled = UInt64(isControlling ? remote.priority : local.priority)
        return min(controlling, controlled) << 32 &+ 2 &* max(controlling, controlled)
            &+ (controlling > controlled ? 1 : 0)
    }

    /// Two or more checks in a row had no answer.
    var isInTrouble: Bool { unanswered >= 2 }

    /// Packets from its remote address belong to the peer: it proved there that it knows our password,
    /// or answered our check.
    var acceptsData: Bool { lastRequest != nil || lastAnswer != nil }
}

/// A check of one pair and its retransmission (RFC 8445, 14.3; RFC 8489, 6.2.1).
struct OutstandingCheck: Sendable {
    var transactionID: STUNTransactionID
    var packet: [UInt8]
    var schedule: STUNRetransmission
}

/// Counters of one pair (W3C `RTCIceCandidatePairStats`).
package struct ICEPairStatistics: Sendable, Equatable {
    package var bytesSent: UInt64 = 0
    package var bytesReceived: UInt64 = 0
    package var packetsSent: UInt64 = 0
    package var packetsReceived: UInt64 = 0
    package var requestsSent: UInt64 = 0
    package var requestsReceived: UInt64 = 0
    package var responsesSent: UInt64 = 0
    package var responsesReceived: UInt64 = 0
    package var consentRequestsSent: UInt64 = 0
    package var currentRoundTripTime: Duration?
    package var totalRoundTripTime: Duration = .zero
    package var lastPacketSent: Instant?
    package var lastPacketReceived: Instant?
    package init() {}
}
