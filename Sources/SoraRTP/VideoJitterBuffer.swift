import SoraWire

/// Puts a video stream's packets in order, joins them to frames, and delivers each frame at most once and only if it
/// can be decoded.
///
/// A gap is waited out up to a bound while retransmission is under way. Then, or when ``abandonGap(now:)`` says that
/// nothing will come, the buffer goes on behind the gap where that is safe (a key frame; VP8 and VP9: an unbroken
/// chain of base layer frames, or picture ids that show that nothing was lost), and otherwise asks for a key frame and
/// delivers nothing until it comes.
///
/// Invariant: stored packets and bytes never exceed the configured bounds.
package struct VideoJitterBuffer: Sendable {
    package struct Configuration: Sendable {
        /// Longest wait for the packet at the head of the line.
        package var maximumWait: Duration = .milliseconds(500)
        /// A complete key frame behind a gap is not held up longer than this.
        package var keyFrameWait: Duration = .milliseconds(40)
        /// How long the first key frame of a stream may take to become complete before a new one is asked for.
        package var startWait: Duration = .milliseconds(500)
        package var maximumPackets = 2048
        package var maximumBytes = 4 << 20
        package init() {}
    }

    package enum Output: Equatable, Sendable {
        case frame(ReceivedVideoFrame)
        /// Nothing more can be decoded: ask the sender. Comes once per break, whose length
        /// ``VideoJitterBuffer/isWaitingForKeyFrame`` tells.
        case keyFrameNeeded
    }

    struct Entry: Sendable {
        var packet: [UInt8]
        var payload: Range<Int>
        var timestamp: RTPTimestamp
        var marker: Bool
        var info: VideoPayloadInfo
        var arrival: Instant
        var rotation: Int?
    }

    package let format: VideoPayloadFormat
    private let configuration: Configuration
    private var unwrapper = SequenceUnwrapper()
    private var entries: [Int64: Entry] = [:]
    private var bytes = 0
    /// First number not yet delivered or skipped; nil before the first frame.
    private var head: Int64?
    /// How far the frame at `head` is known to be complete.
    private var scanned: Int64?
    /// Starts of key frames seen and not yet delivered, ascending, each with how far it was found complete.
    private var keyFrames: [(start: Int64, scanned: Int64)] = []
    /// Since when the packet at the head of the line, or the rest of its frame, is awaited.
    private var blockedSince: Instant?
    private var hasLookedForKeyFrame = false
    private var continuity = VideoContinuity()
    private var outputs: [Output] = []
    private var nextOutput = 0
    package private(set) var isWaitingForKeyFrame = true
    /// When the first packet came while nothing has been shown: the key frame that the stream began with may be lost.
    private var startedAt: Instant?
    private var hasAskedAtStart = false
    /// Frames delivered, and packets that came too late or twice.
    package private(set) var deliveredFrames: UInt64 = 0
    package private(set) var keyFramesDelivered: UInt64 = 0
    package private(set) var droppedPackets: UInt64 = 0
    /// Complete frames that could not be delivered because something before them was lost.
    package private(set) var undecodableFrames: UInt64 = 0

    package init(format: VideoPayloadFormat, configuration: Configuration = Configuration()) {
        self.format = format
        self.configuration = configuration
    }

    package mutating func poll() -> Output? {
        guard nextOutput < outputs.count else { return nil }
        defer {
            nextOutput += 1
            if nextOutput == outputs.count {
                outputs.removeAll(keepingCapacity: true)
                nextOutput = 0
            }
        }
        return outputs[nextOutput]
    }

    /// Takes a packet, original or restored from RTX. Payloads that break their format are dropped like lost ones.
    package mutating func insert(_ packet: [UInt8], header: RTPHeader, rotation: Int? = nil, now: Instant) {
        let sequence = unwrapper.unwrap(header.sequenceNumber)
        if let head, sequence < head {
            droppedPackets &+= 1
            return
        }
        guard entries[sequence] == nil else {
            droppedPackets &+= 1
            return
        }
        let payload = header.payloadRange
        guard payload.upperBound <= packet.count else { return }
        var info = VideoPayloadInfo()
        if !payload.isEmpty {
            guard let read = try? format.inspect(packet, payload) else {
                droppedPackets &+= 1
                return
            }
            info = read
        }
        makeRoom(for: packet.count)
        entries[sequence] = Entry(
            packet: packet, payload: payload, timestamp: header.timestamp, marker: header.marker, info: info,
            arrival: now, rotation: rotation)
        bytes += packet.count
        if startedAt == nil { startedAt = now }
        if info.startsKeyFrame { noteKeyFrame(sequence) }
        if blockedSince == nil { progress(now) }
        drain(now)
        if let blockedSince, !isWaitingForKeyFrame, !keyFrames.isEmpty,
            now >= blockedSince + configuration.keyFrameWait, deliverKeyFrame(now)
        {
            drain(now)
        }
    }

    package var nextTimeout: Instant? {
        if awaitsStart, let startedAt { return startedAt + configuration.startWait }
        guard let blockedSince, !isWaitingForKeyFrame else { return nil }
        let looksForKeyFrame = !keyFrames.isEmpty && !hasLookedForKeyFrame
        return blockedSince + (looksForKeyFrame ? configuration.keyFrameWait : configuration.maximumWait)
    }

    /// Nothing has been delivered yet, and nobody was asked.
    private var awaitsStart: Bool { isWaitingForKeyFrame && deliveredFrames == 0 && !hasAskedAtStart }

    package mutating func handleTimeout(now: Instant) {
        if awaitsStart, let startedAt, now >= startedAt + configuration.startWait {
            hasAskedAtStart = true
            outputs.append(.keyFrameNeeded)
            return
        }
        guard let blockedSince, !isWaitingForKeyFrame else { return }
        if now >= blockedSince + configuration.keyFrameWait {
            hasLookedForKeyFrame = true
            if deliverKeyFrame(now) {
                drain(now)
                return
            }
        }
        if now >= blockedSince + configuration.maximumWait { goOnOrBreak(now) }
    }

    /// Retransmission gave up: go on behind the gap if that is safe, else ask for a key frame. Without a gap, nothing.
    package mutating func abandonGap(now: Instant) {
        guard !isWaitingForKeyFrame, blockedSince != nil, let head else { return }
        let next = scanned ?? head
        guard entries.keys.contains(where: { $0 > next }) else { return }
        goOnOrBreak(now)
    }

    private mutating func goOnOrBreak(_ now: Instant) {
        if !deliverKeyFrame(now), !skipToDecodableFrame(now) { breakStream() }
        drain(now)
    }

    /// The decoder failed: what follows is worthless until a key frame.
    package mutating func requireKeyFrame(now: Instant) {
        guard !isWaitingForKeyFrame else { return }
        breakStream()
        drain(now)
    }

    /// Frees everything, as when the stream stopped.
    package mutating func reset() {
        entries.removeAll()
        keyFrames.removeAll()
        bytes = 0
        head = nil
        scanned = nil
        blockedSince = nil
        unwrapper = SequenceUnwrapper()
        continuity = VideoContinuity()
        isWaitingForKeyFrame = true
        startedAt = nil
        hasAskedAtStart = false
    }

    package var storedPackets: Int { entries.count }
}

