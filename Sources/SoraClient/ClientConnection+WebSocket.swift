import SoraMessages
import SoraWire

extension ClientConnection {
    func dial(_ url: String) {
        let id = DialID(nextDial)
        nextDial += 1
        transport.dials[id] = url
        emit(.dial(id, url: url))
    }

    /// The upgrade succeeded. The first one wins; `connect` leaves in the same turn.
    package func webSocketOpened(_ dial: DialID, now: Instant) {
        guard isAlive, let url = transport.dials.removeValue(forKey: dial), transport.webSocket == .none else {
            // Late: the race is decided, or the end came first.
            emit(.abandonDial(dial))
            return
        }
        abandonDials()
        transport.webSocket = .open(dial)
        transport.url = url
        if contactURL == nil { contactURL = url }
        var connect = configuration.connect
        if epoch > 0 { connect.redirect = true }
        emit(.sendText(dial, connect.json.text))
        tell(.webSocketOpened(url: url))
    }

    /// A text message came.
    package func webSocketText(_ dial: DialID, _ text: String, now: Instant) {
        guard transport.isCurrentWebSocket(dial), state != .disconnected else { return }
        receive(text, on: .webSocket, now: now)
    }

    /// Signaling has no binary messages; they are ignored.
    package func webSocketBinary(_ dial: DialID, _ bytes: [UInt8], now: Instant) {
        guard transport.isCurrentWebSocket(dial), isAlive else { return }
        log(.debug, "ignored a binary WebSocket message of \(bytes.count) bytes")
    }

    /// The WebSocket ended with a close frame; `code` 1005 stands for an empty one. Also the answer to our own close
    /// frame ends up here.
    package func webSocketClosed(_ dial: DialID, code: UInt16, reason: String?, now: Instant) {
        webSocketEnded(
            dial, error: .webSocketClosed(code: code, reason: reason), notice: SignalingReason.webSocketClosed, now: now
        )
    }

    /// A WebSocket could not be opened, or was lost without a close frame.
    package func webSocketFailed(_ dial: DialID, _ failure: WebSocketFailure, now: Instant) {
        webSocketEnded(dial, error: failure.error, notice: SignalingReason.webSocketError, now: now)
    }

    private func webSocketEnded(_ dial: DialID, error: ClientError, notice: String, now: Instant) {
        if transport.dials.removeValue(forKey: dial) != nil {
            guard isAlive else { return }
            transport.lastDialError = error
            // The attempt goes on while another candidate is being dialled.
            if transport.dials.isEmpty, transport.webSocket == .none {
                end(error, cause: .signalingFailure, now: now)
            }
            return
        }
        guard transport.isCurrentWebSocket(dial) else { return }
        let isOwnClose = transport.webSocket == .closing(dial)
        transport.webSocket = .gone
        if closing != nil {
            completeEndIfReleased(now: now)
            return
        }
        guard isAlive, !isOwnClose else { return }
        if transport.ignoresWebSocket {
            transport.shutdownDeadline = nil
            log(.info, "the WebSocket ended; signaling goes on over data channels")
            return
        }
        end(error, cause: .webSocket(notice: notice), now: now)
    }

    func abandonDials() {
        for dial in transport.dials.keys.sorted(by: { $0.rawValue < $1.rawValue }) { emit(.abandonDial(dial)) }
        transport.dials = [:]
    }

    /// Sends our close frame, once.
    func closeWebSocket() {
        guard case .open(let dial) = transport.webSocket else { return }
        transport.webSocket = .closing(dial)
        emit(.closeWebSocket(dial, code: SignalingCloseCode.normal, reason: ""))
    }

    /// Lets the WebSocket go after a switch, once its time has come and no answer is owed on it.
    func shutDownWebSocketIfDue(now: Instant) {
        guard let due = transport.shutdownDeadline, due <= now, !owesAnswerOnWebSocket else { return }
        transport.shutdownDeadline = nil
        closeWebSocket()
    }

    /// The first message on label `signaling` starts the delay; whichever of that and `switched` is later.
    func armWebSocketShutdown(now: Instant) {
        guard transport.ignoresWebSocket, transport.sawSignalingMessage, transport.shutdownDeadline == nil,
            transport.openWebSocket != nil
        else { return }
        transport.shutdownDeadline = now + configuration.limits.webSocketShutdownDelay
    }

    // MARK: Redirect

    func redirect(to location: String, now: Instant) {
        guard Self.isWebSocketURL(location) else {
            end(.signalingChannel("invalid message: \(location)"), cause: .signalingFailure, now: now)
            return
        }
        redirects += 1
        guard redirects <= configuration.limits.redirects else {
            end(
                .signalingChannel("more than \(configuration.limits.redirects) redirects"), cause: .signalingFailure,
                now: now)
            return
        }
        failCalls(.dataChannelClosed("redirect"))
        abandonDials()
        closeWebSocket()
        if transport.peer != nil { closePeer(now: now) }
        epoch += 1
        transport = ClientTransport()
        // A redirect after connecting needs a bound of its own.
        if connectDeadline == nil { connectDeadline = now + configuration.connectionTimeout }
        tell(.redirected(location: location))
        dial(location)
    }

    /// `ws` or `wss`, a host, no spaces.
    static func isWebSocketURL(_ text: String) -> Bool {
        let lower = text.lowercased()
        guard let scheme = ["ws://", "wss://"].first(where: { lower.hasPrefix($0) }) else { return false }
        let rest = text.utf8.dropFirst(scheme.utf8.count)
        guard let first = rest.first, first != UInt8(ascii: "/"), first != UInt8(ascii: "?"), first != UInt8(ascii: ":")
        else { return false }
        return rest.allSatisfy { $0 > 32 && $0 != 127 }
    }
}
