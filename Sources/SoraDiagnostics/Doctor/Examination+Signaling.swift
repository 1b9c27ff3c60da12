import SoraHTTP
import SoraMessages
import SoraNetwork
import SoraSDP
import SoraWire

// The WebSocket and the messages up to the offer.
extension Examination {
    enum Incoming {
        case text(String)
        case binary
    }

    /// Follows redirects until a server makes an offer.
    func reachOffer() async throws(Stop) -> OfferMessage {
        var visited: [String] = []
        while true {
            let start = now
            guard let location = HTTPLocation(url), location.scheme == .ws || location.scheme == .wss else {
                throw fail(
                    .url, since: start, "\(Masking.url(url)) is not a usable signaling URL",
                    advice:
                        "it has the form ws://HOST:PORT/signaling or wss://HOST/signaling, without user and password",
                    failure: .malformed)
            }
            visited.append(url)
            try await reach(location)
            try await upgrade(location)
            switch try await join(isRedirected: visited.count > 1) {
            case .offer(let offer): return offer
            case .redirect(let next):
                guard !visited.contains(next), visited.count <= configuration.redirectLimit else {
                    throw fail(
                        .connect, since: start,
                        visited.contains(next)
                            ? "the servers redirect in a circle: back to \(Masking.url(next))"
                            : "more than \(configuration.redirectLimit) redirects",
                        details: visited.map(Masking.url),
                        advice: "check the cluster: each node believes that another is responsible for the channel",
                        failure: .malformed)
                }
                report(
                    .connect, .passed, since: start, "redirected to \(Masking.url(next))",
                    details: ["redirect \(visited.count)"])
                try? socket?.close(code: nil, now: now)
                drainSocket()
                closeWebSocket()
                url = next
            }
        }
    }

    // MARK: Upgrade

    private func upgrade(_ location: HTTPLocation) async throws(Stop) {
        let start = now
        guard let stream else { throw Stop() }
        let handshake = WebSocketClientHandshake(
            to: location, headers: ["User-Agent": configuration.agent], random: &random)
        dialing = Dialing()
        dialing.handshake = handshake
        socket = nil
        stream.onEvent = { self.continueHandshake($0) }
        stream.write(handshake.request)
        _ = await until(limit) { self.socket != nil || self.dialing.handshakeError != nil }
        guard socket == nil else { return report(.upgrade, .passed, since: start, "the WebSocket is open") }
        stream.onEvent = nil
        stream.close()
        self.stream = nil
        guard let error = dialing.handshakeError else {
            throw fail(
                .upgrade, since: start,
                "the server took the connection but did not answer the upgrade within \(limitText)",
                advice:
                    "whatever listens there is silent: check that it is Sora's signaling port, and that no load "
                    + "balancer "
                    + "keeps the request", failure: .timedOut)
        }
        var speaksTLS = false
        if !location.isSecure {
            speaksTLS = dialing.beginning.first == 0x15
            if dialing.beginning.isEmpty { speaksTLS = await answersInTLS(location) }
        }
        throw fail(
            .upgrade, since: start, speaksTLS ? "the port speaks TLS" : "\(error)",
            advice: speaksTLS ? "use wss:// instead of ws://" : Examination.advice(for: error, location),
            failure: Examination.isRefusal(error) ? .refused : .malformed)
    }

    /// Whether a server that hung up on plain HTTP takes TLS on the same port.
    private func answersInTLS(_ location: HTTPLocation) async -> Bool {
        guard configuration.proxy == nil, let context = try? TLSContext(client: .init(trust: .anything)) else {
            return false
        }
        dialing = Dialing()
        let target = StreamDialer.Target(host: location.host, port: location.port, tls: context)
        let dialer = StreamDialer(target, on: loop, deadline: now + .seconds(2)) { result in
            if case .success(let stream) = result { stream.close() }
            self.dialing.takesTLS = (try? result.get()) != nil
            self.changed()
        }
        _ = await until(now + .seconds(3)) { self.dialing.takesTLS != nil }
        dialer.cancel()
        return dialing.takesTLS ?? false
    }

