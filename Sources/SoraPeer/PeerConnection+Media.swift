import SoraICE
import SoraRTP
import SoraSDP
import SoraSecureTransport
import SoraWire

// Media packets in and out, and the feedback about them.

extension PeerConnection {
    // MARK: Sending

    /// Sends one RTP packet on an encoding of a transceiver.
    ///
    /// The packet carries its final sequence number, timestamp and payload type; SSRC and the
    /// extensions of the hop (mid, rid, send time, transport-wide sequence number) are written here.
    /// Extensions that describe the media stay, under the identifiers agreed with this peer.
    /// - Throws: ``PeerError/cannotSend(_:)`` if nothing was agreed to be sent, or before the
    ///   connection is up (the packet is dropped then).
    package func send(
        rtp packet: consuming [UInt8], header: RTPHeader, on transceiver: Transceiver, encoding index: Int = 0,
        now: Instant
    ) throws(PeerError) {
        guard index >= 0, index < transceiver.encodings.count,
            let stream = rtp.outbound[transceiver.encodings[index].ssrc]
        else {
            throw .cannotSend("nothing was agreed to be sent on \(transceiver.mid?.rawValue ?? "this transceiver")")
        }
        guard rtp.sending != nil else { throw .cannotSend("the connection is not up yet") }

        let payloadLength = header.payloadLength
        var sequence: UInt16 = 0
        if transceiver.extensions[.transportSequenceNumber] != nil {
            sequence = rtp.estimator.assignSequence(size: packet.count, now: now)
            if transceiver.kind == .video, stream.history?.rtxSSRC != nil, stream.packets & 63 == 0 {
                rtp.probes.mediaIsFlowing(
                    wanted: rtp.wantedBitrate, estimate: rtp.estimator.targetBitrate, now: now)
            }
        }
        RTPPacketEditing.setSSRC(stream.ssrc, in: &packet)
        stream.extensions.rewrite(
            &packet, header: header, transportSequence: sequence, sendTime: RTPExtensionValue.absoluteSendTime(now))
        stream.history?.store(packet, sequenceNumber: header.sequenceNumber, now: now)
        stream.packets += 1
        stream.bytes += UInt64(payloadLength)
        stream.lastTimestamp = header.timestamp
        stream.lastSentAt = now
        transmitRTP(packet)
    }

    /// Says which wall clock time belongs to which media time of an outbound stream, as a forwarder
    /// knows from the original sender's reports. Sender reports follow it from now on.
    package func setClockMapping(
        of transceiver: Transceiver, encoding index: Int = 0, ntp: NTPTime, timestamp: RTPTimestamp, now: Instant
    ) {
        guard index >= 0, index < transceiver.encodings.count else { return }
        rtp.outbound[transceiver.encodings[index].ssrc]?.clockMapping = (ntp, timestamp, now)
    }

    private func transmitRTP(_ packet: consuming [UInt8]) {
        guard let context = rtp.sending else { return }
        do {
            try context.protect(&packet)
        } catch {
            rtp.rejectedPackets += 1
            return
        }
        if let datagram = ice.datagram(for: packet) { emit(.transmit(datagram)) }
    }

    func transmitRTCP(_ packets: [RTCPPacket]) {
        guard let context = rtp.sending, !packets.isEmpty else { return }
        for var compound in RTCP.serialize(packets, limit: configuration.maximumDatagramSize - 40) {
            do {
                try context.protectRTCP(&compound)
            } catch {
                rtp.rejectedPackets += 1
                continue
            }
            if let datagram = ice.datagram(for: compound) { emit(.transmit(datagram)) }
        }
    }

    // MARK: Receiving

