import SoraWire

extension SCTPAssociation {
    /// Begins the handshake. Does nothing if the peer's has already come through.
    mutating func start(now: Instant) {
        self.now = now
        guard state == .closed else { return }
        state = .cookieWait
        sendInit()
    }

    private mutating func sendInit() {
        var writer = packetWriter(tag: 0)
        localInit(tag: localTag, tsn: localInitialTSN).write(to: &writer)
        finishPacket(&writer, mayOmitChecksum: false)
        armHandshakeTimer()
    }

    private func localInit(
        tag: UInt32, tsn: TSN, cookie: [UInt8]? = nil, unrecognized: [[UInt8]] = []
    ) -> InitChunk {
        var features: InitChunk.Features = [.partialReliability, .reconfiguration]
        if configuration.zeroChecksum { features.insert(.zeroChecksum) }
        return InitChunk(
            initiateTag: tag, receiverWindow: UInt32(truncatingIfNeeded: configuration.windowLimit),
            outboundStreams: max(1, configuration.maximumStreams),
            inboundStreams: max(1, configuration.maximumStreams), initialTSN: tsn, features: features,
            cookie: cookie, unrecognized: unrecognized)
    }

    private mutating func armHandshakeTimer() {
        handshakeTimer = now + handshakeTimeout
    }

    mutating func handshakeTimedOut() {
        handshakeAttempts += 1
        guard handshakeAttempts <= configuration.maximumHandshakeRetransmissions else {
            return end(.handshakeTimedOut(attempts: handshakeAttempts))
        }
        handshakeTimeout = min(handshakeTimeout + handshakeTimeout, configuration.maximumRetransmissionTimeout)
        switch state {
        case .cookieWait: sendInit()
        case .cookieEchoed:
            sendsCookieEcho = true
            armHandshakeTimer()
        default: handshakeTimer = nil
        }
    }

    // MARK: INIT

    mutating func handleInit(_ value: ByteReader) {
        guard let chunk = try? InitChunk(value: value, isAck: false) else { return }
        guard isUsable(chunk) else {
            if chunk.initiateTag != 0 {
                var writer = packetWriter(tag: chunk.initiateTag)
                let cause = ErrorCause(code: ErrorCause.Code.invalidMandatoryParameter)
                ErrorCause.writeChunk(ChunkType.abort, causes: [cause], to: &writer)
                finishPacket(&writer, mayOmitChecksum: false)
            }
            return
        }
        switch state {
        case .ended: return
        case .closed, .cookieWait:
            answerInit(chunk, tag: localTag, tsn: localInitialTSN, tie: (0, 0))
        case .cookieEchoed:
            answerInit(chunk, tag: localTag, tsn: localInitialTSN, tie: (localTag, peerTag))
        case .shutdownAckSent: queueControl { writeChunk(ChunkType.shutdownAck, to: &$0) { _ in } }
        case .established, .shutdownPending, .shutdownSent, .shutdownReceived:
            // 5.2.2: new tags, and the old ones in the cookie, so that a restart can be told from a late INIT.
            let tag = UInt32.random(in: 1 ... .max, using: &random)
            answerInit(
                chunk, tag: tag, tsn: TSN(UInt32.random(in: 0 ... .max, using: &random)), tie: (localTag, peerTag))
        }
    }

    private func isUsable(_ chunk: InitChunk) -> Bool {
        chunk.initiateTag != 0 && chunk.outboundStreams != 0 && chunk.inboundStreams != 0
    }

    private mutating func answerInit(_ chunk: InitChunk, tag: UInt32, tsn: TSN, tie: (local: UInt32, peer: UInt32)) {
        let cookie = StateCookie(
            createdAt: now, localTag: tag, peerTag: chunk.initiateTag, tieLocalTag: tie.local,
            tiePeerTag: tie.peer, localInitialTSN: tsn, peerInitialTSN: chunk.initialTSN,
            peerWindow: chunk.receiverWindow,
            outboundStreams: min(configuration.maximumStreams, chunk.inboundStreams),
            inboundStreams: min(configuration.maximumStreams, chunk.outboundStreams),
            peerFeatures: chunk.features)
        var writer = packetWriter(tag: chunk.initiateTag)
        localInit(
            tag: tag, tsn: tsn, cookie: cookie.sealed(with: cookieKey), unrecognized: chunk.unrecognized
        ).write(to: &writer)
        finishPacket(&writer, mayOmitChecksum: false)
    }

