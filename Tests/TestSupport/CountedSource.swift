import SoraFrames
import SoraLocking

/// Sends pictures with their number burnt in, 30 a second, until stopped.
///
/// Where the machine is too busy for that, the next picture comes later instead of being left out, so that what is
/// missing at a receiver was lost on the way: before each picture `isReady` is asked, for a tenth of a second at most.
package final class CountedSource: Sendable {
    package static let framerate = 30.0
    private struct State {
        var first: UInt32
        /// When each picture was taken, in nanoseconds, from the first on.
        var times: [Int64] = []
        var next: UInt32 { first + UInt32(times.count) }
    }
    private let state: Locked<State>
    private let task = Locked<Task<Void, Never>?>(nil)

    /// - Parameters:
    ///   - first: the first picture's number.
    ///   - isRough: pictures that no encoder gets small, so that it needs all the bits that it is given.
    ///   - isReady: whether there is room for another picture.
    package init(
        width: Int, height: Int, first: UInt32 = 0, isRough: Bool = false,
        isReady: @escaping @Sendable () async -> Bool = { true }, send: @escaping @Sendable (VideoFrame) -> Void
    ) {
        state = Locked(State(first: first))
        let pattern = TestPattern(width: width, height: height, framerate: Self.framerate)
        let noise = isRough ? Noise(width: width, height: height) : nil
        let running = Task.detached { [weak self] in
            let clock = ContinuousClock()
            let interval = Duration.seconds(1 / Self.framerate)
            let begin = clock.now
            var due = begin
            while !Task.isCancelled {
                let patience = clock.now + .milliseconds(100)
                while await !isReady(), clock.now < patience { try? await clock.sleep(for: .milliseconds(5)) }
                let time = Int64((clock.now - begin) / .nanoseconds(1))
                guard let next = self?.take(at: time) else { return }
                let picture = noise?.draw(next) ?? pattern.draw(next)
                send(VideoFrame(buffer: picture, timestamp: time))
                due = max(due + interval, clock.now)
                try? await clock.sleep(until: due)
            }
        }
        task.withLock { $0 = running }
    }

    /// The number of the picture to be sent next.
    package var next: UInt32 { state.withLock { $0.next } }

    private func take(at time: Int64) -> UInt32 {
        state.withLock { state in
            defer { state.times.append(time) }
            return state.next
        }
    }

    /// From the taking of one picture to that of another, in nanoseconds; nil if one of them is none of these.
    func time(from before: UInt32, to after: UInt32) -> Int64? {
        state.withLock { state in
            guard before >= state.first, after >= state.first, before < state.next, after < state.next else {
                return nil
            }
            return state.times[Int(after - state.first)] - state.times[Int(before - state.first)]
        }
    }

    package func stop() { task.withLock { $0?.cancel() } }
    deinit { stop() }
}

/// Grain that jumps about from picture to picture, below the number.
private struct Noise: Sendable {
    private static let room = 64
    let width: Int
    let height: Int
    private let grain: [UInt8]

    init(width: Int, height: Int) {
        self.width = width
        self.height = height
        var state: UInt64 = 88_172_645_463_325_252
        grain = (0..<(width + Self.room) * (height + Self.room)).map { _ in
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return 100 + UInt8(truncatingIfNeeded: state) % 40
        }
    }

    func draw(_ number: UInt32) -> VideoFrameBuffer {
        VideoFrameBuffer(width: width, height: height) { planes in
            let shift = (x: Int(number) * 37 % Self.room, y: Int(number) * 23 % Self.room)
            grain.withUnsafeBufferPointer { grain in
                for row in 0..<height {
                    let start = (row + shift.y) * (width + Self.room) + shift.x
                    guard let source = grain.baseAddress, start + width <= grain.count else { continue }
                    (planes.y + row * planes.strideY).update(from: source + start, count: width)
                }
            }
            for row in 0..<planes.chromaHeight {
                (planes.u + row * planes.strideU).update(repeating: 128, count: planes.chromaWidth)
                (planes.v + row * planes.strideV).update(repeating: 128, count: planes.chromaWidth)
            }
            FrameCounter.draw(number, into: planes)
        }
    }
}

/// What a viewer saw of a ``CountedSource``: each decoded picture with its number.
package final class CountedScreen: Sendable {
    package struct Picture: Sendable {
        package var number: UInt32
        package var width: Int
        package var height: Int
        /// When it is to be shown, on the media's clock, in nanoseconds.
        package var timestamp: Int64
        package var at: ContinuousClock.Instant
    }
    private struct State {
        var pictures: [Picture] = []
        var unreadable = 0
        var waiters: [Int: AsyncStream<Void>.Continuation] = [:]
        var nextWaiter = 0
    }
    private let state = Locked(State())

    package init() {}

    package var pictures: [Picture] { state.withLock { $0.pictures } }
    /// Decoded pictures whose number could not be read.
    package var unreadable: Int { state.withLock { $0.unreadable } }

    package func clear() {
        state.withLock {
            $0.pictures = []
            $0.unreadable = 0
        }
    }

    package func show(_ frame: VideoFrame) {
        let at = ContinuousClock.now
        let number = FrameCounter.read(from: frame)
        let waiters = state.withLock { state in
            if let number {
                state.pictures.append(
                    Picture(
                        number: number, width: frame.width, height: frame.height, timestamp: frame.timestamp, at: at))
            } else {
                state.unreadable += 1
            }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.yield() }
    }

    /// True as soon as the pictures are enough; false when they are not within the bound.
    package func wait(_ limit: Duration, until isEnough: ([Picture]) -> Bool) async -> Bool {
        let (changes, waiter) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let id = state.withLock { state in
            state.nextWaiter += 1
            state.waiters[state.nextWaiter] = waiter
            return state.nextWaiter
        }
        defer { state.withLock { _ = $0.waiters.removeValue(forKey: id) } }
        let bound = Task {
            try await Task.sleep(for: limit)
            waiter.finish()
        }
        defer { bound.cancel() }
        waiter.yield()  // it may be enough already
        for await _ in changes where isEnough(pictures) { return true }
        return false
    }

    /// Waits for `count` pictures in a row of this width.
    package func shows(width: Int, count: Int = 20, within limit: Duration = .seconds(20)) async -> Bool {
        await wait(limit) { pictures in
            pictures.count >= count && pictures.suffix(count).allSatisfy { $0.width == width }
        }
    }
}

/// The longest standstills of a viewer.
package struct Standstill: CustomStringConvertible {
    /// Most numbers from one picture to the next: 1 is none missing.
    package var numbers = 0
    /// Longest time from one picture to the next by when they were decoded, in milliseconds.
    package var wall = 0.0
    /// By how much the timestamps of two neighbours were apart from when the source took them, in milliseconds.
    package var skew = 0.0
    /// Pictures that came behind one of a higher number.
    package var backwards = 0

    package init(_ pictures: some Sequence<CountedScreen.Picture>, source: CountedSource? = nil) {
        let pictures = Array(pictures)
        for (before, after) in zip(pictures, pictures.dropFirst()) {
            if after.number < before.number { backwards += 1 }
            numbers = max(numbers, Int(after.number) - Int(before.number))
            if let time = source?.time(from: before.number, to: after.number) {
                skew = max(skew, abs(Double(after.timestamp - before.timestamp - time) / 1e6))
            }
            wall = max(wall, (after.at - before.at) / .milliseconds(1))
        }
    }

    package var description: String {
        "\(numbers) numbers, \(Int(wall)) ms of wall time, \(Int(skew)) ms of skew"
            + (backwards > 0 ? ", \(backwards) backwards" : "")
    }
}