    func handleRTP(_ payload: [UInt8], now: Instant) {
        guard let context = rtp.receiving else { return }
        var packet = payload
        do {
            try context.unprotect(&packet)
        } catch {
            rtp.rejectedPackets += 1
            return
        }
        rtp.decryptedPackets &+= 1
        rtp.decryptedBytes &+= UInt64(packet.count)
        ice.noteAuthenticTraffic(now: now)
        guard let header = try? RTPHeader(parsing: packet) else {
            rtp.rejectedPackets += 1
            return
        }
        if let id = rtp.extensions[.transportSequenceNumber], let range = header.extensionRange(id: id, in: packet),
            let sequence = RTPExtensionValue.uint16(packet, range)
        {
            rtp.transportFeedback.receive(SequenceNumber(sequence), mediaSSRC: header.ssrc, now: now)
        }
        guard let stream = rtp.stream(for: header, packet: packet) else {
            rtp.unroutablePackets += 1
            return
        }
        stream.lastArrival = now
        stream.packets += 1
        stream.bytes += UInt64(header.payloadLength)
        switch stream.role {
        case .media:
            stream.reception.receive(header, now: now)
            deliver(packet, header: header, stream: stream, isRetransmission: false, now: now)
        case .repair:
            stream.reception.receive(header, now: now)
            restore(packet, header: header, repair: stream, now: now)
        }
    }

    private func restore(_ packet: [UInt8], header: RTPHeader, repair: InboundStream, now: Instant) {
        guard let stream = rtp.repairedStream(of: repair) else { return }
        if repair.unwrapper?.originalSSRC != stream.ssrc {
            let types = Dictionary(
                stream.transceiver.codecs.compactMap { codec in
                    codec.associatedPayloadType.map { (codec.payloadType, $0) }
                }, uniquingKeysWith: { first, _ in first })
            repair.unwrapper = RTXReceiver(originalSSRC: stream.ssrc, payloadTypes: types)
        }
        guard let original = repair.unwrapper?.unwrap(packet, header: header),
            let originalHeader = try? RTPHeader(parsing: original)
        else { return }
        stream.retransmittedPackets += 1
        deliver(original, header: originalHeader, stream: stream, isRetransmission: true, now: now)
    }

    private func deliver(
        _ packet: [UInt8], header: RTPHeader, stream: InboundStream, isRetransmission: Bool, now: Instant
    ) {
        if stream.nack != nil, stream.nack?.receive(header.sequenceNumber, now: now) == false, isRetransmission {
            return  // it came after all, or was given up
        }
        emit(
            .rtp(
                ReceivedRTP(
                    transceiver: stream.transceiver.id, rid: stream.rid, header: header, packet: packet,
                    isRetransmission: isRetransmission, arrival: now)))
    }

    func handleRTCP(_ payload: [UInt8], now: Instant) {
        guard let context = rtp.receiving else { return }
        var packet = payload
        do {
            try context.unprotectRTCP(&packet)
        } catch {
            rtp.rejectedPackets += 1
            return
        }
        rtp.decryptedPackets &+= 1
        rtp.decryptedBytes &+= UInt64(packet.count)
        ice.noteAuthenticTraffic(now: now)
        guard let packets = try? RTCP.parse(compound: packet) else {
            rtp.rejectedPackets += 1
            return
        }
        for packet in packets { handle(packet, now: now) }
    }

    private func handle(_ packet: RTCPPacket, now: Instant) {
        switch packet {
        case .senderReport(let report):
            if let stream = rtp.inbound[report.ssrc] {
                stream.reception.receive(report, now: now)
                emit(
                    .senderReport(
                        stream.transceiver.id, report.ssrc, ntp: report.ntpTime, timestamp: report.rtpTimestamp))
            }
            for block in report.reports { handle(block, now: now) }
        case .receiverReport(let report):
            for block in report.reports { handle(block, now: now) }
        case .genericNack(let nack):
            guard let stream = rtp.outbound[nack.mediaSSRC] else { return }
            stream.nacksReceived += nack.lost.count
            for repeated in stream.history?.answer(nack.lost, now: now) ?? [] {
                retransmit(repeated, of: stream, now: now)
            }
        case .pictureLossIndication(let request):
            requestKeyFrame(of: request.mediaSSRC)
        case .fullIntraRequest(let request):
            for entry in request.entries { requestKeyFrame(of: entry.ssrc) }
        case .receiverEstimatedMaximumBitrate(let remb):
            rtp.estimator.receive(remb, now: now)
            reportEstimate(now: now)
        case .transportFeedback(let feedback):
            rtp.estimator.receive(feedback, now: now)
            reportEstimate(now: now)
        case .sourceDescription, .bye, .extendedReport, .unknown: break
        }
    }

