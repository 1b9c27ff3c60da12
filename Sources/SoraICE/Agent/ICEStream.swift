import SoraWire

/// Names a TCP or TLS connection that the agent asked for.
package struct ICEStreamID: Hashable, Sendable, CustomStringConvertible {
    package var rawValue: Int
    package init(_ rawValue: Int) { self.rawValue = rawValue }
    package var description: String { "stream \(rawValue)" }
}

/// A connection that the driver is to open for the agent.
package struct ICEStreamRequest: Sendable, Equatable {
    package var id: ICEStreamID
    package var address: SocketAddress
    /// The name that the certificate has to be for, and that goes into SNI unless it is an address. Nil: plain TCP.
    package var tlsServerName: String?

    package init(id: ICEStreamID, address: SocketAddress, tlsServerName: String? = nil) {
        self.id = id
        self.address = address
        self.tlsServerName = tlsServerName
    }
}

/// What happened to such a connection.
package enum ICEStreamEvent: Sendable, Equatable {
    /// Connected, over TLS also verified. `local` is the address on our side.
    case connected(local: SocketAddress)
    case data([UInt8])
    /// Could not be opened, or ended. The reason is shown to users.
    case closed(reason: String)
}
