import SoraMessages
import SoraWire

extension ClientConnection {
    /// Labels that the offer announced.
    var expectedLabels: [String] { transport.offer?.dataChannels?.map(\.label) ?? [] }

    func dataChannelOpened(_ id: StreamID, label: String, now: Instant) {
        guard isAlive else { return }
        let definition = transport.offer?.dataChannels?.first { $0.label == label }
        if definition == nil { log(.warning, "the server opened a channel that its offer did not list: \(label)") }
        transport.channels[id] = .init(
            label: label,
            framing: DataChannelFraming(
                label: label, compress: definition?.isCompressed ?? false,
                inflatedLimit: configuration.limits.inflatedMessage))
        transport.closedLabels.remove(label)
        if transport.channelOfLabel[label] == nil {
            transport.channelOfLabel[label] = id
        } else {
            log(.warning, "the server opened a second channel with the label \(label)")
        }
        guard transport.openedLabels.insert(label).inserted else { return }
        tell(.dataChannelOpened(label: label))
        let wanted = expectedLabels.filter(SystemLabel.isApplication)
        if SystemLabel.isApplication(label), !transport.reportedAllOpen,
            !wanted.isEmpty, wanted.allSatisfy({ transport.openedLabels.contains($0) })
        {
            transport.reportedAllOpen = true
            tell(.dataChannelsAvailable)
        }
    }

    func dataChannelClosed(_ id: StreamID, now: Instant) {
        guard let channel = transport.channels.removeValue(forKey: id) else { return }
        if transport.channelOfLabel[channel.label] == id {
            transport.channelOfLabel[channel.label] =
                transport.channels.filter { $0.value.label == channel.label }.keys.min { $0.rawValue < $1.rawValue }
            if transport.channelOfLabel[channel.label] == nil { transport.closedLabels.insert(channel.label) }
        }
        if closing != nil {
            completeEndIfReleased(now: now)
            return
        }
        guard isAlive else { return }
        // Any channel that closes ends the connection (api.md 3.5).
        let close = transport.announcedClose
        end(close.map { .dataChannelClosed(code: $0.code, reason: $0.reason) }, cause: .dataChannelClosed, now: now)
    }

    func dataChannelMessage(_ id: StreamID, _ frame: DataChannelFraming.Frame, now: Instant) {
        guard let channel = transport.channels[id], state != .disconnected else { return }
        let message: [UInt8]
        do throws(CompressionError) {
            message = try channel.framing.message(in: frame)
        } catch {
            log(.warning, "dropped a message on \(channel.label): \(error)")
            return
        }
        let epoch = epoch
        switch channel.label {
        case SystemLabel.signaling, SystemLabel.notify, SystemLabel.push:
            if channel.label == SystemLabel.signaling, isAlive {
                transport.sawSignalingMessage = true
                armWebSocketShutdown(now: now)
            }
            if let text = String(validating: message, as: UTF8.self) {
                receive(text, on: .channel(id), channelMessage: (channel.label, message), now: now)
                return
            } else {
                log(.warning, "ignored a message on \(channel.label) that is not UTF-8")
            }
        case SystemLabel.stats:
            if isAlive { requestStatistics(.stats, path: .channel(id)) }
        case SystemLabel.rpc: receiveRPC(message)
        default:
            if !SystemLabel.isApplication(channel.label) { log(.debug, "a message on label \(channel.label)") }
        }
        guard state != .disconnected, epoch == self.epoch else { return }
        tell(.dataChannelMessage(label: channel.label, message))
    }

    /// Frames and queues a message; false if it could not be.
    func send(_ message: [UInt8], onChannel id: StreamID, now: Instant) -> Bool {
        guard let channel = transport.channels[id], let peer = transport.peer,
            let frame = try? channel.framing.frame(message)
        else { return false }
        return peer.send(frame.payload, isBinary: frame.isBinary, on: id, now: now)
    }

    /// Bytes of a label's channel that wait to be sent.
    package func bufferedAmount(label: String) -> Int {
        guard let id = transport.channelOfLabel[label] else { return 0 }
        return transport.peer?.bufferedAmount(of: id) ?? 0
    }

    /// Sends an application's message. Checks in the order of api.md 2.21; labels are compared as exact bytes.
    package func sendMessage(label: String, _ message: [UInt8], now: Instant) -> MessagingError? {
        guard isAlive, transport.switched else { return .notSwitched }
        guard SystemLabel.isApplication(label) else { return .labelWithoutHash }
        guard let id = transport.channelOfLabel[label] else {
            return transport.closedLabels.contains(label)
                ? .notOpen(label: label, state: "closed") : .unknownLabel(label)
        }
        guard message.count <= configuration.limits.outgoingMessage,
            let channel = transport.channels[id], let frame = try? channel.framing.frame(message),
            transport.peer?.send(frame.payload, isBinary: true, on: id, now: now) == true
        else { return .sendFailed(label: label) }
        drainPeer(now: now)
        return nil
    }
}