    mutating func handleInitAck(_ value: ByteReader) {
        guard state == .cookieWait, let chunk = try? InitChunk(value: value, isAck: true) else { return }
        guard isUsable(chunk), let cookie = chunk.cookie,
            cookie.count + 4 + CommonHeader.size <= configuration.packetLimit
        else {
            peerTag = chunk.initiateTag
            return abort(
                ErrorCause(code: ErrorCause.Code.invalidMandatoryParameter),
                error: .protocolViolation("INIT ACK without tag, streams or a usable cookie"), now: now)
        }
        adopt(
            peerTag: chunk.initiateTag, peerTSN: chunk.initialTSN, window: chunk.receiverWindow,
            outbound: min(configuration.maximumStreams, chunk.inboundStreams),
            inbound: min(configuration.maximumStreams, chunk.outboundStreams), features: chunk.features)
        echoedCookie = cookie
        peerErrors = chunk.unrecognized
        state = .cookieEchoed
        sendsCookieEcho = true
        handshakeAttempts = 0
        handshakeTimeout = configuration.initialRetransmissionTimeout
        armHandshakeTimer()
    }

    private mutating func adopt(
        peerTag: UInt32, peerTSN: TSN, window peerReceiverWindow: UInt32, outbound: UInt16, inbound: UInt16,
        features: InitChunk.Features
    ) {
        self.peerTag = peerTag
        peerWindow = Int(peerReceiverWindow)
        outboundStreams = Int(outbound)
        inboundStreams = Int(inbound)
        peerFeatures = features
        // The peer's first TSN may be known already, and data received, when its COOKIE ECHO comes late.
        if reassembly.received.hasGaps || reassembly.cumulative != peerTSN + -1 {
            reassembly = Reassembly(initialTSN: peerTSN, configuration: configuration)
        }
        resets.expectRequest(peerTSN.rawValue)
        sack.advertisedWindow = configuration.windowLimit
    }

    // MARK: Cookies

    /// RFC 9260, 5.1.5 and the table of 5.2.4. True if the rest of the packet may be read.
    mutating func handleCookieEcho(_ value: ByteReader, tag: UInt32) -> Bool {
        var reader = value
        guard let cookie = StateCookie(reader.readRemaining(), key: cookieKey), cookie.localTag == tag else {
            return false
        }
        let localMatches = cookie.localTag == localTag
        let peerMatches = cookie.peerTag == peerTag
        if now - cookie.createdAt > configuration.cookieLifetime, !(localMatches && peerMatches) {
            var writer = packetWriter(tag: cookie.peerTag)
            let cause = ErrorCause(code: ErrorCause.Code.staleCookie, info: [0, 0, 0, 0])
            ErrorCause.writeChunk(ChunkType.error, causes: [cause], to: &writer)
            finishPacket(&writer, mayOmitChecksum: false)
            return false
        }
        switch state {
        case .ended: return false
        case .closed, .cookieWait:
            guard localMatches else { return false }
            adopt(cookie)
            becomeEstablished()
        case .cookieEchoed:
            guard localMatches else { return false }
            // B: the peer began anew while our COOKIE ECHO was under way. D: both INITs crossed.
            if !peerMatches { adopt(cookie) }
            becomeEstablished()
        case .established, .shutdownPending, .shutdownSent, .shutdownReceived, .shutdownAckSent:
            if localMatches && peerMatches { break }  // D: our COOKIE ACK was lost.
            let isRestart =
                !localMatches && !peerMatches && cookie.tieLocalTag == localTag && cookie.tiePeerTag == peerTag
            if isRestart {
                // A: the peer has forgotten everything, so have its channels.
                peerTag = cookie.peerTag
                abort(
                    ErrorCause(code: ErrorCause.Code.userInitiatedAbort, reason: "restart is not supported"),
                    error: .peerRestarted, now: now)
            }
            return false  // C: a late duplicate.
        }
        queueControl { writeChunk(ChunkType.cookieAck, to: &$0) { _ in } }
        return true
    }