    private func retransmit(_ packet: [UInt8], of stream: OutboundStream, now: Instant) {
        var packet = packet
        if let id = stream.transceiver.extensions[.transportSequenceNumber],
            let header = try? RTPHeader(parsing: packet)
        {
            // A repeated transport-wide number would look like a duplicate to the peer's estimator.
            let sequence = rtp.estimator.assignSequence(size: packet.count, now: now)
            RTPPacketEditing.setExtension(id: id, uint16: sequence, in: &packet, header: header)
        }
        transmitRTP(packet)
    }

    private func handle(_ block: ReportBlock, now: Instant) {
        guard let stream = rtp.outbound[block.ssrc] else { return }
        stream.lastReport = block
        stream.isKnownToReceiver = true
        stream.extensions.omitStreamNames()
        if block.lastSenderReport != 0 {
            let elapsed = NTPTime(now, origin: rtp.ntpOrigin).compact &- block.lastSenderReport
            let roundTrip = CompactDuration.decode(elapsed &- block.delaySinceLastSenderReport)
            // A peer's clock that runs behind shows as an enormous value: no measurement.
            if roundTrip < .seconds(60) {
                stream.roundTripTime = roundTrip
                stream.history?.setRoundTripTime(roundTrip)
            }
        }
        rtp.estimator.receive(block, now: now)
    }

    private func requestKeyFrame(of ssrc: SSRC) {
        guard let stream = rtp.outbound[ssrc] ?? rtp.outboundRepairs[ssrc] else { return }
        stream.keyFrameRequests += 1
        emit(.keyFrameRequested(stream.transceiver.id, stream.ssrc))
    }

    private func reportEstimate(now: Instant) {
        guard let bitrate = rtp.estimator.takeChangedEstimate() else { return }
        rtp.probes.estimateChanged(bitrate, now: now)
        emit(.availableBitrate(bitrate))
    }

    /// Whether the path has shown how much it carries, by delay that grew; before that a low estimate may only mean
    /// that little was tried.
    package var hasMetPathLimit: Bool { !rtp.estimator.isStartingUp }

    // MARK: Feedback of ours

    /// Asks the sender of an inbound stream for a key frame, at once. The caller limits the rate.
    package func sendKeyFrameRequest(for ssrc: SSRC, now: Instant) {
        guard let stream = rtp.inbound[ssrc] else { return }
        stream.keyFrameRequests += 1
        transmitRTCP([.pictureLossIndication(PictureLossIndication(senderSSRC: rtp.feedbackSSRC, mediaSSRC: ssrc))])
    }

    /// The inbound stream of a transceiver: of the layer `rid`, or the only one.
    package func inboundSSRC(of transceiver: Transceiver, rid: RestrictionID? = nil) -> SSRC? {
        rtp.inbound.values.first { stream in
            guard stream.transceiver === transceiver, case .media = stream.role else { return false }
            return rid == nil || stream.rid == rid
        }?.ssrc
    }

    /// Asks the peer to stay under a bit rate for what it sends us (REMB).
    package func sendBitrateLimit(_ bitrate: Int, now: Instant) {
        let media = rtp.inbound.values.filter { if case .media = $0.role { true } else { false } }
            .filter { $0.transceiver.kind == .video }.map(\.ssrc)
        guard !media.isEmpty, bitrate > 0 else { return }
        transmitRTCP([
            .receiverEstimatedMaximumBitrate(
                ReceiverEstimatedMaximumBitrate(
                    senderSSRC: rtp.feedbackSSRC, bitrate: UInt64(bitrate), ssrcs: media))
        ])
    }

