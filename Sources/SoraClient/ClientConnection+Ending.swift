import SoraMessages
import SoraWire

extension ClientConnection {
    /// Why the end began, as far as it decides what is said to the server (api.md 3.7) and to waiting calls.
    enum EndCause: Equatable {
        case user
        case signalingFailure
        case peerConnectionStateFailed
        case peerConnectionStateDisconnected
        case webSocket(notice: String)
        case dataChannelClosed

        /// In the error of waiting RPC calls.
        var name: String {
            switch self {
            case .user: "user"
            case .signalingFailure: "signalingFailure"
            case .peerConnectionStateFailed: "peerConnectionStateFailed"
            case .peerConnectionStateDisconnected: "peerConnectionStateDisconnected"
            case .webSocket: "webSocket"
            case .dataChannelClosed: "dataChannelClosed"
            }
        }
    }

    /// The application ends the connection. Later calls, and calls after any other end, have no effect.
    package func disconnect(now: Instant) {
        switch state {
        case .idle:
            state = .connecting
            end(nil, cause: .user, now: now)
        case .connecting, .connected: end(nil, cause: .user, now: now)
        case .disconnecting, .disconnected: break
        }
    }

    /// Cancels an attempt. Has no effect once connected or ended.
    package func cancel(now: Instant) {
        switch state {
        case .idle:
            state = .connecting
            end(.cancelled, cause: .user, now: now)
        case .connecting: end(.cancelled, cause: .user, now: now)
        case .connected, .disconnecting, .disconnected: break
        }
    }

    /// Settles the end. The first cause counts; later ones find the connection no longer alive.
    func end(_ error: ClientError?, cause: EndCause, now: Instant) {
        guard isAlive else { return }
        state = .disconnecting
        tell(.disconnecting)
        failCalls(.dataChannelClosed(cause.name))
        transport.statistics = [:]
        transport.waiting = []
        transport.negotiating = nil
        abandonDials()
        let farewell = sayFarewell(cause, now: now)
        guard cause == .user, let farewell else {
            completeEnd(error, now: now)
            return
        }
        // The server is to know that we left before the application is told, so that a reconnect with the
        // same client id is no duplicate.
        closing = Closing(
            error: error, deadline: now + configuration.limits.disconnectWait,
            waitsForChannels: farewell != .webSocket)
        if farewell == .webSocket { closeWebSocket() }
        drainPeer(now: now)
        completeEndIfReleased(now: now)
    }

    /// Sends the `disconnect` message that the cause asks for. Returns the way it took.
    private func sayFarewell(_ cause: EndCause, now: Instant) -> ClientTransport.Path? {
        let channel: ClientTransport.Path? =
            transport.switched ? transport.channelOfLabel[SystemLabel.signaling].map { .channel($0) } : nil
        let webSocket: ClientTransport.Path? = transport.openWebSocket == nil ? nil : .webSocket
        let (reason, path): (String, ClientTransport.Path?) =
            switch cause {
            case .user: (SignalingReason.noError, channel ?? webSocket)
            case .peerConnectionStateDisconnected: (SignalingReason.noError, webSocket)
            // A server that announced its end needs no word from us.
            case .webSocket(let notice): (notice, transport.announcedClose == nil ? channel : nil)
            case .signalingFailure, .peerConnectionStateFailed, .dataChannelClosed: ("", nil)
            }
        guard let path else { return nil }
        let message = SignalingMessage.disconnect(DisconnectMessage(reason: reason))
        switch path {
        case .webSocket:
            guard let dial = transport.openWebSocket else { return nil }
            emit(.sendText(dial, message.text))
        case .channel(let id):
            guard send(Array(message.text.utf8), onChannel: id, now: now) else { return nil }
            if cause != .user { flushPeer() }
        }
        return path
    }

    /// Lets out what the peer connection wants of the network, and nothing else.
    private func flushPeer() {
        while let output = transport.peer?.poll() {
            switch output {
            case .transmit(let datagram): emit(.transmit(datagram))
            case .ice(let output): emit(.ice(output, epoch: epoch))
            default: break
            }
        }
    }

    /// While an own disconnect waits: the channels first (if the farewell took them), then the WebSocket.
    func completeEndIfReleased(now: Instant) {
        guard let closing else { return }
        if closing.waitsForChannels, !transport.channels.isEmpty { return }
        closeWebSocket()
        switch transport.webSocket {
        case .none, .gone: completeEnd(closing.error, now: now)
        case .open, .closing: break
        }
    }

    /// Releases everything and tells the end.
    func completeEnd(_ error: ClientError?, now: Instant) {
        guard state == .disconnecting else { return }
        closeWebSocket()
        if transport.peer != nil { closePeer(now: now) }
        closing = nil
        connectDeadline = nil
        transport = ClientTransport()
        contactURL = nil
        connectedURL = nil
        state = .disconnected
        tell(.ended(ClientEnd(error: error, wasConnected: wasConnected)))
    }

    func closePeer(now: Instant) {
        transport.peer?.close(now: now)
        flushPeer()
        transport.peer = nil
        emit(.closeSockets(epoch: epoch))
    }
}
