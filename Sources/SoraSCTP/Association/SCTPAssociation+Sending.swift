import SoraWire

extension SCTPAssociation {
    /// A fragment that begins in the rest of a packet is at least this long.
    private static let minimumFragment = 256

    mutating func beginBurst() { burstEnd = max(1, configuration.maximumBurstPackets) }

    /// The next packet to send; nil when nothing may leave now.
    mutating func nextPacket() -> [UInt8]? {
        if let packet = packets.popFirst() { return counted(packet) }
        switch state {
        case .closed, .cookieWait, .ended: return nil
        case .cookieEchoed: guard sendsCookieEcho else { return nil }
        default: break
        }
        let sendsData = maySendData
        let hasControl =
            !controlChunks.isEmpty || resets.isDue || forwardTSNDue || shutdownChunkDue || sendsCookieEcho
        guard sendsData || hasControl || sack.isDue else { return nil }

        let limit = configuration.packetLimit
        var writer = ByteWriter(capacity: limit)
        CommonHeader(
            sourcePort: configuration.localPort, destinationPort: configuration.remotePort,
            verificationTag: peerTag
        ).write(to: &writer)
        let carriesCookie = sendsCookieEcho
        if sendsCookieEcho { writeCookieEcho(to: &writer) }
        if isEstablished, sack.isPending { writeSack(to: &writer) }
        if hasControl { writeControl(to: &writer, limit: limit) }
        if sendsData, writer.count + DataChunk.headerSize < limit { fill(&writer, limit: limit) }
        // Everything that was due may have been abandoned on the way.
        guard writer.count > CommonHeader.size else { return state == .ended ? nil : nextPacketAfterNothing() }
        if carriesCookie || !omitsChecksum { CommonHeader.seal(&writer) }
        return counted(writer.bytes)
    }

    /// Abandoning messages may have made a FORWARD TSN due, and nothing else.
    private mutating func nextPacketAfterNothing() -> [UInt8]? {
        guard forwardTSNDue else { return nil }
        return nextPacket()
    }

    private mutating func counted(_ packet: [UInt8]) -> [UInt8] {
        statistics.packetsSent += 1
        statistics.bytesSent += packet.count
        return packet
    }

    // MARK: Control

    private mutating func writeCookieEcho(to writer: inout ByteWriter) {
        sendsCookieEcho = false
        let cookie = echoedCookie
        writeChunk(ChunkType.cookieEcho, to: &writer) { $0.write(cookie) }
        guard !peerErrors.isEmpty else { return }
        // What could not be read in the INIT ACK is named behind the cookie (RFC 9260, 3.2.1).
        let info = Array(peerErrors.joined())
        peerErrors = []
        guard writer.count + 8 + info.count <= configuration.packetLimit else { return }
        let cause = ErrorCause(code: ErrorCause.Code.unrecognizedParameters, info: info)
        ErrorCause.writeChunk(ChunkType.error, causes: [cause], to: &writer)
    }

    private mutating func writeSack(to writer: inout ByteWriter) {
        let room = (configuration.packetLimit - writer.count - SackChunk.fixedSize) / 4
        let duplicates = sack.duplicates
        let gaps =
            reassembly.received.hasGaps
            ? reassembly.received.gapBlocks(limit: max(0, room - duplicates.count)) : []
        let available = availableWindow
        SackChunk.write(
            cumulative: reassembly.cumulative, receiverWindow: UInt32(truncatingIfNeeded: available), gaps: gaps,
            duplicates: duplicates, to: &writer)
        sack.sent(window: available)
    }

    /// The peer counts reports to find losses: when packets behind a gap arrive in one batch, the first few
    /// get an acknowledgement each, as if they had come one by one.
    mutating func acknowledgeSeparately() {
        guard sack.isDue, reassembly.received.hasGaps, isEstablished, packets.count < 3 else { return }
        var writer = packetWriter(tag: peerTag)
        writeSack(to: &writer)
        finishPacket(&writer, mayOmitChecksum: true)
    }

    private mutating func writeControl(to writer: inout ByteWriter, limit: Int) {
        if shutdownChunkDue {
            shutdownChunkDue = false
            let cumulative = reassembly.cumulative
            writeChunk(ChunkType.shutdown, to: &writer) { $0.write(cumulative.rawValue) }
        }
        var taken = 0
        while taken < controlChunks.count, writer.count + controlChunks[taken].count <= limit {
            writer.write(controlChunks[taken])
            taken += 1
        }
        controlChunks.removeFirst(taken)
        guard isEstablished else { return }
        if resets.isDue, let request = resets.current {
            let chunk = request.chunk(response: resets.expected &- 1)
            if writer.count + 20 + 2 * request.streams.count <= limit {
                chunk.write(to: &writer)
                resets.sent(now: now, wait: timeout.current)
            }
        }
        if forwardTSNDue, writer.count + 8 <= limit { writeForwardTSN(to: &writer, limit: limit) }
    }

