/// What is remembered of one SSRC in one direction.
final class SRTPStream {
    let ssrc: UInt32
    var window = ReplayWindow()
    /// The table's clock at the last use, for eviction.
    fileprivate(set) var lastUse: UInt64 = 0

    init(ssrc: UInt32) { self.ssrc = ssrc }

    /// The 48-bit packet index that `sequence` most likely stands for (RFC 3711 3.3.1 and appendix A).
    ///
    /// Before the first packet the roll-over counter is zero. A step back from there cannot be
    /// genuine, so it is read as a step forward.
    func estimateIndex(of sequence: UInt16) -> UInt64 {
        guard let highest = window.highest else { return UInt64(sequence) }
        let rollOver = highest >> 16
        let last = UInt16(truncatingIfNeeded: highest)
        let distance = Int(sequence) - Int(last)
        if last < 0x8000 {
            return distance > 0x8000 && rollOver > 0
                ? (rollOver - 1) << 16 | UInt64(sequence) : rollOver << 16 | UInt64(sequence)
        }
        return distance < -0x8000 ? (rollOver + 1) << 16 | UInt64(sequence) : rollOver << 16 | UInt64(sequence)
    }
}

/// The streams of one direction and one kind of packet, found by SSRC.
///
/// Only a packet that proved genuine (or that we send ourselves) adds a stream, so that no flood of
/// invented SSRCs grows the table.
struct SRTPStreamTable {
    private var streams: [UInt32: SRTPStream] = [:]
    private var latest: SRTPStream?
    private var clock: UInt64 = 0

    var count: Int { streams.count }

    /// The stream of `ssrc` if it is known.
    mutating func find(_ ssrc: UInt32) -> SRTPStream? {
        if let latest, latest.ssrc == ssrc { return latest }
        guard let stream = streams[ssrc] else { return nil }
        use(stream)
        return stream
    }

    /// Adds a stream that ``find(_:)`` did not know.
    mutating func insert(_ stream: SRTPStream) {
        streams[stream.ssrc] = stream
        use(stream)
    }

    /// Forgets the streams not used for longest until at most three quarters of `limit` are left.
    mutating func evictIdleStreams(limit: Int) {
        guard streams.count >= limit else { return }
        let byAge = streams.values.sorted { $0.lastUse < $1.lastUse }
        for stream in byAge.prefix(streams.count - limit * 3 / 4) where stream !== latest {
            streams.removeValue(forKey: stream.ssrc)
        }
    }

    private mutating func use(_ stream: SRTPStream) {
        clock &+= 1
        latest?.lastUse = clock
        stream.lastUse = clock
        latest = stream
    }
}
