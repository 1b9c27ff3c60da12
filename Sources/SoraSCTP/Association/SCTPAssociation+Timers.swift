import SoraWire

extension SCTPAssociation {
    /// Does what is due at `now`.
    mutating func handleTimeout(now: Instant) {
        self.now = now
        guard state != .ended else { return }
        beginBurst()
        if let due = handshakeTimer, due <= now { handshakeTimedOut() }
        if let due = retransmissionTimer, due <= now { retransmissionTimedOut() }
        if let due = probeTimer, due <= now { probeTail() }
        if let due = sack.deadline, due <= now { sack.makeDue() }
        if let due = shutdownTimer, due <= now { shutdownTimedOut() }
        if let due = resets.timer, due <= now { resetTimedOut() }
        if let due = heartbeatTimer, due <= now { heartbeatDue() }
    }

    /// Packets go another way from now on. What a dead way swallowed is sent again at once instead of after the timeout
    /// that has been growing meanwhile.
    mutating func pathChanged(now: Instant) {
        guard consecutiveTimeouts > 0, retransmissionTimer != nil else { return }
        timeout.endBackOff()
        retransmissionTimer = now
    }

    /// False if that was one too many and the association has ended.
    mutating func countTimeout() -> Bool {
        consecutiveTimeouts += 1
        guard consecutiveTimeouts > configuration.maximumRetransmissions else { return true }
        abort(
            ErrorCause(code: ErrorCause.Code.userInitiatedAbort, reason: "no acknowledgement"),
            error: .peerUnreachable(timeouts: consecutiveTimeouts), now: now)
        return false
    }

    /// T3-rtx (RFC 9260, 6.3.3).
    private mutating func retransmissionTimedOut() {
        retransmissionTimer = nil
        guard !window.isEmpty, countTimeout() else { return }
        statistics.timeouts += 1
        timeout.backOff()
        congestion.timedOut()
        probeTimer = nil
        probeOrder = nil
        // A peer may take back what it reported in gap blocks; after a second timeout we send that again.
        let distrusts = consecutiveTimeouts >= 2
        if distrusts { reportedRuns.removeAll() }
        for offset in 0..<window.count {
            switch window.state(at: offset) {
            case .outstanding: window.setState(.lost, at: offset)
            case .acknowledged where distrusts:
                window.setState(.lost, at: offset)
                if let stream = window.chunk(at: offset)?.stream { queue.update(stream) { $0.outstanding += 1 } }
            default: break
            }
        }
        var offset = 0
        while offset < window.count {
            if let chunk = window.chunk(at: offset), chunk.state == .lost, mayAbandon(chunk) { abandon(at: offset) }
            offset += 1
        }
        updateAdvancedAckPoint()
        if advancedAckPoint - window.cumulative > 0 { forwardTSNDue = true }
        retransmissionTimer = now + timeout.current
    }

    // MARK: Tail loss

    /// Arms the probe for data that has just left or whose acknowledgement came. A lost tail is followed by
    /// nothing that would reveal it; the probe does, in two round trips instead of a timeout.
    mutating func armProbe() {
        probeTimer = nil
        guard !hasProbed, consecutiveTimeouts == 0, !window.isEmpty, window.lostCount == 0, !congestion.isInRecovery,
            let trip = timeout.smoothed, let timer = retransmissionTimer
        else { return }
        // The peer may hold back the acknowledgement of a single packet.
        let isSingle = window.order(at: 0) == window.order(at: window.count - 1)
        let due = now + max(trip + trip, .milliseconds(10)) + (isSingle ? .milliseconds(50) : .zero)
        if due < timer { probeTimer = due }
    }

    private mutating func probeTail() {
        probeTimer = nil
        guard !hasProbed, window.lostCount == 0 else { return }
        hasProbed = true
        var offset = window.count - 1
        while offset >= 0, window.state(at: offset) != .outstanding { offset -= 1 }
        guard let chunk = window.chunk(at: offset), !chunk.isExhausted(now: now) else { return }
        window.setState(.lost, at: offset)
        retransmitsAtOnce = true
        probeOrder = order + 1
        statistics.tailProbes += 1
    }

    // MARK: Heartbeat

    mutating func armHeartbeat() {
        heartbeatNonce = nil
        heartbeatTimer = configuration.heartbeatInterval.map { now + $0 }
    }

    private mutating func heartbeatDue() {
        if heartbeatNonce != nil {
            guard countTimeout() else { return }
            timeout.backOff()
        }
        guard isEstablished else { return heartbeatTimer = nil }
        var nonce = random.next()
        if nonce == 0 { nonce = 1 }
        heartbeatNonce = nonce
        var info = ByteWriter(capacity: 16)
        info.write(nonce)
        info.write(UInt64(bitPattern: now.nanoseconds))
        let bytes = info.bytes
        queueControl { HeartbeatChunk(info: bytes).write(isAck: false, to: &$0) }
        heartbeatTimer = now + timeout.current
    }

    mutating func handleHeartbeatAck(_ chunk: HeartbeatChunk) {
        var reader = ByteReader(chunk.info)
        guard let nonce = try? reader.readUInt64(), nonce == heartbeatNonce, let sentAt = try? reader.readUInt64()
        else { return }
        consecutiveTimeouts = 0
        timeout.measured(now - Instant(nanoseconds: Int64(bitPattern: sentAt)))
        armHeartbeat()
    }
}
