import SoraWire

extension SCTPAssociation {
    // MARK: Packets

    /// Takes one packet. Anything that is not for this association is dropped.
    mutating func handle(_ packet: [UInt8], now: Instant) {
        self.now = now
        statistics.packetsReceived += 1
        statistics.bytesReceived += packet.count
        guard let header = CommonHeader(packet: packet), isAcceptable(header, packet) else {
            statistics.droppedPackets += 1
            return
        }
        beginBurst()
        var offset = CommonHeader.size
        var isFirst = true
        var sawData = false
        var isUrgent = false
        while offset + 4 <= packet.count, state != .ended || isFirst {
            let type = packet[offset]
            let length = Int(loadUInt16(packet, offset + 2))
            // A chunk that does not fit ends its packet.
            guard length >= 4, offset + length <= packet.count else { break }
            if type == ChunkType.data {
                guard receivesData else { return }
                if !sawData && sack.isDue { acknowledgeSeparately() }
                guard let chunk = DataChunk(packet: packet, offset: offset, length: length) else {
                    noUserData(packet, offset)
                    return
                }
                if receive(
                    chunk, packet: packet, range: (offset + DataChunk.headerSize)..<(offset + length))
                {
                    isUrgent = true
                }
                sawData = true
            } else {
                let value = ByteReader(packet, in: (offset + 4)..<(offset + length))
                guard
                    handleControl(
                        type, packet: packet, offset: offset, length: length, value: value, tag: header.verificationTag,
                        isFirst: isFirst)
                else { break }
            }
            isFirst = false
            offset += (length + 3) & ~3
        }
        if sawData && state != .ended { finishedData(isUrgent: isUrgent) }
    }

    /// Ports, verification tag and checksum (RFC 9260, 8.5; RFC 9653).
    private mutating func isAcceptable(_ header: CommonHeader, _ packet: [UInt8]) -> Bool {
        guard header.sourcePort == configuration.remotePort, header.destinationPort == configuration.localPort
        else { return false }
        let type = packet[CommonHeader.size]
        let flags = packet[CommonHeader.size + 1]
        let checksum = CommonHeader.checksum(of: packet)
        let mayBeZero =
            configuration.zeroChecksum && type != ChunkType.initiation && type != ChunkType.cookieEcho
        if !(checksum == 0 && mayBeZero) {
            guard CRC32C.checksum(ofPacket: packet) == checksum else { return false }
        }
        switch type {
        case ChunkType.initiation:
            let length = Int(loadUInt16(packet, CommonHeader.size + 2))
            return header.verificationTag == 0 && CommonHeader.size + ((length + 3) & ~3) >= packet.count
        case ChunkType.cookieEcho:
            // Its cookie says which tag is right.
            return header.verificationTag != 0
        case ChunkType.abort, ChunkType.shutdownComplete:
            if flags & 1 == 1 { return peerTag != 0 && header.verificationTag == peerTag }
            return header.verificationTag == localTag
        default:
            if state == .ended || state == .closed {
                answerStray(header, type: type)
                return false
            }
            return header.verificationTag == localTag
        }
    }

    /// Tells a peer that goes on after our end that there is nothing here (RFC 9260, 8.4), at most ten
    /// times a second.
    private mutating func answerStray(_ header: CommonHeader, type: UInt8) {
        guard state == .ended, header.verificationTag == localTag else { return }
        if let last = lastStrayAnswer, now - last < .milliseconds(100) { return }
        lastStrayAnswer = now
        var writer = packetWriter(tag: header.verificationTag)
        if type == ChunkType.shutdownAck {
            writeChunk(ChunkType.shutdownComplete, flags: 1, to: &writer) { _ in }
        } else {
            ErrorCause.writeChunk(ChunkType.abort, causes: [], reflectsTag: true, to: &writer)
        }
        finishPacket(&writer, mayOmitChecksum: false)
    }

    private var receivesData: Bool {
        switch state {
        case .established, .shutdownPending, .shutdownSent, .cookieEchoed: true
        default: false
        }
    }

