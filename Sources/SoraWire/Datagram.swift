/// Names a local socket to a state machine that must not know sockets. Whoever drives the machine
/// hands these out.
@frozen
public struct SocketID: Hashable, Sendable, CustomStringConvertible {
    public var rawValue: Int
    @inlinable public init(_ rawValue: Int) { self.rawValue = rawValue }
    public var description: String { "socket \(rawValue)" }
}

/// One packet that arrived, or one that shall leave, and its way.
///
/// The payload is owned: a `[UInt8]` is moved from layer to layer and changed in place while nobody
/// else holds it. (A copy of 1,200 bytes costs about 70 ns where sending one packet costs 4,000.)
@frozen
public struct Datagram: Sendable, Equatable {
    /// The local socket that it came in on or shall leave by.
    public var socket: SocketID
    /// The other side.
    public var remote: SocketAddress
    public var payload: [UInt8]

    @inlinable public init(socket: SocketID, remote: SocketAddress, payload: [UInt8]) {
        self.socket = socket
        self.remote = remote
        self.payload = payload
    }
}
