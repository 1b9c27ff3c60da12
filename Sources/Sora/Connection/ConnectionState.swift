/// Where a connection stands. It goes through the cases in order and never back.
public enum ConnectionState: Sendable {
    /// The attempt goes on.
    case connecting
    /// Media and data may be sent.
    case connected
    /// The end has begun; devices and transports are being released.
    case disconnecting
    /// Nothing of the connection is left. A finished connection is never used again.
    case disconnected
}
