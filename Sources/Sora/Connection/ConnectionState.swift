/// Where a connection stands. It goes through the cases in order and never back.
public enum ConnectionState: Sendable {
    case connecting
    case connected
    case disconnecting
    case disconnected
}
