// Additions of Sora for Swift; the iOS SDK has no such members.

extension MediaStream {
    /// The frames of the stream from now on, until it ends: decoded ones of a remote stream, sent ones of the local.
    /// An addition to the API of the iOS SDK.
    ///
    /// The stream's renderer is not touched, and nothing goes through the main queue. A stream that is not the SDK's
    /// has no frames.
    ///
    /// - Parameter count: how many frames wait for a slow reader, at least one; the oldest are dropped first.
    public func frames(bufferingNewest count: Int = 4) -> VideoFrames {
        VideoFrames(self as? ConnectedStream, limit: max(count, 1))
    }
}

/// The frames of one stream. An addition to the API of the iOS SDK, made by ``MediaStream/frames(bufferingNewest:)``.
public struct VideoFrames: AsyncSequence, Sendable {
    public typealias Element = VideoFrame
    public typealias Failure = Never

    private let base: AsyncStream<Transfer<VideoFrame>>

    init(_ stream: ConnectedStream?, limit: Int) {
        let (frames, continuation) = AsyncStream<Transfer<VideoFrame>>.makeStream(
            bufferingPolicy: .bufferingNewest(limit))
        base = frames
        let tap = ConnectedStream.FrameTap(
            receive: { continuation.yield(Transfer($0)) }, finish: { continuation.finish() })
        guard let stream else {
            tap.finish()
            return
        }
        guard let id = stream.addTap(tap) else { return }
        let owner = Transfer(Weak(stream))
        continuation.onTermination = { _ in owner.value.stream?.removeTap(id) }
    }

    private final class Weak {
        weak var stream: ConnectedStream?
        init(_ stream: ConnectedStream) { self.stream = stream }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeAsyncIterator()) }

    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var base: AsyncStream<Transfer<VideoFrame>>.Iterator

        public mutating func next(isolation actor: isolated (any Actor)?) async -> VideoFrame? {
            await base.next(isolation: actor)?.value
        }
    }
}