// MARK: Progress

extension VideoJitterBuffer {
    /// Delivers everything that is complete and in order.
    private mutating func drain(_ now: Instant) {
        if isWaitingForKeyFrame, !deliverKeyFrame(now) { return }
        while let start = head {
            guard let entry = entries[start] else { break }
            if entry.payload.isEmpty {  // padding only
                remove(start)
                head = start + 1
                scanned = nil
                progress(now)
                continue
            }
            let isGood: Bool
            switch extent(from: start, resumingAt: scanned ?? start) {
            case .incomplete(let next):
                scanned = next
                return
            case .complete(let end):
                isGood = deliver(start, end)
            case .cutOff(let next):
                undecodableFrames &+= 1
                removeAll(before: next)
                head = next
                scanned = nil
                isGood = entries[next]?.info.startsKeyFrame ?? false
            }
            progress(now)
            if !isGood {
                breakStream()
                if !deliverKeyFrame(now) { return }
            }
        }
        if entries.isEmpty { blockedSince = nil }
    }

    private enum Extent {
        case complete(end: Int64)
        /// All packets up to the next frame are there, but none says that it is the last: a sender (or a server that
        /// switched layers) cut the frame off.
        case cutOff(next: Int64)
        /// Packets are missing from here on.
        case incomplete(next: Int64)
    }

    private func extent(from start: Int64, resumingAt first: Int64) -> Extent {
        guard let timestamp = entries[start]?.timestamp else { return .incomplete(next: start) }
        var sequence = first
        while let entry = entries[sequence] {
            if !entry.payload.isEmpty {
                if entry.timestamp != timestamp { return .cutOff(next: sequence) }
                if entry.marker { return .complete(end: sequence) }
            }
            sequence += 1
        }
        return .incomplete(next: sequence)
    }

    /// Delivers the frame unless it is undecodable because of an earlier skip; either way goes on behind it.
    /// False if its payloads do not fit together.
    private mutating func deliver(_ start: Int64, _ end: Int64) -> Bool {
        var slices: [VideoPayloadSlice] = []
        var info = VideoPayloadInfo()
        var frame = ReceivedVideoFrame(
            data: [], timestamp: RTPTimestamp(0), isKeyFrame: false, temporalLayer: nil, rotation: nil,
            packetCount: 0, firstArrival: .distantFuture, lastArrival: .zero)
        for sequence in start...end {
            guard let entry = entries[sequence] else { continue }
            remove(sequence)
            guard !entry.payload.isEmpty else { continue }
            if slices.isEmpty {
                info = entry.info
                frame.timestamp = entry.timestamp
                frame.temporalLayer = info.temporalLayer
            }
            if entry.info.startsKeyFrame { info.startsKeyFrame = true }
            frame.firstArrival = min(frame.firstArrival, entry.arrival)
            frame.lastArrival = max(frame.lastArrival, entry.arrival)
            frame.rotation = entry.rotation ?? frame.rotation
            slices.append(VideoPayloadSlice(packet: entry.packet, range: entry.payload))
        }
        head = end + 1
        scanned = nil
        keyFrames.removeAll { $0.start <= end }
        guard continuity.accept(info) else {
            undecodableFrames &+= 1
            return true
        }
        guard let data = try? format.assemble(slices) else {
            undecodableFrames &+= 1
            return false
        }
        frame.data = data
        frame.isKeyFrame = info.startsKeyFrame
        frame.packetCount = slices.count
        deliveredFrames &+= 1
        if frame.isKeyFrame { keyFramesDelivered &+= 1 }
        outputs.append(.frame(frame))
        return true
    }

