// Additions of Sora for Swift; the iOS SDK has no such members.
import Foundation

extension MediaChannel {
    // MARK: Messages

    /// Sends bytes over the data channel of a label. An addition to the API of the iOS SDK.
    ///
    /// - Throws: ``SoraError/messagingError(reason:)`` with the reasons of ``sendMessage(label:data:)``.
    public func send(_ data: Data, label: String) throws(SoraError) {
        if let error = core.send(data, label: label) { throw error }
    }

    /// Sends text as UTF-8 over the data channel of a label. An addition to the API of the iOS SDK.
    ///
    /// - Throws: ``SoraError/messagingError(reason:)`` with the reasons of ``sendMessage(label:data:)``.
    public func send(_ text: String, label: String) throws(SoraError) { try send(Data(text.utf8), label: label) }

    /// Messages of one label from now on, until the connection ends. An addition to the API of the iOS SDK.
    ///
    /// Each call makes a sequence with a buffer of its own. To miss no message, subscribe in the `prepare` closure of
    /// ``Sora/connect(configuration:prepare:)``.
    ///
    /// - Parameters:
    ///   - label: the label, with its `#`.
    ///   - bufferingPolicy: what becomes of messages that nobody has taken yet; all are kept by default.
    public func messages(
        label: String, bufferingPolicy: AsyncStream<Data>.Continuation.BufferingPolicy = .unbounded
    ) -> AsyncStream<Data> {
        let (stream, continuation) = AsyncStream<Data>.makeStream(bufferingPolicy: bufferingPolicy)
        core.events.subscribe(continuation) { event in
            event.kind == .dataChannelMessage && event.dataChannelLabel == label ? event.dataChannelMessage : nil
        }
        return stream
    }

    /// Messages of one label as text, from now on, until the connection ends. An addition to the API of the iOS SDK.
    ///
    /// As ``messages(label:bufferingPolicy:)``; bytes that are no UTF-8 become U+FFFD.
    public func texts(
        label: String, bufferingPolicy: AsyncStream<String>.Continuation.BufferingPolicy = .unbounded
    ) -> AsyncStream<String> {
        let (stream, continuation) = AsyncStream<String>.makeStream(bufferingPolicy: bufferingPolicy)
        core.events.subscribe(continuation) { event in
            guard event.kind == .dataChannelMessage, event.dataChannelLabel == label else { return nil }
            return event.dataChannelMessage.map { String(decoding: $0, as: UTF8.self) }
        }
        return stream
    }

    /// Returns as soon as the data channel of a label can be used: messages for labels that begin with `#`, calls for
    /// `rpc`. Returns at once if it can already. An addition to the API of the iOS SDK.
    ///
    /// A label that the server never opens is waited for until the connection ends or the task is cancelled.
    ///
    /// - Throws: ``SoraError/messagingError(reason:)`` when the connection ends first; `CancellationError`.
    nonisolated(nonsending) public func waitUntilOpen(label: String) async throws {
        try Task.checkCancellation()
        let outcome = OneShot<Void>()
        let outgoing = core.outgoing
        outgoing.whenUsable(label, outcome)
        defer { withExtendedLifetime(self) {} }
        try await withTaskCancellationHandler {
            try await outcome.value()
        } onCancel: {
            if outcome.settle(.failure(CancellationError())) { outgoing.stopWaiting(outcome) }
        }
    }

    // MARK: Streams

    /// The streams of other members: those that are there, then each that is added, until the connection ends.
    /// An addition to the API of the iOS SDK.
    ///
    /// A stream that a member takes away ends by itself: its ``MediaStream/frames(bufferingNewest:)`` finish.
    public func remoteStreams() -> RemoteStreams { RemoteStreams(core) }

    // MARK: End

    /// Ends the connection and returns when everything is released, so that the next `connect` cannot collide with it.
    /// An addition to the API of the iOS SDK. Returns at once if the connection has ended.
    nonisolated(nonsending) public func disconnect() async {
        let (stream, continuation) = AsyncStream<Never>.makeStream()
        core.events.subscribe(continuation) { _ in nil }
        core.disconnect(error: nil)
        for await _ in stream {}
        withExtendedLifetime(self) {}
    }
}
