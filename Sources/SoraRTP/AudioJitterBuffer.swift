import SoraWire

/// What to play next. Each case lasts `samples` samples per channel of the RTP clock.
package enum AudioPlayout: Equatable, Sendable {
    /// Decode this packet. `pace` asks to stretch or shorten what comes out, to steer the delay.
    case packet([UInt8], samples: Int, pace: Pace)
    /// The packet before this one is lost: decode the coarse copy in this one (in-band error correction). It will be
    /// given as ``packet(_:samples:pace:)`` next.
    case recover(fromNext: [UInt8], samples: Int)
    /// Lost, and nothing to restore it from: let the decoder conceal it.
    case conceal(samples: Int)
    /// Nothing is sent (before the start, in discontinuous transmission, or after long loss): comfort noise or silence.
    case silence(samples: Int)

    package enum Pace: Sendable { case normal, faster, slower }

    package var samples: Int {
        switch self {
        case .packet(_, let samples, _), .recover(_, let samples), .conceal(let samples), .silence(let samples): samples
        }
    }
}

/// Puts Opus packets in order and deals them out at the pace of the sound card, with a delay that follows the
/// network's jitter.
///
/// The player pulls; each pull gives the next piece of the stream's time. Loss in the middle takes the time that was
/// lost. Running empty does not: the stream then goes on where it stopped, with a larger delay, which a `faster` pace
/// wins back later.
package struct AudioJitterBuffer: Sendable {
    package struct Configuration: Sendable {
        package var minimumDelay: Duration = .milliseconds(20)
        package var maximumDelay: Duration = .milliseconds(500)
        /// Packets kept at most; the oldest go first.
        package var maximumPackets = 200
        package init() {}
    }

    private struct Entry: Sendable {
        var sequence: Int64
        var time: Int64
        var payload: [UInt8]
        var info: OpusPacketInfo
        var arrival: Instant
    }

    private static let unit = 960  // 20 ms: what silence and concealment come in
    private let configuration: Configuration
    private var sequences = SequenceUnwrapper()
    private var lastTime: (timestamp: RTPTimestamp, time: Int64)?
    private var entries: [Entry] = []
    /// The stream's time to be played next; nil before the start and after a long underrun.
    private var next: Int64?
    private var lastSequence: Int64?
    private var isInSilence = false
    /// Concealed while empty, since the last packet.
    private var concealedWhileEmpty = 0
    private var delay = PlayoutDelayEstimator()

    /// Samples dealt out, and those among them that were concealed or silence for lack of packets.
    package private(set) var totalSamples: UInt64 = 0
    package private(set) var concealedSamples: UInt64 = 0
    package private(set) var concealmentEvents: UInt64 = 0
    package private(set) var recoveredPackets: UInt64 = 0
    /// Packets that came after their time or twice.
    package private(set) var droppedPackets: UInt64 = 0

    package init(configuration: Configuration = Configuration()) { self.configuration = configuration }

    /// The delay aimed at.
    package var targetDelay: Duration {
        min(max(delay.target, configuration.minimumDelay), configuration.maximumDelay)
    }
    /// Sound in the buffer, gaps included.
    package var bufferedSamples: Int {
        guard let first = entries.first, let last = entries.last else { return 0 }
        return Int(last.time) + last.info.samples - Int(max(next ?? first.time, first.time))
    }

    /// RTP time of the piece that is dealt out next; nil before the start and after running empty. For lip sync.
    package var nextTimestamp: RTPTimestamp? {
        guard let next, let last = lastTime else { return nil }
        return last.timestamp + Int(next - last.time)
    }

    /// Takes a packet's payload. What is no Opus is dropped.
    package mutating func insert(_ payload: [UInt8], header: RTPHeader, now: Instant) {
        guard let info = OpusPacketInfo(payload) else { return }
        let sequence = sequences.unwrap(header.sequenceNumber)
        let time = unwrap(header.timestamp)
        delay.note(arrival: now, time: time, packetSamples: info.samples)
        if let position = next, time < position {
            // Too late, unless nothing else is there and the stream pauses: then it goes on from here.
            guard entries.isEmpty, isInSilence || concealedWhileEmpty > 0, sequence > lastSequence ?? .min else {
                droppedPackets &+= 1
                return
            }
            next = time - Int64(samples(of: targetDelay))
            concealedWhileEmpty = 0
        }
        var index = entries.count
        while index > 0, entries[index - 1].sequence >= sequence { index -= 1 }
        if index < entries.count, entries[index].sequence == sequence {
            droppedPackets &+= 1
            return
        }
        entries.insert(
            Entry(sequence: sequence, time: time, payload: payload, info: info, arrival: now), at: index)
        if entries.count > configuration.maximumPackets {
            entries.removeFirst()
            droppedPackets &+= 1
        }
    }

    /// The next piece of sound.
    package mutating func pull(now: Instant) -> AudioPlayout {
        let piece = nextPiece(now)
        totalSamples &+= UInt64(piece.samples)
        return piece
    }

    /// Frees everything, as when the stream stopped.
    package mutating func reset() { self = AudioJitterBuffer(configuration: configuration) }
}

extension AudioJitterBuffer {
    private func samples(of duration: Duration) -> Int { Int(duration.inSeconds * Double(OpusPacketInfo.clockRate)) }

    private mutating func unwrap(_ timestamp: RTPTimestamp) -> Int64 {
        guard let last = lastTime else {
            lastTime = (timestamp, 1 << 32)
            return 1 << 32
        }
        let time = last.time + Int64(timestamp.distance(from: last.timestamp))
        if time > last.time { lastTime = (timestamp, time) }
        return time
    }

