// An addition of Sora for Swift; the iOS SDK has no such member.

extension Sora {
    /// Connects and returns the connection. An addition to the API of the iOS SDK.
    ///
    /// Callbacks and events of ``handlers`` and of the connection come as they do with
    /// ``connect(configuration:webRTCConfiguration:handler:)``; this returns when the completion handler would run.
    ///
    /// Cancelling the calling task cancels the attempt, as ``ConnectionTask/cancel()`` does, and this throws
    /// `CancellationError` once everything is released. If the connection was quicker it is returned, connected.
    ///
    /// - Parameters:
    ///   - configuration: copied now, except for its two handler objects.
    ///   - prepare: gets the connection before it starts. What is subscribed here misses nothing.
    /// - Throws: a ``SoraError``, an error of the negotiation, or `CancellationError`.
    nonisolated(nonsending) public func connect(
        configuration: Configuration, prepare: (MediaChannel) -> Void = { _ in }
    ) async throws -> MediaChannel {
        try Task.checkCancellation()
        let outcome = OneShot<Transfer<MediaChannel>>()
        let attempt = Transfer(
            begin(configuration, prepare: prepare) { channel, error in
                if let channel {
                    outcome.settle(.success(Transfer(channel)))
                } else {
                    outcome.settle(.failure(error ?? SoraError.connectionCancelled))
                }
            })
        do {
            return try await withTaskCancellationHandler {
                try await outcome.value().value
            } onCancel: {
                attempt.value.cancel()
            }
        } catch SoraError.connectionCancelled where Task.isCancelled {
            throw CancellationError()
        }
    }
}