    private mutating func writeForwardTSN(to writer: inout ByteWriter, limit: Int) {
        forwardTSNDue = false
        let count = advancedAckPoint - window.cumulative
        guard count > 0 else { return }
        let room = (limit - writer.count - 8) / 4
        var skips: [ForwardTSNChunk.Skip] = []
        var reached = window.cumulative
        for offset in 0..<count {
            guard let chunk = window.chunk(at: offset) else { break }
            if !chunk.flags.contains(.unordered) {
                if let known = skips.lastIndex(where: { $0.stream == chunk.stream }) {
                    skips[known].ssn = chunk.ssn
                } else if skips.count < min(room, 64) {
                    skips.append(ForwardTSNChunk.Skip(stream: chunk.stream, ssn: chunk.ssn))
                } else {
                    break
                }
            }
            reached = window.first + offset
        }
        guard reached - window.cumulative > 0 else { return }
        ForwardTSNChunk(newCumulative: reached, skips: skips).write(to: &writer)
        lastForwardTSN = now
        if retransmissionTimer == nil { retransmissionTimer = now + timeout.current }
    }

    // MARK: Data

    /// True if a DATA chunk may leave now.
    private var maySendData: Bool {
        switch state {
        case .established, .shutdownPending, .shutdownReceived: break
        case .cookieEchoed: guard sendsCookieEcho else { return false }
        default: return false
        }
        if window.lostCount > 0 {
            return retransmitsAtOnce || window.flight < congestion.window
        }
        return maySendNew
    }

    @inline(__always)
    private var maySendNew: Bool {
        guard !queue.isEmpty, burstEnd > 0, window.flight < congestion.window, !window.isFull else { return false }
        return window.flight == 0 || peerWindow - window.flight > 0
    }

    /// Puts lost chunks, then new ones, into the packet as far as windows and size allow.
    private mutating func fill(_ writer: inout ByteWriter, limit: Int) {
        let start = writer.count
        order += 1
        while writer.count + DataChunk.headerSize < limit {
            if window.lostCount > 0 {
                guard retransmitsAtOnce || window.flight < congestion.window, let offset = window.firstLost(),
                    let chunk = window.chunk(at: offset)
                else { break }
                if mayAbandon(chunk) {
                    abandon(at: offset)
                    continue
                }
                guard writer.count + DataChunk.headerSize + ((chunk.length + 3) & ~3) <= limit else { break }
                repeatChunk(chunk, at: offset, to: &writer)
                continue
            }
            guard maySendNew, let slot = queue.nextSlot() else { break }
            if dropIfExpired(slot) { continue }
            guard writeNew(slot, to: &writer, limit: limit, isFirst: writer.count == start) else { break }
        }
        guard writer.count > start else { return }
        burstEnd -= 1
        retransmitsAtOnce = false
        lastDataSent = now
        if retransmissionTimer == nil { retransmissionTimer = now + timeout.current }
        if probeOrder != order { hasProbed = false }
        armProbe()
    }

    private mutating func repeatChunk(_ chunk: SentChunk, at offset: Int, to writer: inout ByteWriter) {
        // Repetitions ask for an answer at once.
        DataChunk(
            flags: chunk.flags.union(.immediate), tsn: window.first + offset, stream: chunk.stream, ssn: chunk.ssn,
            ppid: chunk.ppid
        ).write(to: &writer, payload: chunk.payload, range: chunk.start..<(chunk.start + chunk.length))
        let order = order
        let now = now
        window.setState(.outstanding, at: offset)
        window.update(offset) { sent in
            sent.transmissions = sent.transmissions == .max ? .max : sent.transmissions + 1
            sent.order = order
            sent.sentAt = now
            sent.misses = 0
        }
        congestion.sent(bytes: chunk.length)
        statistics.retransmissions += 1
        // RFC 9260, 6.3.2 R3 and 7.2.4: the earliest outstanding one restarts the timer.
        if offset == 0 { retransmissionTimer = now + timeout.current }
    }

