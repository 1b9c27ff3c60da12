import SoraWire

/// What became of one STUN or TURN server, tried from one place; for diagnostics.
package struct ICEServerReport: Sendable, Equatable {
    package enum Status: Sendable, Equatable {
        /// The name is being looked up.
        case resolving
        /// The TCP or TLS connection is being made.
        case connecting
        /// A request is out.
        case requesting
        case succeeded
        /// Says what went wrong; never holds a credential.
        case failed(reason: String)
    }
    package var server: ICEServerURI
    /// The server's address, once known.
    package var address: SocketAddress?
    /// Our end, for UDP the socket's.
    package var localAddress: SocketAddress?
    package var status: Status
    /// How the server sees us.
    package var mappedAddress: SocketAddress?
    package var relayedAddress: SocketAddress?
    package var startedAt: Instant
    /// When the status became succeeded or failed.
    package var endedAt: Instant?
}

/// One try to use one server: over UDP from one local socket, or over one connection.
struct ICEServerAttempt {
    let id: Int
    let serverIndex: Int
    var address: SocketAddress
    let socket: SocketID?
    var stream: ICEStreamID?
    var framer = StreamFramer(.turn)
    /// The request to a STUN server that is out.
    var discovery: OutstandingCheck?
    /// Nil for STUN servers.
    var allocation: TURNAllocation?
    /// The relayed candidate, while there is one.
    var candidate: ICECandidate?
    /// Where a server that redirects has been followed from.
    var visited: Set<SocketAddress> = []
    /// When to try again after something that worked was lost, and how often that happened in a row.
    var retryAt: Instant?
    var retries = 0
    /// When the server's next address is tried beside this one; nil if there is none, or it is being tried.
    var nextAddressAt: Instant?
    var report: ICEServerReport

    var isRunning: Bool {
        switch report.status {
        case .resolving, .connecting, .requesting: true
        case .succeeded, .failed: false
        }
    }

    mutating func finish(_ status: ICEServerReport.Status, now: Instant) {
        report.status = status
        report.endedAt = now
    }
}

/// A server whose name is looked up.
struct ICEServerLookup {
    var serverIndex: Int
    var startedAt: Instant
}
