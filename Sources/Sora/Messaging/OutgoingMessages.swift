import Foundation
internal import SoraLocking

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
        /// Who waits for a label to become usable. Survives a redirect: the new transport opens it again.
        var waiters: [Waiter] = []

        /// Whether messages, or calls, may be sent over a channel now.
        func isUsable(_ label: String) -> Bool {
            (isSwitched || label.utf8.first != UInt8(ascii: "#")) && channels[label] == .open
        }

        mutating func takeSatisfiedWaiters() -> [Waiter] {
            guard !waiters.isEmpty else { return [] }
            let all = waiters
            waiters = all.filter { !isUsable($0.label) }
            return all.filter { isUsable($0.label) }
        }
    }

    private struct Waiter {
        var label: String
        var outcome: OneShot<Void>
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

    // MARK: Waiting

    /// Settles `outcome` as soon as the channel of `label` is usable, or with an error when the connection ends.
    func whenUsable(_ label: String, _ outcome: OneShot<Void>) {
        let verdict = state.withLock { state -> Result<Void, any Error>? in
            if state.isClosed { return .failure(Self.neverOpened(label)) }
            if state.isUsable(label) { return .success(()) }
            state.waiters.append(Waiter(label: label, outcome: outcome))
            return nil
        }
        if let verdict { outcome.settle(verdict) }
    }

    /// Forgets a wait that was given up.
    func stopWaiting(_ outcome: OneShot<Void>) { state.withLock { $0.waiters.removeAll { $0.outcome === outcome } } }

    private static func neverOpened(_ label: String) -> SoraError {
        .messagingError(reason: "the connection ended before the DataChannel was open: label => \(label)")
    }

    // MARK: The driver's side

    /// `switched` came: messages may be sent.
    func markSwitched() { change { $0.isSwitched = true } }

    func set(_ channelState: ChannelState, label: String) { change { $0.channels[label] = channelState } }

    /// Changes what is open, and tells who waited for it.
    private func change(_ body: (inout State) -> Void) {
        let satisfied = state.withLock { state -> [Waiter] in
            guard !state.isClosed else { return [] }
            body(&state)
            return state.takeSatisfiedWaiters()
        }
        for waiter in satisfied { waiter.outcome.settle(.success(())) }
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
            state = State(waiters: state.waiters)
        }
    }

    /// The connection ends: nothing is accepted any more. What was accepted before may still be taken.
    func close() {
        let waiters = state.withLock { state -> [Waiter] in
            state.isClosed = true
            state.isSwitched = false
            state.channels = [:]
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.outcome.settle(.failure(Self.neverOpened(waiter.label))) }
    }
}