    /// Cuts a fragment into the packet. False if it belongs into the next packet.
    @inline(__always)
    private mutating func writeNew(_ slot: Int, to writer: inout ByteWriter, limit: Int, isFirst: Bool) -> Bool {
        guard let head = queue.streams[slot].queue.first else { return false }
        let left = head.payload.count - head.sent
        var room = limit - writer.count - DataChunk.headerSize
        if left > room {
            let isTooLargeForAnyPacket = left > limit - CommonHeader.size - DataChunk.headerSize
            guard isFirst || (isTooLargeForAnyPacket && room >= SCTPAssociation.minimumFragment) else {
                return false
            }
            room &= ~3
        }
        // What does not fit into the peer's window waits, unless it is the probe of a closed one.
        guard window.flight == 0 || min(left, room) <= peerWindow - window.flight else { return false }
        if window.isEmpty, now - lastDataSent > timeout.current {
            congestion.idle(initialWindow: configuration.initialWindowPackets)
        }
        let before = queue.streams[slot].bufferedAmount
        guard var chunk = queue.takeFragment(slot, room: room) else { return false }
        chunk.transmissions = 1
        chunk.order = order
        chunk.sentAt = now
        var flags = chunk.flags
        if congestion.window <= 2 * configuration.packetLimit || state == .shutdownPending {
            flags.insert(.immediate)
        }
        DataChunk(flags: flags, tsn: window.next, stream: chunk.stream, ssn: chunk.ssn, ppid: chunk.ppid)
            .write(to: &writer, payload: chunk.payload, range: chunk.start..<(chunk.start + chunk.length))
        congestion.sent(bytes: chunk.length)
        window.append(chunk)
        noteBuffered(slot, before: before)
        return true
    }

    private mutating func noteBuffered(_ slot: Int, before: Int) {
        let stream = queue.streams[slot]
        if before > stream.lowThreshold && stream.bufferedAmount <= stream.lowThreshold {
            emit(.bufferedAmountLow(stream.id))
        }
    }

    // MARK: Partial reliability

    func mayAbandon(_ chunk: SentChunk) -> Bool {
        chunk.isExhausted(now: now) && peerFeatures.contains(.partialReliability)
    }

    /// Gives up the message at the head of the queue if its lifetime is over. True if it did.
    private mutating func dropIfExpired(_ slot: Int) -> Bool {
        guard let head = queue.streams[slot].queue.first, now >= head.limits.expires,
            peerFeatures.contains(.partialReliability)
        else { return false }
        guard head.sent == 0 else {
            abandon(number: head.number, lastOffset: window.count - 1, stream: queue.streams[slot].id)
            return true
        }
        let before = queue.streams[slot].bufferedAmount
        queue.finishFirst(slot)
        statistics.abandonedMessages += 1
        noteBuffered(slot, before: before)
        return true
    }

    /// Gives up the whole message that the chunk at `offset` belongs to (RFC 3758, 3.5 A).
    mutating func abandon(at offset: Int) {
        guard let chunk = window.chunk(at: offset) else { return }
        var last = offset
        while let next = window.chunk(at: last + 1), next.message == chunk.message, next.stream == chunk.stream {
            last += 1
        }
        abandon(number: chunk.message, lastOffset: last, stream: chunk.stream)
    }

    private mutating func abandon(number: UInt32, lastOffset: Int, stream: UInt16) {
        var offset = lastOffset
        while let chunk = window.chunk(at: offset), chunk.message == number, chunk.stream == stream {
            let former = window.setState(.abandoned, at: offset)
            if former == .outstanding || former == .lost { queue.update(stream) { $0.outstanding -= 1 } }
            offset -= 1
        }
        statistics.abandonedMessages += 1
        let slot = queue.slot(for: stream)
        if let head = queue.streams[slot].queue.first, head.sent > 0, head.number == number {
            // The peer has a beginning without an end: one TSN that is never sent stands for the rest, so
            // that the next message does not follow a fragment that lacks its end.
            let before = queue.streams[slot].bufferedAmount
            queue.finishFirst(slot)
            window.append(
                SentChunk(
                    payload: [], start: 0, length: 0, ppid: head.ppid, stream: stream, ssn: head.ssn,
                    flags: head.isUnordered ? [.unordered, .end] : [.end], state: .abandoned, message: number,
                    limits: head.limits))
            noteBuffered(slot, before: before)
        }
        updateAdvancedAckPoint()
    }

    /// Moves over abandoned chunks behind the cumulative acknowledgement (RFC 3758, 3.5 C).
    mutating func updateAdvancedAckPoint() {
        if advancedAckPoint - window.cumulative < 0 { advancedAckPoint = window.cumulative }
        let before = advancedAckPoint
        while window.state(at: advancedAckPoint - window.cumulative) == .abandoned { advancedAckPoint += 1 }
        guard advancedAckPoint - window.cumulative > 0 else {
            forwardTSNDue = false
            return
        }
        if advancedAckPoint != before { forwardTSNDue = true }
        if retransmissionTimer == nil { retransmissionTimer = now + timeout.current }
    }
}