    /// One chunk other than DATA. False ends the packet.
    private mutating func handleControl(
        _ type: UInt8, packet: [UInt8], offset: Int, length: Int, value: ByteReader, tag: UInt32, isFirst: Bool
    ) -> Bool {
        switch type {
        case ChunkType.initiation:
            if isFirst { handleInit(value) }
            return false
        case ChunkType.initiationAck:
            handleInitAck(value)
            return false
        case ChunkType.cookieEcho:
            guard isFirst else { return false }
            return handleCookieEcho(value, tag: tag)
        case ChunkType.cookieAck: handleCookieAck()
        case ChunkType.sack:
            guard let sack = SackChunk(packet: packet, offset: offset, length: length) else { return false }
            if isEstablished { handleSack(sack, packet: packet) }
        case ChunkType.heartbeat:
            guard isEstablished, let chunk = try? HeartbeatChunk(value: value) else { return isEstablished }
            queueControl { chunk.write(isAck: true, to: &$0) }
        case ChunkType.heartbeatAck:
            if let chunk = try? HeartbeatChunk(value: value) { handleHeartbeatAck(chunk) }
        case ChunkType.abort:
            handleAbort(value)
            return false
        case ChunkType.error: handleError(value)
        case ChunkType.shutdown: handleShutdown(value)
        case ChunkType.shutdownAck: handleShutdownAck()
        case ChunkType.shutdownComplete:
            if state == .shutdownAckSent { end(nil) }
        case ChunkType.forwardTSN:
            guard isEstablished, let chunk = try? ForwardTSNChunk(value: value) else { return false }
            handleForwardTSN(chunk)
        case ChunkType.reconfiguration:
            guard isEstablished, let chunk = try? ReconfigurationChunk(value: value) else { return false }
            handleReconfiguration(chunk)
        default:
            let action = UnknownTypeAction(chunkType: type)
            if action.reports && isEstablished {
                let copied = Array(packet[offset..<(offset + min(length, 256))])
                reportError(ErrorCause(code: ErrorCause.Code.unrecognizedChunk, info: copied))
            }
            return action.skips
        }
        return state != .ended
    }

    mutating func reportError(_ cause: ErrorCause) {
        queueControl { ErrorCause.writeChunk(ChunkType.error, causes: [cause], to: &$0) }
    }

    /// Adds a chunk to the next packet. Beyond a handful waiting, answers to the peer are dropped.
    mutating func queueControl(_ write: (inout ByteWriter) -> Void) {
        guard controlChunks.count < 16 else { return }
        var writer = ByteWriter(capacity: 64)
        write(&writer)
        guard writer.count <= configuration.packetLimit - CommonHeader.size else { return }
        controlChunks.append(writer.bytes)
    }

    // MARK: Data

    private mutating func noUserData(_ packet: [UInt8], _ offset: Int) {
        let tsn = offset + 8 <= packet.count ? Array(packet[(offset + 4)..<(offset + 8)]) : []
        abort(
            ErrorCause(code: ErrorCause.Code.noUserData, info: tsn),
            error: .protocolViolation("DATA chunk without user data"), now: now)
    }

    /// True if the acknowledgement must not wait.
    @inline(__always)
    private mutating func receive(_ chunk: DataChunk, packet: [UInt8], range: Range<Int>) -> Bool {
        if Int(chunk.stream) >= inboundStreams {
            reportError(
                ErrorCause(
                    code: ErrorCause.Code.invalidStream,
                    info: [UInt8(chunk.stream >> 8), UInt8(chunk.stream & 0xFF), 0, 0]))
        }
        let hadGaps = reassembly.received.hasGaps
        switch reassembly.receive(chunk, packet: packet, range: range, unread: unreadBytes + queuedMessageBytes) {
        case .inOrder: return hadGaps || chunk.flags.contains(.immediate)
        case .outOfOrder, .refused: return true
        case .duplicate:
            sack.duplicate(chunk.tsn)
            return true
        }
    }

    private mutating func finishedData(isUrgent: Bool) {
        sack.received(
            isUrgent: isUrgent || state == .shutdownSent, now: now, delay: configuration.acknowledgementDelay)
        if state == .shutdownSent { shutdownChunkDue = true }
        if reassembly.isOverrun { return violation("messages that cannot be delivered fill the receive window") }
        resetMayHaveCompleted()
    }

    private mutating func handleForwardTSN(_ chunk: ForwardTSNChunk) {
        _ = reassembly.skip(chunk)
        sack.makeDue()
        resetMayHaveCompleted()
    }

    /// The window that the peer may fill.
    var availableWindow: Int {
        let used = reassembly.heldBytes + reassembly.readyBytes + queuedMessageBytes + unreadBytes
        return max(0, configuration.windowLimit - used)
    }

    /// Tells the peer that there is room again, without a stream of small updates.
    mutating func windowMayHaveOpened() {
        guard isEstablished, sack.advertisedWindow < configuration.windowLimit / 2, !sack.isDue else { return }
        let step = min(configuration.windowLimit / 4, 256 * 1_024)
        if availableWindow - sack.advertisedWindow >= step { sack.makeDue() }
    }
}