    private mutating func nextPiece(_ now: Instant) -> AudioPlayout {
        let target = samples(of: targetDelay)
        guard let position = next else { return start(now, target) }
        while let first = entries.first, first.time < position {
            entries.removeFirst()  // overtaken while something was concealed
            droppedPackets &+= 1
        }
        guard let first = entries.first else { return playEmpty(position) }
        if first.time == position {
            let level = bufferedSamples
            // More than half a second too much: somebody slept. Leap.
            if level > target + samples(of: .milliseconds(500)), entries.count > 2 {
                leap(keeping: target)
                return nextPiece(now)
            }
            entries.removeFirst()
            next = position + Int64(first.info.samples)
            lastSequence = first.sequence
            isInSilence = first.info.isSilence
            concealedWhileEmpty = 0
            let pace: AudioPlayout.Pace =
                level > target + samples(of: .milliseconds(40))
                ? .faster : level < target / 2 && level <= first.info.samples ? .slower : .normal
            return .packet(first.payload, samples: first.info.samples, pace: pace)
        }
        return playGap(position, first, now)
    }

    private mutating func start(_ now: Instant, _ target: Int) -> AudioPlayout {
        guard let first = entries.first, bufferedSamples >= target || now - first.arrival >= targetDelay else {
            return .silence(samples: AudioJitterBuffer.unit / 2)
        }
        next = first.time
        lastSequence = first.sequence - 1
        isInSilence = false
        return nextPiece(now)
    }

    /// Time is missing before the first packet there is.
    private mutating func playGap(_ position: Int64, _ first: Entry, _ now: Instant) -> AudioPlayout {
        let gap = Int(clamping: first.time - position)
        let nothingLost = lastSequence.map { first.sequence == $0 + 1 } ?? true
        if nothingLost || isInSilence {
            let samples = min(gap, AudioJitterBuffer.unit)
            next = position + Int64(samples)
            return .silence(samples: samples)
        }
        // What was concealed while empty stood for the beginning of this gap.
        let done = min(gap, concealedWhileEmpty)
        concealedWhileEmpty = 0
        if done > 0 {
            next = position + Int64(done)
            return nextPiece(now)
        }
        if gap == first.info.samples, first.info.carriesForwardErrorCorrection {
            next = first.time
            recoveredPackets &+= 1
            return .recover(fromNext: first.payload, samples: gap)
        }
        if gap > OpusPacketInfo.clockRate {  // more than a second: a new start
            next = first.time
            return nextPiece(now)
        }
        let samples = min(gap, AudioJitterBuffer.unit)
        next = position + Int64(samples)
        noteConcealment(samples)
        return .conceal(samples: samples)
    }

    private mutating func playEmpty(_ position: Int64) -> AudioPlayout {
        let unit = AudioJitterBuffer.unit
        if isInSilence {
            next = position + Int64(unit)
            return .silence(samples: unit)
        }
        concealedWhileEmpty += unit
        noteConcealment(unit)
        // A decoder conceals about 100 ms; then buffering begins anew.
        if concealedWhileEmpty > unit * 6 {
            next = nil
            concealedWhileEmpty = 0
            return .silence(samples: unit)
        }
        return .conceal(samples: unit)
    }

    private mutating func leap(keeping target: Int) {
        guard let last = entries.last else { return }
        let goal = last.time + Int64(last.info.samples) - Int64(target)
        while entries.count > 1, let first = entries.first, first.time < goal {
            entries.removeFirst()
            droppedPackets &+= 1
        }
        next = entries.first?.time
        lastSequence = entries.first.map { $0.sequence - 1 }
    }

    private mutating func noteConcealment(_ samples: Int) {
        if concealedSamples == 0 || concealedWhileEmpty <= AudioJitterBuffer.unit { concealmentEvents &+= 1 }
        concealedSamples &+= UInt64(samples)
    }
}

/// The delay that lets almost every packet come in time: the spread of the last packets' transit times.
struct PlayoutDelayEstimator: Sendable {
    private static let window = 200
    /// Transit times in milliseconds against an arbitrary origin.
    private var transits: [Double] = []
    private var last: Double?
    private var cursor = 0
    private var sinceUpdate = 0
    private(set) var target: Duration = .milliseconds(40)

    mutating func note(arrival: Instant, time: Int64, packetSamples: Int) {
        let transit = Double(arrival.nanoseconds) / 1e6 - Double(time) * 1000 / Double(OpusPacketInfo.clockRate)
        // A jump of a second is a new timeline (a source that restarted or paused its clock), not jitter.
        if let last, abs(transit - last) > 1000 {
            transits.removeAll(keepingCapacity: true)
            cursor = 0
        }
        last = transit
        if transits.count < PlayoutDelayEstimator.window {
            transits.append(transit)
        } else {
            transits[cursor] = transit
            cursor = (cursor + 1) % PlayoutDelayEstimator.window
        }
        sinceUpdate += 1
        guard transits.count >= 5, sinceUpdate >= 10 || transits.count < 20 else { return }
        sinceUpdate = 0
        let sorted = transits.sorted()
        let spread = sorted[min(sorted.count * 97 / 100, sorted.count - 1)] - sorted[0]
        // One packet more: a packet is played while the next one is on its way.
        let packet = Double(packetSamples) * 1000 / Double(OpusPacketInfo.clockRate)
        target = .microseconds(Int64(max(min(spread + packet, 10_000), 0) * 1000))
    }
}
