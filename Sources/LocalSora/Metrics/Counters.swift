import SoraMessages
import SoraPeer
import SoraWire

/// What a media loop remembers of a connection for webhooks, counters and faults, beside what the channel
/// tells with each event.
struct ConnectionWatch {
    let channelID: String
    let clientID: String
    let client: SoraClientInformation
    let eventMetadata: JSONValue?
    var isAnnounced = false
}

/// What it remembers of a session.
struct SessionWatch {
    let createdAt: Instant
    /// Connections that were there, at most the first thousand.
    var connections: [JSONValue] = []
    var metadata: JSONValue?
}

/// Packets and their bytes.
struct Traffic: Sendable, Equatable {
    var packets = 0
    var bytes = 0

    mutating func count(_ size: Int) {
        packets &+= 1
        bytes &+= size
    }

    static func + (a: Traffic, b: Traffic) -> Traffic {
        Traffic(packets: a.packets &+ b.packets, bytes: a.bytes &+ b.bytes)
    }
}

/// What a channel counts for the server's report, from its beginning to its end.
struct ChannelTotals: Sendable, Equatable {
    /// SRTP and SRTCP packets that were authentic, by their size once decrypted.
    var decrypted = Traffic()
    /// Offers that could not be made.
    var descriptionFailures = 0

    mutating func count(_ member: Member) {
        let traffic = member.peer.decryptedTraffic
        decrypted = decrypted + Traffic(packets: Int(clamping: traffic.packets), bytes: Int(clamping: traffic.bytes))
    }

    static func + (a: ChannelTotals, b: ChannelTotals) -> ChannelTotals {
        ChannelTotals(
            decrypted: a.decrypted + b.decrypted, descriptionFailures: a.descriptionFailures &+ b.descriptionFailures)
    }
}

extension Channel {
    /// Of members that are gone and those that are there.
    var totals: ChannelTotals {
        var totals = departed
        for member in members.values { totals.count(member) }
        return totals
    }
}

/// Datagrams of one direction.
struct DatagramTraffic: Sendable {
    var all = Traffic()
    /// Of them, what carries media and its control.
    var srtp = Traffic()
    /// Of them, what carries data channels: DTLS, its handshake included.
    var sctp = Traffic()

    mutating func count(_ payload: [UInt8]) {
        all.count(payload.count)
        switch DatagramKind(payload) {
        case .rtp, .rtcp: srtp.count(payload.count)
        case .dtls: sctp.count(payload.count)
        default: break
        }
    }

    static func + (a: DatagramTraffic, b: DatagramTraffic) -> DatagramTraffic {
        DatagramTraffic(all: a.all + b.all, srtp: a.srtp + b.srtp, sctp: a.sctp + b.sctp)
    }
}

/// What one media loop counts since its start.
struct LoopCounters: Sendable {
    var received = DatagramTraffic()
    var sent = DatagramTraffic()
    /// From nobody that is known.
    var unknownPackets = 0
    /// Over all SRTP packets that left in answer to datagrams: microseconds from when the loop woke for a datagram
    /// until everything was done that its batch caused. Not what waits for time: repeated and delayed packets.
    var forwardingDelayMicroseconds = 0
    /// Of channels that are gone.
    var channels = ChannelTotals()
    /// Connections that came up.
    var createdConnections = 0
    var updatedConnections = 0
    var destroyedConnections = 0
    /// Connections that ended before they came up.
    var failedConnections = 0
    var createdSessions = 0
    var destroyedSessions = 0
    var durationSeconds = 0.0
    var setupMilliseconds = 0.0
    var relayedMessages = 0
    var droppedMessages = 0
    var rpcCalls = 0
    var protocolErrors = 0
    var successfulClients: [String: Int] = [:]
    var failedClients: [String: Int] = [:]

    static func + (a: LoopCounters, b: LoopCounters) -> LoopCounters {
        var sum = a
        sum.received = a.received + b.received
        sum.sent = a.sent + b.sent
        sum.unknownPackets += b.unknownPackets
        sum.forwardingDelayMicroseconds &+= b.forwardingDelayMicroseconds
        sum.channels = a.channels + b.channels
        sum.createdConnections += b.createdConnections
        sum.updatedConnections += b.updatedConnections
        sum.destroyedConnections += b.destroyedConnections
        sum.failedConnections += b.failedConnections
        sum.createdSessions += b.createdSessions
        sum.destroyedSessions += b.destroyedSessions
        sum.durationSeconds += b.durationSeconds
        sum.setupMilliseconds += b.setupMilliseconds
        sum.relayedMessages += b.relayedMessages
        sum.droppedMessages += b.droppedMessages
        sum.rpcCalls += b.rpcCalls
        sum.protocolErrors += b.protocolErrors
        sum.successfulClients.merge(b.successfulClients, uniquingKeysWith: +)
        sum.failedClients.merge(b.failedClients, uniquingKeysWith: +)
        return sum
    }
}

/// What the front counts since its start.
struct FrontCounters: Sendable {
    var acceptedSockets = 0
    /// Closed at once for a limit.
    var refusedSockets = 0
    var httpRequests = 0
    var apiCalls = 0
    var failedAPICalls = 0
    var refusedConnects = 0
    var webhookPermissions = 0
    var webhookDenials = 0
}
