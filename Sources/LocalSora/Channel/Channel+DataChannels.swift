import SoraMessages
import SoraPeer
import SoraSCTP
import SoraWire

// DataChannel signaling and messaging between members.

extension Channel {
    /// The channels that a connection gets: the system's, then those it asked for.
    func channelDefinitions(for grant: ConnectionGrant) -> [DataChannelDefinition] {
        let compress = settings.compressesSystemChannels
        var definitions = [
            DataChannelDefinition(label: SystemLabel.signaling, direction: .sendrecv, compress: compress),
            DataChannelDefinition(label: SystemLabel.notify, direction: .recvonly, compress: compress),
            DataChannelDefinition(label: SystemLabel.push, direction: .recvonly, compress: compress),
            DataChannelDefinition(label: SystemLabel.stats, direction: .sendrecv, compress: compress),
        ]
        if !grant.rpcMethods.isEmpty {
            definitions.append(DataChannelDefinition(label: SystemLabel.rpc, direction: .sendrecv, compress: compress))
        }
        for wish in grant.dataChannels {
            var definition = wish
            // The offer states what is in force, so that nobody has to know the defaults.
            definition.compress = wish.compress ?? false
            definition.ordered = wish.ordered ?? true
            definition.header = wish.header?.map { DataChannelHeaderField(type: $0.type, length: SignalingID.length) }
            definitions.append(definition)
        }
        return definitions
    }

    func openDataChannels(of member: Member, now: Instant) {
        for definition in channelDefinitions(for: member.grant) {
            let reliability: Reliability =
                if let lifetime = definition.maxPacketLifeTime {
                    .maxLifetime(milliseconds: UInt16(clamping: lifetime))
                } else if let retransmits = definition.maxRetransmits {
                    .maxRetransmits(UInt16(clamping: retransmits))
                } else {
                    .reliable
                }
            do {
                let stream = try member.peer.openDataChannel(
                    label: definition.label, protocolName: definition.protocolName ?? "",
                    ordered: definition.ordered ?? true, reliability: reliability, now: now)
                member.dataChannels[definition.label] = MemberDataChannel(definition: definition, stream: stream)
                member.labelsByStream[stream] = definition.label
            } catch {
                emit(event: .protocolError, member, "opening \(definition.label): \(error)", now: now)
                end(member, code: SignalingCloseCode.signalingError, reason: SignalingReason.internalError, now: now)
                return
            }
        }
    }

    func dataChannelOpened(_ info: DataChannelInfo, of member: Member, now: Instant) {
        guard let label = member.labelsByStream[info.id] else {
            // Clients never open channels (4.1).
            member.peer.closeDataChannel(info.id, now: now)
            return
        }
        member.dataChannels[label]?.isOpen = true
        emit(event: .dataChannelOpened, member, label, now: now)
        guard !member.isSwitched, member.isActive, member.dataChannels.values.allSatisfy(\.isOpen) else { return }
        deliver(
            SwitchedMessage(ignoreDisconnectWebSocket: member.grant.ignoreDisconnectWebSocket).json, type: "switched",
            to: member, over: .webSocket, now: now)
        member.isSwitched = true
        emit(event: .switched, member, now: now)
        announce(member, now: now)
    }

    func dataChannelClosed(_ stream: StreamID, of member: Member, now: Instant) {
        guard let label = member.labelsByStream[stream] else { return }
        member.dataChannels[label]?.isOpen = false
        member.dataChannels[label]?.isClosed = true
        emit(event: .dataChannelClosed, member, label, now: now)
        if member.dataChannels.values.allSatisfy(\.isClosed) { channelsClosed(of: member, now: now) }
    }

    func closeDataChannels(of member: Member, now: Instant) {
        for channel in member.dataChannels.values where !channel.isClosed {
            member.peer.closeDataChannel(channel.stream, now: now)
        }
    }

    /// Sends one message on a channel, framed as its definition says.
    func send(_ message: [UInt8], to member: Member, label: String, now: Instant) {
        var shared = SharedMessage(message, label: label)
        send(&shared, to: member, now: now)
    }

    /// Sends a message that goes to several members: it is compressed at most once.
    func send(_ message: inout SharedMessage, to member: Member, now: Instant) {
        guard let channel = member.openChannel(message.label) else { return }
        if member.peer.bufferedAmount(of: channel.stream) > settings.maximumBufferedMessages {
            // A receiver that takes nothing must not fill our memory (SRV2).
            end(member, code: SignalingCloseCode.signalingError, reason: "TOO-SLOW", now: now)
            return
        }
        do {
            let frame = try message.frame(compressed: channel.definition.isCompressed)
            try member.peer.send(message: frame.payload, isBinary: frame.isBinary, on: channel.stream, now: now)
            member.messagesSent &+= 1
            member.messageBytesSent &+= UInt64(frame.payload.count)
        } catch {
            emit(event: .messageDropped, member, "\(message.label): \(error)", now: now)
        }
    }

    func dataChannelMessage(
        _ payload: [UInt8], isBinary: Bool, stream: StreamID, from member: Member, now: Instant
    ) {
        guard let label = member.labelsByStream[stream], let channel = member.dataChannels[label], member.isActive
        else { return }
        member.lastHeard = now
        guard isWithinRate(member, size: payload.count, now: now) else { return }
        member.messagesReceived &+= 1
        member.messageBytesReceived &+= UInt64(payload.count)
        let message: [UInt8]
        do {
            let framing = DataChannelFraming(label: label, compress: channel.definition.isCompressed)
            message = try framing.message(in: .init(payload: payload, isBinary: isBinary))
        } catch {
            emit(event: .messageDropped, member, "\(label): \(error)", now: now)
            return
        }
        switch label {
        case SystemLabel.rpc: handleRPC(message, from: member, now: now)
        case SystemLabel.signaling, SystemLabel.stats:
            handle(text: String(decoding: message, as: UTF8.self), carrier: .dataChannel(label), from: member, now: now)
        case SystemLabel.notify, SystemLabel.push:
            // Misuse of the server's own labels (4.7).
            end(member, code: SignalingCloseCode.signalingError, reason: SignalingReason.internalError, now: now)
        default:
            relay(message, label: label, from: member, definition: channel.definition, now: now)
        }
    }

    /// A message goes to every other member that has the label and receives on it, but never back to
    /// the sender or its bundle (spec/signaling.md 6).
    private func relay(
        _ message: [UInt8], label: String, from sender: Member, definition: DataChannelDefinition, now: Instant
    ) {
        guard definition.effectiveDirection.sends else {
            emit(event: .messageDropped, sender, "\(label): the sender's direction is recvonly", now: now)
            return
        }
        var plain = SharedMessage(message, label: label)
        var headed = SharedMessage(label: label) { SenderHeader.prepend(sender.id.rawValue, to: message) }
        for id in order {
            guard let receiver = members[id], receiver !== sender, receiver.bundleID != sender.bundleID,
                let channel = receiver.openChannel(label), channel.definition.effectiveDirection.receives
            else { continue }
            if channel.definition.hasSenderHeader {
                send(&headed, to: receiver, now: now)
            } else {
                send(&plain, to: receiver, now: now)
            }
            drain(receiver, now: now)
        }
        emit(event: .messageRelayed, sender, "\(label) \(message.count) bytes", now: now)
    }
}