    private mutating func adopt(_ cookie: StateCookie) {
        adopt(
            peerTag: cookie.peerTag, peerTSN: cookie.peerInitialTSN, window: cookie.peerWindow,
            outbound: cookie.outboundStreams, inbound: cookie.inboundStreams, features: cookie.peerFeatures)
    }

    mutating func handleCookieAck() {
        guard state == .cookieEchoed else { return }
        becomeEstablished()
    }

    private mutating func becomeEstablished() {
        state = .established
        handshakeTimer = nil
        sendsCookieEcho = false
        echoedCookie = []
        consecutiveTimeouts = 0
        armHeartbeat()
        emit(.connected)
    }

    // MARK: Errors

    mutating func handleAbort(_ value: ByteReader) {
        guard state != .ended, state != .closed else { return }
        let cause = ErrorCause.list(value: value).first
        end(.aborted(cause: cause?.code, reason: cause.map(text) ?? ""))
    }

    /// Text that a cause carries, cut to a printable length.
    private func text(_ cause: ErrorCause) -> String {
        switch cause.code {
        case ErrorCause.Code.userInitiatedAbort, ErrorCause.Code.protocolViolation:
            String(decoding: cause.info.prefix(200), as: UTF8.self)
        default: ""
        }
    }

    mutating func handleError(_ value: ByteReader) {
        let causes = ErrorCause.list(value: value)
        guard state == .cookieEchoed, causes.contains(where: { $0.code == ErrorCause.Code.staleCookie }) else {
            return
        }
        state = .cookieWait
        sendsCookieEcho = false
        handshakeAttempts += 1
        sendInit()
    }

    // MARK: Shutdown

    /// Ends after everything queued has arrived (RFC 9260, 9.2).
    mutating func shutdown(now: Instant) {
        self.now = now
        switch state {
        case .closed, .cookieWait, .cookieEchoed:
            abort(ErrorCause(code: ErrorCause.Code.userInitiatedAbort), error: nil, now: now)
        case .established:
            state = .shutdownPending
            continueShutdown()
        default: break
        }
    }

    /// Sends the chunk of the shutdown that is due once nothing is left to deliver.
    mutating func continueShutdown() {
        guard queue.isEmpty, window.isEmpty else { return }
        switch state {
        case .shutdownPending:
            state = .shutdownSent
            shutdownChunkDue = true
            shutdownTimer = now + timeout.current
        case .shutdownReceived:
            state = .shutdownAckSent
            queueControl { writeChunk(ChunkType.shutdownAck, to: &$0) { _ in } }
            shutdownTimer = now + timeout.current
        default: break
        }
    }

    mutating func handleShutdown(_ value: ByteReader) {
        var reader = value
        guard let cumulative = try? reader.readUInt32() else { return }
        switch state {
        case .established, .shutdownPending:
            state = .shutdownReceived
            acknowledge(upTo: TSN(cumulative))
            continueShutdown()
        case .shutdownReceived:
            acknowledge(upTo: TSN(cumulative))
            continueShutdown()
        case .shutdownSent:
            state = .shutdownAckSent
            queueControl { writeChunk(ChunkType.shutdownAck, to: &$0) { _ in } }
            shutdownTimer = now + timeout.current
        default: break
        }
    }

    mutating func handleShutdownAck() {
        guard state == .shutdownSent || state == .shutdownAckSent else { return }
        var writer = packetWriter(tag: peerTag)
        writeChunk(ChunkType.shutdownComplete, to: &writer) { _ in }
        finishPacket(&writer, mayOmitChecksum: true)
        end(nil)
    }

    mutating func shutdownTimedOut() {
        guard countTimeout() else { return }
        timeout.backOff()
        shutdownTimer = now + timeout.current
        if state == .shutdownSent { shutdownChunkDue = true }
        if state == .shutdownAckSent { queueControl { writeChunk(ChunkType.shutdownAck, to: &$0) { _ in } } }
    }
}
