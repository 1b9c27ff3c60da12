import Foundation
import Sora
import SoraLocking

/// One connection of a command, from connecting to its end.
final class Session: Sendable {
    /// How a connection ended.
    enum Ending: Sendable {
        /// By us, or by the server in order.
        case orderly(code: Int, reason: String)
        case failed(any Error)
    }

    private struct State {
        var ending: Ending?
        var endWaiters: [CheckedContinuation<Ending, Never>] = []
        var openLabels: Set<String> = []
        var labelWaiters: [(label: String, continuation: CheckedContinuation<Bool, Never>)] = []
    }

    let channel: MediaChannelBox
    private let state = Locked(State())

    private init(channel: MediaChannelBox) { self.channel = channel }

    /// `MediaChannel` may be used from any thread, but is not marked so.
    struct MediaChannelBox: @unchecked Sendable {
        // Every member of MediaChannel is documented to be callable from any thread (api 1.3.1).
        let value: MediaChannel
    }

    /// Connects, and keeps watch on Ctrl-C from the first moment.
    /// - Throws: ``CommandFailure`` with the status of its class.
    static func open(
        _ configuration: Configuration, prepare: (MediaChannelHandlers, Session.Inbox) -> Void = { _, _ in }
    ) async throws -> Session {
        let inbox = Inbox()
        let handlers = configuration.mediaChannelHandlers
        handlers.onDataChannelOpened = { _, label in inbox.opened(label) }
        handlers.onDisconnect = { event in
            switch event {
            case .ok(let code, let reason): inbox.ended(.orderly(code: code, reason: reason))
            case .error(let error): inbox.ended(.failed(error))
            }
        }
        prepare(handlers, inbox)
        let result: Result<MediaChannelBox, any Error> = await withCheckedContinuation { continuation in
            let task = Sora.shared.connect(configuration: configuration) { channel, error in
                if let channel {
                    continuation.resume(returning: .success(MediaChannelBox(value: channel)))
                } else {
                    continuation.resume(returning: .failure(error ?? SoraError.connectionCancelled))
                }
            }
            let box = TaskBox(value: task)
            Interruption.onRequest { box.value.cancel() }
        }
        switch result {
        case .success(let channel):
            let session = Session(channel: channel)
            inbox.attach(session)
            Interruption.onRequest { [weak session] in session?.channel.value.disconnect(error: nil) }
            return session
        case .failure(let error):
            if Interruption.isRequested { throw CommandFailure(.interrupted, "interrupted while connecting") }
            throw FailureClass.failure(of: error, doing: "cannot connect")
        }
    }

    private struct TaskBox: @unchecked Sendable {
        // `ConnectionTask.cancel()` may be called from any thread (api 1.3.1).
        let value: ConnectionTask
    }

    /// Collects what happens before the session exists.
    final class Inbox: Sendable {
        private struct State {
            weak var session: Session?
            var labels: [String] = []
            var ending: Ending?
        }
        private let state = Locked(State())

        func opened(_ label: String) {
            let session = state.withLock { state -> Session? in
                state.labels.append(label)
                return state.session
            }
            session?.opened(label)
        }
        func ended(_ ending: Ending) {
            let session = state.withLock { state -> Session? in
                state.ending = ending
                return state.session
            }
            session?.ended(ending)
        }
        func attach(_ session: Session) {
            let (labels, ending) = state.withLock { state in
                state.session = session
                return (state.labels, state.ending)
            }
            for label in labels { session.opened(label) }
            if let ending { session.ended(ending) }
        }
    }

    private func opened(_ label: String) {
        let waiters = state.withLock { state in
            state.openLabels.insert(label)
            defer { state.labelWaiters.removeAll { $0.label == label } }
            return state.labelWaiters.filter { $0.label == label }
        }
        for waiter in waiters { waiter.continuation.resume(returning: true) }
    }

    private func ended(_ ending: Ending) {
        let (waiters, labels) = state.withLock { state in
            state.ending = state.ending ?? ending
            defer {
                state.endWaiters = []
                state.labelWaiters = []
            }
            return (state.endWaiters, state.labelWaiters)
        }
        for waiter in waiters { waiter.resume(returning: ending) }
        for waiter in labels { waiter.continuation.resume(returning: false) }
    }

    /// Waits until a data channel is open. False if the connection ended instead.
    func waitForLabel(_ label: String) async -> Bool {
        await withCheckedContinuation { continuation in
            let early = state.withLock { state -> Bool? in
                if state.openLabels.contains(label) { return true }
                if state.ending != nil { return false }
                state.labelWaiters.append((label, continuation))
                return nil
            }
            if let early { continuation.resume(returning: early) }
        }
    }

    /// Waits for the end of the connection.
    func waitForEnd() async -> Ending {
        await withCheckedContinuation { continuation in
            let early = state.withLock { state -> Ending? in
                if let ending = state.ending { return ending }
                state.endWaiters.append(continuation)
                return nil
            }
            if let early { continuation.resume(returning: early) }
        }
    }

    var hasEnded: Bool { state.withLock { $0.ending != nil } }

    /// Waits for the end, or until `duration` has passed; then leaves.
    func run(for duration: Double?) async -> Ending {
        let timer = duration.map { seconds in
            Task {
                try await Task.sleep(for: .seconds(seconds))
                channel.value.disconnect(error: nil)
            }
        }
        defer { timer?.cancel() }
        return await waitForEnd()
    }

    /// Leaves in order.
    func close() async -> Ending {
        channel.value.disconnect(error: nil)
        return await waitForEnd()
    }

    /// The status that an ending stands for, with a sentence on standard error if it is a failure.
    static func status(of ending: Ending) -> ExitStatus {
        switch ending {
        case .orderly(1000, _):
            return .success
        case .orderly(let code, let reason):
            Terminal.error("the server ended the connection: \(code) \(reason)")
            return .refused
        case .failed(let error):
            if Interruption.isRequested { return .interrupted }
            let failure = FailureClass.failure(of: error, doing: "the connection broke")
            Terminal.error(failure.message)
            return failure.status
        }
    }
}