    func handleRTPTimeout(now: Instant) {
        for stream in rtp.inbound.values {
            guard let due = stream.nack?.nextTimeout, due <= now,
                let request = stream.nack?.handleTimeout(now: now)
            else { continue }
            if !request.lost.isEmpty {
                stream.nackRequests += request.lost.count
                transmitRTCP([
                    .genericNack(
                        GenericNack(senderSSRC: rtp.feedbackSSRC, mediaSSRC: stream.ssrc, lost: request.lost))
                ])
            }
            if request.isStreamBroken, stream.transceiver.kind == .video {
                emit(.keyFrameNeeded(stream.transceiver.id, stream.ssrc))
            }
        }
        if let due = rtp.transportFeedback.nextTimeout, due <= now {
            transmitRTCP(rtp.transportFeedback.handleTimeout(now: now).map { .transportFeedback($0) })
        }
        if let due = rtp.estimator.nextTimeout, due <= now {
            rtp.estimator.handleTimeout(now: now)
            reportEstimate(now: now)
        }
        if let due = rtp.probes.nextTimeout, due <= now {
            for slice in rtp.probes.handleTimeout(now: now) { send(slice, now: now) }
        }
        if rtp.reportDue <= now {
            rtp.reportDue = now + RTPTransport.reportInterval
            sendReports(now: now)
        }
    }

    /// Sends padding on the repair stream of a video that flows.
    private func send(_ slice: ProbeController.Slice, now: Instant) {
        guard
            let stream = rtp.outbound.values.first(where: {
                $0.transceiver.kind == .video && $0.history?.rtxSSRC != nil && $0.lastTimestamp != nil
                    && $0.transceiver.extensions[.transportSequenceNumber] != nil
            }), let timestamp = stream.lastTimestamp
        else { return }
        var left = slice.bytes
        while left > 0 {
            guard var packet = stream.history?.padding(UInt8(min(left, 255)), timestamp: timestamp),
                let header = try? RTPHeader(parsing: packet)
            else { return }
            let sequence = rtp.estimator.assignSequence(size: packet.count + 12, probe: slice.probe, now: now)
            stream.extensions.rewrite(
                &packet, header: header, transportSequence: sequence,
                sendTime: RTPExtensionValue.absoluteSendTime(now))
            left -= packet.count
            transmitRTP(packet)
        }
    }

    private func sendReports(now: Instant) {
        var blocks = rtp.inbound.values.compactMap { stream -> ReportBlock? in
            guard case .media = stream.role else { return nil }
            return stream.reception.makeReport(now: now)
        }
        var packets: [RTCPPacket] = []
        for stream in rtp.outbound.values where stream.packets > 0 {
            guard let (ntp, timestamp) = stream.reportTimes(now: now, ntpOrigin: rtp.ntpOrigin) else { continue }
            let reports = Array(blocks.prefix(31))
            blocks.removeFirst(reports.count)
            packets.append(
                .senderReport(
                    SenderReport(
                        ssrc: stream.ssrc, ntpTime: ntp, rtpTimestamp: timestamp,
                        packetCount: UInt32(truncatingIfNeeded: stream.packets),
                        octetCount: UInt32(truncatingIfNeeded: stream.bytes), reports: reports)))
        }
        while !blocks.isEmpty {
            let reports = Array(blocks.prefix(31))
            blocks.removeFirst(reports.count)
            packets.append(.receiverReport(ReceiverReport(ssrc: rtp.feedbackSSRC, reports: reports)))
        }
        guard !packets.isEmpty else { return }
        packets.append(
            .sourceDescription(
                SourceDescription(chunks: [.init(ssrc: rtp.feedbackSSRC, cname: configuration.canonicalName)])))
        transmitRTCP(packets)
    }
}
