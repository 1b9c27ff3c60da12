internal import SoraLocking
internal import SoraPeer

/// The peer connection of one offer as far as the application may see and end it: its state, and a way to close it.
///
/// The driver writes the state; ``RTCPeerConnection`` is what the application gets.
final class ObservedPeer: Sendable {
    private let current = Locked(PeerConnectionState.new)
    private let onClose: Locked<(@Sendable () -> Void)?>

    /// - Parameter onClose: runs at most once, when the application closes what still lives.
    init(onClose: @escaping @Sendable () -> Void) { self.onClose = Locked(onClose) }

    var state: PeerConnectionState { current.read() }

    /// The application ends the connection.
    func close() {
        let action = onClose.exchange(nil)
        if current.exchange(.closed) != .closed { action?() }
    }

    /// The driver reports; nothing comes after `closed`.
    func update(_ newState: PeerConnectionState) {
        current.withLock { if $0 != .closed { $0 = newState } }
        if newState == .closed { onClose.write(nil) }
    }
}
