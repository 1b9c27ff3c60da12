import Foundation
internal import SoraLocking

/// Callbacks for the raw signaling WebSocket.
public final class WebSocketChannelHandlers {
    private let receiveSlot = Locked<((WebSocketMessage) -> Void)?>(nil)

    public init() {}

    /// Every message of every WebSocket of the attempt, before the SDK looks at it.
    public var onReceive: ((WebSocketMessage) -> Void)? {
        get { receiveSlot.read() }
        set { receiveSlot.write(newValue) }
    }
}
