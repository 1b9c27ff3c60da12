import Foundation

/// The gate through which the application's messages go to the data channels.
///
/// Invariant: check and hand-over of a message are one step under the lock. After ``reset()`` or ``close()`` no message
/// reaches the transport of before.
final class OutgoingMessages: Sendable {
    /// Largest message, in bytes (the `max-message-size` that servers and clients agree on).
    static let maximumMessageSize = 262_144
    /// Most bytes that may wait before a message is refused.
    static let maximumQueuedBytes = 16 * 1024 * 1024

    enum ChannelState: String, Sendable {
        case connecting, open, closing, closed
    }

    struct Message: Sendable {
        var label: String
        var data: Data
    }

    private struct State {
        var isSwitched = false
        var isClosed = false
        var channels: [String: ChannelState] = [:]
        var queue: [Message] = []
        /// Bytes in `queue` and bytes the driver took but the network did not take yet.
        var queuedBytes = 0
    }
    private let state = Locked(State())

    // MARK: The application's side

    enum Verdict {
        case refused(SoraError)
        /// - Parameter wakesDriver: the queue was empty.
        case queued(wakesDriver: Bool)
    }

    func put(_ data: Data, label: String) -> Verdict {
        func refuse(_ reason: String) -> Verdict { .refused(.messagingError(reason: reason)) }
        return state.withLock { state in
            guard state.isSwitched else { return refuse("DataChannel is not open yet") }
            guard label.utf8.first == UInt8(ascii: "#") else { return refuse("label should start with #") }
            guard let channel = state.channels[label] else { return refuse("no DataChannel found: label => \(label)") }
            guard channel == .open else {
                return refuse(
                    "readyState of the DataChannel is not open: label => \(label), readyState => \(channel.rawValue)")
            }
            guard data.count <= Self.maximumMessageSize,
                state.queuedBytes + data.count <= Self.maximumQueuedBytes
            else { return refuse("failed to send message: label => \(label)") }
            state.queuedBytes += data.count
            state.queue.append(Message(label: label, data: data))
            return .queued(wakesDriver: state.queue.count == 1)
        }
    }

    /// Why RPC is not possible now, or nil.
    func rpcObstacle() -> SoraError? {
        switch state.withLock({ $0.channels["rpc"] }) {
        case nil: .rpcUnavailable(reason: "rpc channel is not available")
        case .open?: nil
        case .some: .rpcUnavailable(reason: "DataChannel is not open")
        }
    }

    // MARK: The driver's side

    /// `switched` came: messages may be sent.
    func markSwitched() { state.withLock { if !$0.isClosed { $0.isSwitched = true } } }

    func set(_ channelState: ChannelState, label: String) {
        state.withLock { if !$0.isClosed { $0.channels[label] = channelState } }
    }

    /// Everything that waits, in order.
    func takeAll() -> [Message] {
        state.withLock { state in
            defer { state.queue = [] }
            return state.queue
        }
    }

    /// The network took `count` bytes of messages.
    func didSend(bytes count: Int) { state.withLock { $0.queuedBytes = max(0, $0.queuedBytes - count) } }

    /// A redirect: the channels of before are void and so is what waits for them.
    func reset() {
        state.withLock { state in
            guard !state.isClosed else { return }
            state = State()
        }
    }

    /// The connection ends: nothing is accepted any more. What was accepted before may still be taken.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.isSwitched = false
            state.channels = [:]
        }
    }
}
