/// Something that goes wrong on purpose, so that client developers see how their applications cope.
///
/// A fault is meant for connections: all of them, or those of a channel, a client or one connection.
/// See docs/fault-injection.md.
public struct Fault: Sendable, Equatable {
    /// Nil: any channel.
    public var channelID: String?
    /// Nil: any client.
    public var clientID: String?
    /// Nil: any connection. Only connections that exist have an id to name.
    public var connectionID: String?
    /// Happens to the first so many connections that match, then no more; nil: to all.
    public var times: Int?
    /// What goes wrong.
    public var kind: Kind

    /// Without ids it is meant for anybody.
    public init(
        _ kind: Kind, channelID: String? = nil, clientID: String? = nil, connectionID: String? = nil,
        times: Int? = nil
    ) {
        self.kind = kind
        self.channelID = channelID
        self.clientID = clientID
        self.connectionID = connectionID
        self.times = times
    }

    /// Steps of connecting.
    public enum Stage: String, Sendable, Equatable, CaseIterable {
        /// The TCP connection.
        case tcp
        /// The WebSocket upgrade.
        case http
        /// The `connect` message.
        case connect
        /// The `answer` message.
        case answer
        /// The media path: ICE and DTLS.
        case media
    }

    public enum Kind: Sendable, Equatable {
        /// Refuses at a stage. `tcp` resets the connection; `http` answers the upgrade with `code` as status (503 if
        /// it is none); the others close with `code` and `reason`, `media` as soon as the path is up.
        case refuse(Stage, code: UInt16 = 4490, reason: String = "INTERNAL-ERROR")
        /// Says nothing any more from a stage on, but keeps the socket open.
        case silence(Stage)
        /// Answers a stage late: `tcp` reads nothing for a while, `http` answers the WebSocket upgrade late, `connect`
        /// takes its time before it looks at the message. The others have messages to delay.
        case late(Stage, by: Duration)
        /// Answers `connect` with a redirect to this URL; nil: to this server, which makes a loop.
        case redirect(to: String?)
        /// Impairs media and data of a connection, from its first packet on. A direction whose conditions are the
        /// default stays as other faults left it; both default make the network good again.
        case network(upload: NetworkConditions, download: NetworkConditions)
        /// Delays signaling messages of these types (`offer`, `switched`, `notify`, …); empty: all types.
        case delayMessages(types: [String], by: Duration)
        /// Never sends signaling messages of these types; empty: all types.
        case dropMessages(types: [String])
        /// Ends the connection in order, some time after it is up. A code that no close frame may carry (1006 above
        /// all) cuts the TCP connection, which is how a client sees that code; 1005 sends a frame without a code.
        case close(after: Duration, code: UInt16, reason: String)
        /// Cuts the WebSocket's TCP connection, some time after the connection is up.
        case reset(after: Duration)
        /// Drops all packets both ways, some time after the connection is up.
        case vanish(after: Duration)
        /// Closes one data channel, some time after the connection is up.
        case closeDataChannel(label: String, after: Duration)
    }

    /// What happens to packets one way. The default does nothing.
    public struct NetworkConditions: Sendable, Equatable {
        /// For each packet.
        public var delay: Duration = .zero
        /// Largest additional time, drawn for each packet; keeps the order.
        public var jitter: Duration = .zero
        /// Share of packets lost, 0...1.
        public var loss: Double = 0
        /// Mean number of packets lost in a row.
        public var meanLossBurst: Double = 1
        /// Share of packets that arrive 10 ms late and so behind others, 0...1.
        public var reordering: Double = 0
        /// Share of packets that arrive twice, 0...1.
        public var duplication: Double = 0
        /// Share of packets with one byte changed, 0...1.
        public var corruption: Double = 0
        /// Nil: unlimited.
        public var kilobitsPerSecond: Int?
        public init() {}
    }
}
