import SoraMessages
import SoraPeer
import SoraWire

// How connections end: by the server, by the client, by the network (spec/signaling.md 4.5 to 4.7).

extension Channel {
    /// Ends a connection from the server's side: close code and reason on every carrier that is open
    /// (spec/signaling.md 4.6: the WebSocket's close frame first, then the `close` message, then the channels).
    package func disconnect(_ id: ConnectionID, code: UInt16, reason: String, now: Instant) {
        guard let member = members[id] else { return }
        end(member, code: code, reason: reason, now: now)
        drain(member, now: now)
    }

    func end(_ member: Member, code: UInt16, reason: String, now: Instant) {
        guard member.isActive else { return }
        member.endReason = (code, reason)
        emit(event: .disconnected, member, "\(code) \(reason)", now: now)
        let hasChannels = member.dataChannels.values.contains { $0.isOpen }
        if hasChannels, member.isSwitched {
            deliver(
                ["type": "close", "code": .integer(Int64(code)), "reason": .string(reason)], type: "close", to: member,
                over: .dataChannel(SystemLabel.signaling), now: now)
        }
        leave(member, now: now)
        member.phase = .ending
        member.deadline = nil
        member.reofferDeadline = nil
        if member.webSocketIsOpen {
            emit(.closeWebSocket(member.id, code: code, reason: reason))
        }
        // The close frame gets a head start over the end of the transport, which would otherwise overtake
        // it and leave the client without the reason.
        let headStart = member.webSocketIsOpen ? settings.closeDelay : .zero
        member.ending = .init(
            code: code, reason: reason, closesChannelsAt: hasChannels ? now + settings.closeDelay : nil,
            removesAt: now + (hasChannels ? settings.closeTimeout : headStart), closesWebSocketLast: false)
        if !hasChannels, headStart == .zero { finishEnding(of: member, now: now) }
    }

    /// The client said `disconnect`: close its channels in order, then its WebSocket (4.5).
    func clientDisconnected(_ member: Member, reason: String?, now: Instant) {
        guard member.isActive else { return }
        member.clientReason = reason
        member.endReason = (SignalingCloseCode.normal, SignalingReason.typeDisconnect)
        emit(event: .disconnected, member, "client: \(reason ?? "no reason")", now: now)
        leave(member, now: now)
        let hasChannels = member.dataChannels.values.contains { $0.isOpen }
        member.phase = .ending
        member.deadline = nil
        member.reofferDeadline = nil
        member.ending = .init(
            code: SignalingCloseCode.normal, reason: SignalingReason.typeDisconnect, closesChannelsAt: nil,
            removesAt: now + (hasChannels ? settings.closeTimeout : .zero), closesWebSocketLast: true)
        if hasChannels {
            closeDataChannels(of: member, now: now)
        } else {
            finishEnding(of: member, now: now)
        }
    }

    func finishEnding(of member: Member, now: Instant) {
        guard member.phase == .ending, let ending = member.ending else { return }
        if ending.closesWebSocketLast, member.webSocketIsOpen {
            emit(.closeWebSocket(member.id, code: ending.code, reason: ending.reason))
        }
        remove(member, now: now)
    }

    /// All data channels of an ending member are closed.
    func channelsClosed(of member: Member, now: Instant) {
        guard member.phase == .ending else { return }
        finishEnding(of: member, now: now)
    }

    /// Takes a member out of the channel's life: others stop receiving it and are told.
    func leave(_ member: Member, now: Instant) {
        order.removeAll { $0 == member.id }
        let wasAnnounced = member.isAnnounced
        unfocus(member, now: now)
        endArchive(of: member.id, isLast: true, now: now)
        tracksAwaitingKeyFrames.removeAll { $0.sender === member }
        member.forgetMedia()
        for other in members.values where other !== member && other.isActive {
            unsubscribe(other, from: member.id, now: now)
        }
        if member.isAnnounced {
            member.isAnnounced = false
            notifyAll(
                connectionNotification(NotifyMessage.Event.connectionDestroyed, about: member, now: now),
                about: member, now: now)
        }
        report(
            wasAnnounced ? .destroyed : .failed, member, code: member.endReason?.code, reason: member.endReason?.reason,
            now: now)
    }

    func remove(_ member: Member, now: Instant) {
        guard member.phase != .gone else { return }
        if member.isActive { leave(member, now: now) }
        member.phase = .gone
        member.ending = nil
        member.peer.close(now: now)
        drain(member, now: now)
        departed.count(member)
        members.removeValue(forKey: member.id)
        order.removeAll { $0 == member.id }
        timeouts.remove(member)
        if members.isEmpty { endRecording(now: now) }
        emit(event: .left, member, now: now)
        emit(.removed(member.id))
    }

    func peerEnded(_ member: Member, error: PeerError?, now: Instant) {
        guard member.phase != .gone else { return }
        if member.phase == .ending {
            finishEnding(of: member, now: now)
            return
        }
        let reason = error.map { "\($0)" } ?? "the client closed its transport"
        emit(event: .mediaLost, member, reason, now: now)
        if member.webSocketIsOpen {
            emit(
                .closeWebSocket(
                    member.id, code: error == nil ? SignalingCloseCode.normal : SignalingCloseCode.signalingError,
                    reason: error == nil ? SignalingReason.typeDisconnect : SignalingReason.internalError))
            member.webSocketIsOpen = false
        }
        remove(member, now: now)
    }
}