    private func continueHandshake(_ event: StreamEvent) {
        guard socket == nil, dialing.handshakeError == nil else { return }
        switch event {
        case .data(let bytes):
            if dialing.beginning.isEmpty { dialing.beginning = Array(bytes.prefix(16)) }
            do throws(WebSocketHandshakeError) {
                guard let rest = try dialing.handshake?.receive(bytes) else { return }
                openWebSocket(rest)
            } catch {
                dialing.handshakeError = error
            }
        case .ended, .closed: dialing.handshakeError = dialing.handshake?.receiveEnd()
        case .opened, .writable: return
        }
        changed()
    }

    private static func isRefusal(_ error: WebSocketHandshakeError) -> Bool {
        if case .notUpgraded(401, _, _) = error { return true }
        if case .notUpgraded(403, _, _) = error { return true }
        return false
    }

    private static func advice(for error: WebSocketHandshakeError, _ location: HTTPLocation) -> String {
        switch error {
        case .notUpgraded(let status, _, let target):
            switch status {
            case 200...299:
                return "a web server answered, not Sora's signaling: check the port and that the path is /signaling "
                    + "(it is \(Masking.url(location.target))), and that the proxy in front of it passes WebSockets on"
            case 300...399:
                return "redirects of HTTP are not followed: use the final URL"
                    + (target.map { ", \(Masking.url($0))" } ?? "") + " (ws:// or wss:// and the path /signaling)"
            case 401, 403: return "something in front of Sora wants credentials or forbids the request: check its rules"
            case 404: return "the path \(Masking.url(location.target)) does not exist there: Sora's is /signaling"
            case 426: return "the front does not pass the WebSocket headers on, or wants another version"
            case 502, 503, 504: return "the load balancer cannot reach Sora: check that Sora runs behind it"
            default: return "check the log of whatever answers at \(location.authority)"
            }
        case .wrongAccept:
            return "the reply is not to our request: a cache or a broken proxy answered; bypass it"
        case .wrongUpgrade, .wrongConnection:
            return "a proxy in front of Sora drops the Upgrade and Connection headers: configure it for WebSockets"
        case .notOffered:
            return "the server uses an extension that was not asked for: check the proxy in front of it"
        case .http: return "the port does not speak HTTP: check host and port of the URL"
        default: return "check the server's log"
        }
    }

    private func openWebSocket(_ rest: [UInt8]) {
        inbox = []
        closure = nil
        socket = WebSocketConnection(role: .client, random: random.split())
        socketTimer = LoopTimer(on: loop) { [weak self] in
            self?.assumeIsolated { examination in
                examination.socket?.handleTimeout(now: examination.now)
                examination.drainSocket()
            }
        }
        stream?.onEvent = { event in
            switch event {
            case .data(let bytes): self.socket?.handle(bytes, now: self.now)
            case .ended, .closed: self.socket?.handleEnd(now: self.now)
            case .opened, .writable: return
            }
            self.drainSocket()
        }
        if !rest.isEmpty {
            socket?.handle(rest, now: now)
            drainSocket()
        }
    }

    func drainSocket() {
        while let output = socket?.poll() {
            switch output {
            case .transmit(let bytes): stream?.write(bytes)
            case .text(let text): receive(text)
            case .binary: inbox.append(.binary)
            case .ping, .pong: break
            case .closed(let end): closure = closure ?? end
            case .closeStream:
                stream?.onEvent = nil
                stream?.finishAndClose(by: now + .seconds(1))
                stream = nil
            }
        }
        socketTimer?.schedule(at: socket?.nextTimeout)
        changed()
    }

    private func receive(_ text: String) {
        if peer == nil {
            inbox.append(.text(text))
        } else if let message = try? SignalingMessage(parsing: text) {
            handle(message, label: nil)
        }
    }

