import SoraWire

/// Makes one continuous stream for one receiver out of a sender's simulcast layers (or its only stream).
///
/// At any time one layer is forwarded. Another one is entered at the start of a key frame only; until then the old one
/// goes on. The receiver sees one SSRC whose sequence numbers have no gap of our making, whose timestamps keep to the
/// sender's clock, and whose VP8/VP9 picture ids, base layer indexes and AV1 frame numbers go on by one:
///
/// - Padding-only packets are dropped and leave no gap. One that comes late is forwarded as padding, because its number
///   was already left free.
/// - Packets of the new layer that overtook its key frame's first packet are held and follow it.
/// - Packets of the old layer that come late fill the numbers reserved for them.
/// - Copies (a packet and its retransmission) are forwarded once.
///
/// Layers are named by the owner's numbers. A call costs no allocation beyond the packet that it returns.
package struct StreamForwarder: Sendable {
    private struct Source: Sendable {
        var layer: Int
        var unwrapper = SequenceUnwrapper()
        var map = SequenceMap()
        var timestampOffset: UInt32 = 0
        var pictureIDOffset: UInt16 = 0
        var tl0Offset: UInt8 = 0
    }

    private struct Held: Sendable {
        var packet: ForwardablePacket
        var sequence: Int64
    }

    private static let maximumHeld = 192

    package let ssrc: SSRC
    package let clockRate: Int
    /// What the receiver calls the codec; nil leaves the sender's payload type.
    package var payloadType: PayloadType?
    private let isVideo: Bool

    private var current: Source?
    private var previous: Source?
    private var target: Source?
    private var held: [Held] = []
    private var evictedThrough: Int64 = .min
    private var released: [[UInt8]] = []
    private var nextReleased = 0
    private var clocks: [(layer: Int, clock: RTPClockMapping)] = []

    private var window: ForwardedWindow
    private var lastTimestamp: RTPTimestamp?
    private var lastTimestampAt: Instant = .zero
    private let firstTimestamp: RTPTimestamp
    private var lastPictureID: UInt16?
    private var lastTL0: UInt8?
    /// The mapping that the last source had when forwarding stopped, to go on by if the same layer comes back.
    private var paused: Source?
    /// Layer switches done, the first start included.
    package private(set) var switchCount = 0

    /// - Parameters:
    ///   - ssrc: the receiver's.
    ///   - isVideo: false for sound, where any packet may be the first.
    package init(
        ssrc: SSRC, payloadType: PayloadType?, clockRate: Int, isVideo: Bool, random: inout RandomSource
    ) {
        self.ssrc = ssrc
        self.payloadType = payloadType
        self.clockRate = max(clockRate, 1)
        self.isVideo = isVideo
        // Leave room below for packets that come late, and start in the lower half so that early loss cannot look
        // like a wrap to SRTP's packet index estimation.
        window = ForwardedWindow(next: 0x1_0000 + Int64(random.next() & 0x3FFF) + 1)
        firstTimestamp = RTPTimestamp(UInt32(truncatingIfNeeded: random.next()))
    }

    /// The layer being forwarded; nil before the first key frame and while paused.
    package var currentLayer: Int? { current?.layer }
    /// The layer to be entered at its next key frame.
    package var targetLayer: Int? { target?.layer }
    /// The layer of which a key frame is needed now.
    package var layerNeedingKeyFrame: Int? { isVideo ? target?.layer : nil }
    /// The number of the newest packet forwarded.
    package var lastSequenceNumber: SequenceNumber {
        SequenceNumber(UInt16(truncatingIfNeeded: window.highest))
    }

    /// Chooses the layer to forward; nil stops forwarding. Choosing the current layer cancels a switch under way.
    package mutating func select(_ layer: Int?) {
        guard let layer else {
            if let current { paused = current }
            current = nil
            previous = nil
            setTarget(nil)
            return
        }
        if current?.layer == layer { return setTarget(nil) }
        if target?.layer == layer { return }
        setTarget(layer)
    }

    /// The layer's source began anew (another SSRC, another sender): its numbers mean nothing any more.
    package mutating func sourceRestarted(_ layer: Int) {
        if paused?.layer == layer { paused = nil }
        if previous?.layer == layer { previous = nil }
        clocks.removeAll { $0.layer == layer }
        if current?.layer == layer {
            current = nil
            if target == nil { setTarget(layer) }
        } else if target?.layer == layer {
            setTarget(layer)
        }
    }

    /// Notes a sender report of a layer's source, which ties the layers' timestamps together.
    package mutating func receive(_ report: SenderReport, layer: Int) {
        let clock = RTPClockMapping(
            ntpTime: report.ntpTime, rtpTimestamp: report.rtpTimestamp, clockRate: clockRate)
        if let index = clocks.firstIndex(where: { $0.layer == layer }) {
            clocks[index].clock = clock
        } else {
            clocks.append((layer, clock))
        }
    }

    /// The outgoing timestamp of a moment on the sender's clock, for sender reports to the receiver; nil before the
    /// sender's first report of the current layer.
    package func outgoingTimestamp(at senderTime: NTPTime) -> RTPTimestamp? {
        guard let current, let clock = clock(of: current.layer) else { return nil }
        return RTPTimestamp(clock.timestamp(of: senderTime).rawValue &+ current.timestampOffset)
    }

    /// Gives a packet of a layer. Returns its outgoing form, if it is to be sent, which has the layout of `packet`, so
    /// that its header's ranges hold for it too. ``poll()`` may have more, whether or not this returns one.
    package mutating func forward(_ packet: ForwardablePacket, layer: Int, now: Instant) -> [UInt8]? {
        if current?.layer == layer {
            guard var source = current else { return nil }
            let result = map(packet, &source, now, isCurrent: true)
            current = source
            return result
        }
        if target?.layer == layer { return enter(packet, now) }
        if previous?.layer == layer {
            guard var source = previous else { return nil }
            let result = map(packet, &source, now, isCurrent: false)
            previous = source
            return result
        }
        return nil
    }

    /// Packets that were held until a switch, in order, to be sent after the one that ``forward(_:layer:now:)``
    /// returned. To be drained after each such call.
    package mutating func poll() -> [UInt8]? {
        guard nextReleased < released.count else { return nil }
        let packet = released[nextReleased]
        nextReleased += 1
        if nextReleased == released.count {
            released.removeAll()
            nextReleased = 0
        }
        return packet
    }
}

