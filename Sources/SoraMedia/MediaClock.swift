import Glibc
import SoraRTP
import SoraWire

/// CLOCK_MONOTONIC in nanoseconds, for frames that come from threads without a loop. Machines get `now` as an argument.
enum MediaClock {
    static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

/// Wall-clock times of one remote sender on our clock; shared by its sound and its pictures, which puts them in step.
final class PlayoutClock {
    /// Our time minus the sender's, in nanoseconds; from the first sender report of any of its tracks.
    var offset: Int64?
    /// Our time of the sound that leaves the speaker now, minus its capture time on our clock: how much later than
    /// taken the sender's media is shown. Nil while no sound is played.
    var playoutDelay: Int64?
    var playoutDelayAt: Instant?
}

/// RTP times of one stream as capture times on our clock (nanoseconds).
///
/// Until the first sender report they follow the arrival of the stream's first packet.
struct TrackClock {
    let clockRate: Int
    private var last: (timestamp: RTPTimestamp, time: Int64)?
    /// An RTP time and the same on our clock.
    private var reference: (time: Int64, local: Int64)?
    private var report: (time: Int64, ntp: Int64)?

    init(clockRate: Int) { self.clockRate = max(clockRate, 1) }

    private mutating func unwrap(_ timestamp: RTPTimestamp) -> Int64 {
        guard let last else {
            self.last = (timestamp, 0)
            return 0
        }
        let time = last.time + Int64(timestamp.distance(from: last.timestamp))
        if time > last.time { self.last = (timestamp, time) }
        return time
    }

    private func nanoseconds(_ ticks: Int64) -> Int64 {
        // Whole seconds first: nothing overflows in a stream of years.
        ticks / Int64(clockRate) * 1_000_000_000 + ticks % Int64(clockRate) * 1_000_000_000 / Int64(clockRate)
    }

    mutating func local(_ timestamp: RTPTimestamp, arrival: Instant, sender: PlayoutClock) -> Int64 {
        let time = unwrap(timestamp)
        if let report, let offset = sender.offset { return report.ntp &+ nanoseconds(time - report.time) &+ offset }
        guard let reference else {
            reference = (time, arrival.nanoseconds)
            return arrival.nanoseconds
        }
        return reference.local + nanoseconds(time - reference.time)
    }

    mutating func receive(ntp: NTPTime, timestamp: RTPTimestamp, arrival: Instant, sender: PlayoutClock) {
        let time = unwrap(timestamp)
        let wall =
            Int64(ntp.rawValue >> 32) * 1_000_000_000
            + Int64(((ntp.rawValue & 0xFFFF_FFFF) * 1_000_000_000) >> 32)
        if sender.offset == nil {
            // The first report fixes the sender's clock where this stream's own times are, so that nothing jumps.
            let own = reference.map { $0.local + nanoseconds(time - $0.time) } ?? arrival.nanoseconds
            sender.offset = own &- wall
        }
        report = (time, wall)
    }
}
