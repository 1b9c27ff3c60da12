import SoraFrames
import SoraLocking
import SoraWire

/// Where pictures to be sent go in. Any thread may send; lives as long as the application's stream, over redirects.
package final class LocalVideo: Sendable {
    private struct State {
        var consumer: (@Sendable (VideoFrame) -> Void)?
        var isEnabled = true
        var black: VideoFrameBuffer?
        var clock = SourceClock()
    }
    private let state = Locked(State())

    package init() {}

    /// Off: black pictures of the same size are sent in place of those that come.
    package var isEnabled: Bool {
        get { state.withLock { $0.isEnabled } }
        set { state.withLock { $0.isEnabled = newValue } }
    }

    /// Sends a picture. Never blocks; does nothing while no connection takes it.
    package func send(_ frame: VideoFrame) {
        let (consumer, outgoing): ((@Sendable (VideoFrame) -> Void)?, VideoFrame) = state.withLock { state in
            var frame = frame
            frame.timestamp = state.clock.local(frame.timestamp)
            if !state.isEnabled {
                if state.black?.width != frame.width || state.black?.height != frame.height {
                    state.black = .black(width: frame.width, height: frame.height)
                }
                if let black = state.black { frame.buffer = black }
            }
            return (state.consumer, frame)
        }
        consumer?(outgoing)
    }

    func setConsumer(_ consumer: (@Sendable (VideoFrame) -> Void)?) { state.withLock { $0.consumer = consumer } }
}

/// Where sound to be sent goes in. Any thread may send.
package final class LocalAudio: Sendable {
    private struct State {
        var consumer: (@Sendable (AudioFrame) -> Void)?
        var isEnabled = true
        var clock = SourceClock()
        var taps: [Int: @Sendable (AudioFrame) -> Void] = [:]
        var nextTap = 0
    }
    private let state = Locked(State())

    package init() {}

    /// Off: silence is sent in place of what comes.
    package var isEnabled: Bool {
        get { state.withLock { $0.isEnabled } }
        set { state.withLock { $0.isEnabled = newValue } }
    }

    package func send(_ frame: AudioFrame) {
        let (consumer, taps, outgoing) = state.withLock {
            state -> ((@Sendable (AudioFrame) -> Void)?, [@Sendable (AudioFrame) -> Void], AudioFrame) in
            var frame = frame
            frame.timestamp = state.clock.local(frame.timestamp)
            if !state.isEnabled { frame.samples = [Int16](repeating: 0, count: frame.samples.count) }
            return (state.consumer, Array(state.taps.values), frame)
        }
        consumer?(outgoing)
        for tap in taps { tap(outgoing) }
    }

    /// Hears what is sent, until removed.
    package func addTap(_ tap: @escaping @Sendable (AudioFrame) -> Void) -> Int {
        state.withLock {
            $0.nextTap += 1
            $0.taps[$0.nextTap] = tap
            return $0.nextTap
        }
    }
    package func removeTap(_ id: Int) { _ = state.withLock { $0.taps.removeValue(forKey: id) } }

    func setConsumer(_ consumer: (@Sendable (AudioFrame) -> Void)?) { state.withLock { $0.consumer = consumer } }
}

/// Brings a source's times onto CLOCK_MONOTONIC, which the loops use.
///
/// Sources of ours are on it already. An application's frames may count from anything: then their first frame counts
/// as taken when it came, and distances are kept.
struct SourceClock: Sendable {
    private var offset: Int64?
    private static let tolerance: Int64 = 10_000_000_000

    mutating func local(_ timestamp: Int64) -> Int64 {
        let now = MediaClock.now
        func distance(_ offset: Int64) -> Int64? {
            let (sum, overflow) = timestamp.addingReportingOverflow(offset)
            let (difference, overflows) = sum.subtractingReportingOverflow(now)
            return overflow || overflows ? nil : difference
        }
        if let offset, let distance = distance(offset), abs(distance) < Self.tolerance { return timestamp + offset }
        if let distance = distance(0), abs(distance) < Self.tolerance {
            offset = 0
            return timestamp
        }
        let (difference, overflow) = now.subtractingReportingOverflow(timestamp)
        offset = overflow ? nil : difference
        return now
    }
}
