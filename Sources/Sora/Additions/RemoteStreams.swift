internal import SoraLocking

// An addition of Sora for Swift; the iOS SDK has no such type.

/// The streams of the other members of a channel, one after the other as they come. An addition to the API of the iOS
/// SDK, made by ``MediaChannel/remoteStreams()``.
public struct RemoteStreams: AsyncSequence, Sendable {
    public typealias Element = any MediaStream
    public typealias Failure = Never

    private let base: AsyncStream<Transfer<any MediaStream>>

    init(_ core: ChannelCore) {
        let (stream, continuation) = AsyncStream<Transfer<any MediaStream>>.makeStream()
        base = stream
        // Streams that are added while this begins are seen twice, and told once.
        let told = Locked<Set<ObjectIdentifier>>([])
        @Sendable func firstTime(_ stream: ConnectedStream) -> Bool {
            told.withLock { $0.insert(ObjectIdentifier(stream)).inserted }
        }
        core.events.subscribe(continuation) { [weak core] event in
            guard event.kind == .streamAdded,
                let stream = core?.snapshot.streams.first(where: { $0.streamId == event.streamId && !$0.isLocal }),
                firstTime(stream)
            else { return nil }
            return Transfer(stream)
        }
        for stream in core.snapshot.streams where !stream.isLocal && firstTime(stream) {
            continuation.yield(Transfer(stream))
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeAsyncIterator()) }

    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var base: AsyncStream<Transfer<any MediaStream>>.Iterator

        public mutating func next(isolation actor: isolated (any Actor)?) async -> (any MediaStream)? {
            await base.next(isolation: actor)?.value
        }
    }
}
