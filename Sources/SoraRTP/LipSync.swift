import SoraWire

/// Delays whichever of sound and picture is ahead, so that what was captured together is played together.
///
/// Both sides say, by sender reports, when the frame that they are about to play was captured and how long it takes
/// from capture to playout as things stand. Changes are made in small steps, which nobody notices.
package struct LipSynchronizer: Sendable {
    /// Largest change of a delay per update.
    private static let step: Duration = .milliseconds(40)
    private static let maximum: Duration = .seconds(2)
    /// Differences below this are not noticed.
    private static let tolerance: Duration = .milliseconds(15)

    /// To be added to the stream's own playout delay.
    package private(set) var audioDelay: Duration = .zero
    package private(set) var videoDelay: Duration = .zero
    private var smoothed: Double?

    package init() {}

    /// - Parameters:
    ///   - audio: capture time and playout time of the sound to be played next, without `audioDelay`.
    ///   - video: the same for the picture, without `videoDelay`.
    package mutating func update(
        audio: (captured: NTPTime, played: Instant), video: (captured: NTPTime, played: Instant)
    ) {
        let captureDifference = video.captured.duration(since: audio.captured)
        let playDifference = video.played - audio.played
        // Positive: the picture comes late.
        let late = (playDifference - captureDifference).inMilliseconds
        guard abs(late) < 10_000 else { return }  // clocks that have nothing to do with each other
        let mean = smoothed.map { $0 * 0.75 + late * 0.25 } ?? late
        smoothed = mean
        let wanted = Duration.microseconds(Int64(mean * 1000))
        move(&audioDelay, towards: max(wanted, .zero))
        move(&videoDelay, towards: max(.zero - wanted, .zero))
    }

    private func move(_ delay: inout Duration, towards goal: Duration) {
        let goal = min(goal, LipSynchronizer.maximum)
        let difference = goal - delay
        if goal != .zero, abs(difference.inMilliseconds) < LipSynchronizer.tolerance.inMilliseconds { return }
        delay = delay + min(max(difference, .zero - LipSynchronizer.step), LipSynchronizer.step)
    }
}

/// Relates a sender's wall clock to ours by the sender reports of all its streams: the least difference between a
/// report's time and its arrival, over the last reports. Sound and picture of one sender share it.
package struct SenderClock: Sendable {
    private var offsets: [Int64] = []
    private var cursor = 0

    package init() {}

    /// Notes a report: `ntpTime` on the sender's clock, arrived at `now`.
    package mutating func receive(_ ntpTime: NTPTime, now: Instant) {
        let offset = NTPTime(now).duration(since: ntpTime).wholeNanoseconds
        if let last = offsets.last, abs(offset &- last) > 10_000_000_000 { offsets.removeAll() }  // the clock was set
        if offsets.count < 16 {
            offsets.append(offset)
        } else {
            offsets[cursor % 16] = offset
            cursor = (cursor + 1) % 16
        }
    }

    /// What the sender's clock shows at `now`, the fastest way of a report deducted; nil before any report.
    package func senderTime(at now: Instant) -> NTPTime? {
        guard let least = offsets.min() else { return nil }
        return NTPTime(now) + .nanoseconds(0 - least)
    }

    /// When, on our clock, the sender's clock showed `time`.
    package func localTime(of time: NTPTime) -> Instant? {
        guard let least = offsets.min() else { return nil }
        return Instant(nanoseconds: time.duration(since: NTPTime(0)).wholeNanoseconds &+ least)
    }
}