// MARK: Switching

extension StreamForwarder {
    private mutating func setTarget(_ layer: Int?) {
        target = layer.map { Source(layer: $0) }
        held.removeAll()
        evictedThrough = .min
    }

    private func clock(of layer: Int) -> RTPClockMapping? {
        clocks.first { $0.layer == layer }?.clock
    }

    /// A packet of the layer to be entered: the key frame's start, or one to be held.
    private mutating func enter(_ packet: ForwardablePacket, _ now: Instant) -> [UInt8]? {
        guard var source = target else { return nil }
        let sequence = source.unwrapper.unwrap(packet.header.sequenceNumber)
        target = source
        guard isVideo else { return packet.isPadding ? nil : enter(at: packet, sequence, source, now) }
        if isEntry(packet, sequence) { return enter(at: packet, sequence, source, now) }
        hold(packet, sequence)
        // This packet may prove that the next one, held already, is its frame's first. That one is not the packet
        // given, so it leaves by `poll`.
        if let next = held.first(where: { $0.sequence == sequence + 1 })?.packet, isEntry(next, sequence + 1),
            let bytes = enter(at: next, sequence + 1, source, now)
        {
            released.insert(bytes, at: 0)
        }
        return nil
    }

    /// Whether decoding can start with this packet and all that is needed will follow it.
    private func isEntry(_ packet: ForwardablePacket, _ sequence: Int64) -> Bool {
        // If part of this key frame was held too long and is gone, it cannot be completed any more.
        guard let info = packet.info, info.startsKeyFrame, evictedThrough <= sequence else { return false }
        guard info.mayFollowOthersOfItsFrame else { return true }
        // Parameter sets may stand before it: the packet before must be known as the end of another frame.
        guard let before = held.first(where: { $0.sequence == sequence - 1 })?.packet else { return false }
        return before.header.marker || before.header.timestamp != packet.header.timestamp
    }

    private mutating func enter(
        at packet: ForwardablePacket, _ sequence: Int64, _ entered: Source, _ now: Instant
    ) -> [UInt8]? {
        var source = entered
        let first = window.highest + 1
        source.map = SequenceMap(first: sequence, offset: first - sequence)
        source.timestampOffset = timestampOffset(for: packet, layer: source.layer, now)
        if let info = packet.info {
            if let id = info.pictureID { source.pictureIDOffset = (lastPictureID.map { $0 &+ 1 } ?? id) &- id }
            if let index = info.tl0PictureIndex { source.tl0Offset = (lastTL0.map { $0 &+ 1 } ?? index) &- index }
        }
        previous = current
        paused = nil
        target = nil
        switchCount += 1
        let result = map(packet, &source, now, isCurrent: true)
        let waiting = held.filter { $0.sequence > sequence }.sorted { $0.sequence < $1.sequence }
        held.removeAll()
        evictedThrough = .min
        for item in waiting {
            if let bytes = map(item.packet, &source, now, isCurrent: true) { released.append(bytes) }
        }
        current = source
        return result
    }

    private mutating func hold(_ packet: ForwardablePacket, _ sequence: Int64) {
        held.append(Held(packet: packet, sequence: sequence))
        if held.count > StreamForwarder.maximumHeld {
            // Dropped in bulk, so that the cost per packet stays constant.
            let count = StreamForwarder.maximumHeld / 2
            for item in held.prefix(count) { evictedThrough = max(evictedThrough, item.sequence) }
            held.removeFirst(count)
        }
    }