    /// Sends a message on the WebSocket.
    func send(_ object: JSONObject) {
        try? socket?.send(text: object.text)
        drainSocket()
    }

    func closeWebSocket() {
        stream?.onEvent = nil
        stream?.finishAndClose(by: now + .seconds(1))
        stream = nil
        socketTimer?.cancel()
        socketTimer = nil
        socket = nil
        closure = nil
    }

    // MARK: Connect

    private enum Answer {
        case offer(OfferMessage)
        case redirect(String)
    }

    private func join(isRedirected: Bool) async throws(Stop) -> Answer {
        let start = now
        send(connectMessage(isRedirected: isRedirected).json)
        let deadline = limit
        while true {
            _ = await until(deadline) { !self.inbox.isEmpty || self.closure != nil }
            guard !inbox.isEmpty else { break }
            guard case .text(let text) = inbox.removeFirst() else { continue }
            let message: SignalingMessage
            do throws(MessageError) {
                message = try SignalingMessage(parsing: text)
            } catch {
                throw fail(
                    .offer, since: start, "the server's answer cannot be read: \(error)",
                    details: ["it begins with: \(Masking.line(text, limit: 120))"],
                    advice:
                        "what answers speaks WebSocket but not Sora's signaling: check the URL and the version of "
                        + "the server",
                    failure: .malformed)
            }
            switch message {
            case .offer(let offer):
                for server in offer.config?.iceServers ?? [] {
                    if let credential = server.credential { secrets.append(credential) }
                    // A short one is a word, which would be cut out of our own sentences.
                    if let username = server.username, username.count >= 8 { secrets.append(username) }
                }
                report(
                    .connect, .passed, since: start, "the server made an offer",
                    details: ["connection \(offer.connectionID)"] + (offer.version.map { ["Sora \($0)"] } ?? []))
                return .offer(offer)
            case .redirect(let redirect): return .redirect(redirect.location)
            case .ping: send(SignalingMessage.pong(PongMessage()).json)
            default: continue
            }
        }
        throw connectFailure(since: start)
    }

    private func connectFailure(since start: Instant) -> Stop {
        guard let closure else {
            return fail(
                .connect, since: start, "the WebSocket is open, but no offer came within \(limitText)",
                advice: "the server may wait for its authentication webhook or be overloaded: check its log",
                failure: .timedOut)
        }
        let reason = closure.reason.isEmpty ? "" : ": \(closure.reason)"
        if closure.code == 4490 {
            return fail(
                .connect, since: start, "the server refused connect (4490\(reason))",
                advice:
                    "check channel_id, role, metadata (access token) and the authentication webhook; the reason "
                    + "above is "
                    + "the server's or the webhook's own", failure: .refused)
        }
        if closure.code == 1006 {
            return fail(
                .connect, since: start,
                "the connection broke after connect was sent"
                    + (closure.error.map { " (\($0))" } ?? ""),
                advice: "the server or something before it dropped the connection: check its log and idle limits")
        }
        return fail(
            .connect, since: start, "the server closed the WebSocket with \(closure.code)\(reason)",
            advice: closure.error == nil
                ? "check the server's log for this connection"
                : "the server breaks the WebSocket "
                    + "protocol: check what is between it and this machine", failure: .refused)
    }

    private func connectMessage(isRedirected: Bool) -> ConnectMessage {
        var connect = ConnectMessage(role: configuration.role, channelID: configuration.channelID)
        connect.metadata = configuration.metadata
        connect.audio = .enabled(configuration.audio)
        connect.video = .enabled(configuration.video)
        if configuration.video, let codec = configuration.videoCodec {
            var wishes = VideoWishes()
            wishes.codecType = codec
            connect.video = .wishes(wishes)
        }
        connect.dataChannelSignaling = configuration.dataChannelSignaling
        connect.soraClient = configuration.agent
        if isRedirected { connect.redirect = true }
        return connect
    }
}