    /// Delivers the newest complete key frame, dropping everything before it.
    private mutating func deliverKeyFrame(_ now: Instant) -> Bool {
        for index in keyFrames.indices.reversed() {
            let candidate = keyFrames[index]
            guard isCertainStart(candidate.start) else { continue }
            let end: Int64
            switch extent(from: candidate.start, resumingAt: max(candidate.scanned, candidate.start)) {
            case .complete(let last): end = last
            case .incomplete(let next):
                keyFrames[index].scanned = next
                continue
            case .cutOff:
                keyFrames.remove(at: index)
                continue
            }
            removeAll(before: candidate.start)
            isWaitingForKeyFrame = false
            continuity = VideoContinuity()
            head = candidate.start
            guard deliver(candidate.start, end) else {
                isWaitingForKeyFrame = true
                return false
            }
            progress(now)
            return true
        }
        return false
    }

    /// Finds the first complete frame behind the gap that can be decoded all the same.
    private mutating func skipToDecodableFrame(_ now: Instant) -> Bool {
        var behindGap = false
        for sequence in entries.keys.sorted() {
            if entries[sequence - 1] == nil { behindGap = true }
            guard behindGap, let entry = entries[sequence], entry.info.startsFrame, !entry.payload.isEmpty else {
                continue
            }
            let verdict = continuity.verdictAfterGap(entry.info)
            guard verdict != .undecodable,
                case .complete(let end) = extent(from: sequence, resumingAt: sequence)
            else { continue }
            removeAll(before: sequence)
            head = sequence
            if verdict == .decodableAfterLoss { continuity.noteLoss() }
            progress(now)
            return deliver(sequence, end)
        }
        return false
    }

    private mutating func progress(_ now: Instant) {
        blockedSince = now
        hasLookedForKeyFrame = false
    }

    private mutating func breakStream() {
        isWaitingForKeyFrame = true
        blockedSince = nil
        scanned = nil
        // What stands before the oldest key frame in sight can never be shown.
        if let first = keyFrames.first?.start {
            removeAll(before: first)
        } else {
            undecodableFrames &+= entries.isEmpty ? 0 : 1
        }
        outputs.append(.keyFrameNeeded)
    }
}

// MARK: Storage

extension VideoJitterBuffer {
    private mutating func remove(_ sequence: Int64) {
        if let entry = entries.removeValue(forKey: sequence) { bytes -= entry.packet.count }
    }

    private mutating func removeAll(before limit: Int64) {
        for sequence in entries.keys.filter({ $0 < limit }) { remove(sequence) }
        keyFrames.removeAll { $0.start < limit }
    }

    private mutating func noteKeyFrame(_ sequence: Int64) {
        // Several payloads of one key frame may look like its start (parameter sets, slices): the first one counts.
        if let timestamp = entries[sequence]?.timestamp,
            let index = keyFrames.firstIndex(where: { entries[$0.start]?.timestamp == timestamp })
        {
            if keyFrames[index].start > sequence { keyFrames[index] = (sequence, sequence) }
            return
        }
        let index = keyFrames.firstIndex { $0.start > sequence } ?? keyFrames.count
        keyFrames.insert((sequence, sequence), at: index)
        if keyFrames.count > 8 { keyFrames.removeFirst() }
    }

    /// Whether nothing in front of this key frame's first known packet can belong to it.
    private func isCertainStart(_ sequence: Int64) -> Bool {
        guard let entry = entries[sequence] else { return false }
        if !entry.info.mayFollowOthersOfItsFrame || sequence == head { return true }
        guard let previous = entries[sequence - 1] else { return false }
        return previous.marker || previous.timestamp != entry.timestamp
    }

    /// Keeps the bounds: while a key frame is awaited the oldest packets go, else the stream is broken.
    private mutating func makeRoom(for count: Int) {
        if isWaitingForKeyFrame, entries.count >= 512, entries.count % 256 == 0 {
            removeAll(before: keyFrames.first?.start ?? medianSequence)
        }
        guard entries.count >= configuration.maximumPackets || bytes + count > configuration.maximumBytes else {
            return
        }
        if !isWaitingForKeyFrame { breakStream() }
        let limit = medianSequence
        removeAll(before: limit)
        head = head.map { max($0, limit) }
        scanned = nil
    }

    private var medianSequence: Int64 {
        let sequences = entries.keys.sorted()
        return sequences.isEmpty ? 0 : sequences[sequences.count / 2]
    }
}