    /// What to add to the new layer's timestamps so that the outgoing ones keep to the sender's clock.
    private func timestampOffset(for packet: ForwardablePacket, layer: Int, _ now: Instant) -> UInt32 {
        let timestamp = packet.header.timestamp
        guard let last = lastTimestamp else { return firstTimestamp.rawValue &- timestamp.rawValue }
        let elapsed = max(now - lastTimestampAt, .zero)
        let byArrival = last + Int(min(elapsed.inSeconds, 3600) * Double(clockRate))
        var result = byArrival
        let old = current ?? paused
        if let old, old.layer == layer {
            result = RTPTimestamp(timestamp.rawValue &+ old.timestampOffset)
        } else if let old, let from = clock(of: layer), let to = clock(of: old.layer) {
            let mapped = to.timestamp(of: from.ntpTime(of: timestamp))
            result = RTPTimestamp(mapped.rawValue &+ old.timestampOffset)
        }
        // Reports that disagree with the arrivals by seconds belong to some other timeline.
        if Int64(result.distance(from: byArrival)).magnitude > UInt64(clockRate) * 3 { result = byArrival }
        if result.distance(from: last) <= 0 { result = last + max(clockRate / 100, 1) }
        return result.rawValue &- timestamp.rawValue
    }
}

// MARK: Rewriting

extension StreamForwarder {
    /// The packet with its outgoing numbers, or nil if it is not to be sent.
    private mutating func map(
        _ packet: ForwardablePacket, _ source: inout Source, _ now: Instant, isCurrent: Bool
    ) -> [UInt8]? {
        let sequence = source.unwrapper.unwrap(packet.header.sequenceNumber)
        let action = source.map.map(sequence, isPadding: packet.isPadding, mayGrow: isCurrent)
        guard case .forward(let number) = action, window.insert(number) else { return nil }
        var bytes: [UInt8] = []
        // Room for larger extensions and for SRTP's tag, so that neither moves the packet.
        bytes.reserveCapacity(packet.bytes.count + 64)
        bytes.append(contentsOf: packet.bytes)
        RTPPacketEditing.setSequenceNumber(SequenceNumber(UInt16(truncatingIfNeeded: number)), in: &bytes)
        let timestamp = RTPTimestamp(packet.header.timestamp.rawValue &+ source.timestampOffset)
        RTPPacketEditing.setTimestamp(timestamp, in: &bytes)
        RTPPacketEditing.setSSRC(ssrc, in: &bytes)
        if let payloadType { RTPPacketEditing.setPayloadType(payloadType, in: &bytes) }
        if isCurrent, !packet.isPadding, lastTimestamp.map({ timestamp.distance(from: $0) > 0 }) ?? true {
            lastTimestamp = timestamp
            lastTimestampAt = now
        }
        if let info = packet.info { rewrite(&bytes, info, source, isCurrent: isCurrent) }
        return bytes
    }

    private mutating func rewrite(
        _ bytes: inout [UInt8], _ info: VideoPayloadInfo, _ source: Source, isCurrent: Bool
    ) {
        if let id = info.pictureID, info.pictureIDPosition > 0, info.pictureIDPosition + 1 < bytes.count {
            let new = id &+ source.pictureIDOffset
            let position = info.pictureIDPosition
            switch info.pictureIDBits {
            case 7: bytes[position] = UInt8(truncatingIfNeeded: new) & 0x7F
            case 15:
                bytes[position] = 0x80 | UInt8(truncatingIfNeeded: new >> 8)
                bytes[position + 1] = UInt8(truncatingIfNeeded: new)
            default:
                bytes[position] = UInt8(truncatingIfNeeded: new >> 8)
                bytes[position + 1] = UInt8(truncatingIfNeeded: new)
            }
            if isCurrent { notePictureID(new, bits: info.pictureIDBits) }
        }
        if let index = info.tl0PictureIndex, info.tl0PictureIndexPosition > 0,
            info.tl0PictureIndexPosition < bytes.count
        {
            let new = index &+ source.tl0Offset
            bytes[info.tl0PictureIndexPosition] = new
            if isCurrent, lastTL0.map({ Int8(bitPattern: new &- $0) > 0 }) ?? true { lastTL0 = new }
        }
    }

    /// Remembers the newest outgoing picture id, whatever its width: ids are compared in their own circle.
    private mutating func notePictureID(_ id: UInt16, bits: UInt8) {
        guard let last = lastPictureID else {
            lastPictureID = id
            return
        }
        let shift = UInt16(16 - min(bits, 16))
        if Int16(bitPattern: (id &- last) << shift) > 0 { lastPictureID = id }
    }
}
