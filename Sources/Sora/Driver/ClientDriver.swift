import Foundation
internal import SoraClient
internal import SoraICE
internal import SoraLocking
internal import SoraMessages
internal import SoraNetwork
internal import SoraPeer
internal import SoraWire

/// Ties the client's machine of one connection to the network, the clock and the media, and tells the core what
/// happens.
///
/// Pinned to one event loop for life. Everything of the network is loop-confined; what other threads call hops here
/// first. The machine decides; this type only carries out and reports.
actor ClientDriver: ConnectionDriver {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let core: ChannelCore
    nonisolated let settings: ConfigurationSnapshot
    private nonisolated let capabilityOffer: @Sendable (Instant) throws -> String
    /// Calls that were made and not yet given to the machine have numbers of the driver's own.
    private nonisolated let nextCall = Locked(1)

    /// Nil before the start and after the end.
    private var connection: ClientConnection?
    private var timer: LoopTimer?
    private var tls: TLSContexts?
    private var dials: [DialID: WebSocketDial] = [:]
    private var network: TransportNetwork?
    /// The peer connection of the current epoch, and what the application sees of it.
    private var adapter: PeerConnectionAdapter?
    private var observed: ObservedPeer?
    private var calls: [RPCCallToken: (id: RPCCallID, completion: RPCCompletion)] = [:]
    private var tokens: [RPCCallID: RPCCallToken] = [:]
    /// Messages taken from the gate whose channel has too much waiting.
    private var unsent: [OutgoingMessages.Message] = []
    /// Keeps the credentials of the offer out of the log.
    private var turnSecrets: SecretRegistry.Registration?
    private var hasEnded = false
    private var isDraining = false
    /// The last round of a drain made work for another.
    private var hasMoreToDo = false
    private var media: TransportMedia?
    /// The senders' parameters are to be taken over once the negotiation in progress is over.
    private var hasNewParameters = false

    typealias RPCCompletion = @Sendable (Result<RPCAnswer?, any Error>) -> Void

    /// Bytes that may wait in one data channel before further messages wait in the gate.
    private static let channelBacklog = 1 << 20

    /// - Parameter capabilityOffer: makes the offer that shows the server what this client can do.
    init(
        loop: EventLoop, settings: ConfigurationSnapshot, core: ChannelCore,
        capabilityOffer: @escaping @Sendable (Instant) throws -> String = { try Engine.capabilityOffer(now: $0) }
    ) {
        self.capabilityOffer = capabilityOffer
        self.loop = loop
        self.settings = settings
        self.core = core
    }

    // MARK: From the application, on any thread

    /// Runs `body` on the loop, after what was asked for before.
    nonisolated func onLoop(_ body: @escaping @Sendable (isolated ClientDriver) -> Void) {
        loop.execute { self.assumeIsolated { body($0) } }
    }

    nonisolated func start() {
        onLoop { $0.begin() }
    }

    nonisolated func end(_ cause: EndCause) {
        onLoop { driver in
            guard let connection = driver.connection else { return driver.finishUnstarted() }
            driver.sendOutgoing()
            connection.disconnect(now: driver.loop.now)
            driver.drain()
        }
    }

    nonisolated func abandon() { end(.user) }

    nonisolated func outgoingMessagesAvailable() { onLoop { $0.drain() } }

    nonisolated func call(_ call: RPCCall, completion: @escaping RPCCompletion) -> RPCCallID {
        let id = RPCCallID(
            number: nextCall.withLock { next in
                defer { next += 1 }
                return next
            })
        onLoop { $0.make(call, id, completion) }
        return id
    }

    nonisolated func cancelCall(_ id: RPCCallID) {
        onLoop { driver in
            guard let token = driver.tokens[id] else { return }
            driver.connection?.cancelCall(token)
            driver.drain()
        }
    }

    nonisolated func statistics(completion: @escaping @Sendable (Result<[StatisticsRecord], any Error>) -> Void) {
        onLoop { driver in
            guard driver.connection != nil else {
                return completion(.failure(SoraError.peerChannelError(reason: "MediaChannel is unavailable")))
            }
            completion(.success(driver.collectStatistics()))
        }
    }

    nonisolated func setMicrophoneHardMute(_ isMuted: Bool) -> SoraError? {
        core.microphone.setHardMute(isMuted)
    }

    // MARK: Beginning and end, on the loop

    private func begin() {
        guard !hasEnded, connection == nil else { return }
        do {
            tls = try TLSContexts(settings)
        } catch {
            hasEnded = true
            _ = core.beginEnd(error)
            return finish()
        }
        if settings.insecure {
            Logger.warn(
                type: .peerChannel, message: "insecure mode is enabled: TURN-TLS certificate verification is skipped")
        }
        let now = loop.now
        let configuration: ClientConfiguration
        do {
            configuration = try ClientConfiguration(settings) { try capabilityOffer(now) }
        } catch {
            hasEnded = true
            _ = core.beginEnd(EngineError.wrapping(error))
            return finish()
        }
        let connection = ClientConnection(configuration: configuration) { [weak self] offer, now throws(ClientError) in
            guard let self else { throw .peerChannel("createNativePeerChannel failed") }
            // The machine calls this from inside of one of our calls to it: on the loop.
            let made = self.assumeIsolated { driver in Transfer(driver.makePeer(offer, now: now)) }
            return try made.value.get()
        }
        self.connection = connection
        timer = LoopTimer(on: loop) { [weak self] in self?.assumeIsolated { $0.handleTimeout() } }
        connection.start(now: now)
        drain()
    }

    /// The end came before the start was carried out.
    private func finishUnstarted() {
        guard !hasEnded else { return }
        hasEnded = true
        finish()
    }

    private func finish() {
        timer?.cancel()
        timer = nil
        for dial in dials.values { dial.abandon() }
        dials = [:]
        closeTransport()
        connection = nil
        tls = nil
        for (_, call) in calls {
            call.completion(.failure(SoraError.rpcDataChannelClosed(reason: "unknown")))
        }
        calls = [:]
        tokens = [:]
        unsent = []
        core.finish()
        Engine.letGo(self)
    }

    private func closeTransport() {
        media?.close()
        media = nil
        network?.close()
        network = nil
        observed?.update(.closed)
        observed = nil
        adapter = nil
    }

    // MARK: The machine

    private func handleTimeout() {
        let now = loop.now
        media?.handleTimeout(now: now)
        connection?.peerWasUsed(now: now)
        connection?.handleTimeout(now: now)
        drain()
    }

    /// Carries out what the machine wants, until it wants nothing more.
    func drain() {
        guard !isDraining else { return }
        isDraining = true
        repeat {
            sendOutgoing()
            while let output = connection?.poll() { perform(output) }
            tellUnread()
        } while hasMoreToSend || hasMoreToDo
        isDraining = false
        if hasNewParameters, adapter?.connection.signalingState == .stable {
            hasNewParameters = false
            media?.takeParameters()
        }
        if let state = adapter?.connection.state { observed?.update(state) }
        let deadlines = [connection?.nextTimeout, media?.nextTimeout].compactMap { $0 }
        timer?.schedule(at: deadlines.min())
    }

    private func perform(_ output: ClientConnection.Output) {
        switch output {
        case .dial(let id, let url): dial(id, url)
        case .abandonDial(let id):
            guard let dial = dials.removeValue(forKey: id) else { return }
            if let stage = dial.stage {
                Logger.info(type: .webSocketChannel, message: "WebSocket given up while waiting for \(stage)")
            }
            dial.abandon()
        case .sendText(let id, let text):
            Logger.debug(type: .signalingChannel, message: "send \(text.utf8.count) bytes")
            dials[id]?.send(text: text)
        case .closeWebSocket(let id, let code, let reason): dials[id]?.close(code: code, reason: reason)
        case .openSockets(let epoch): openSockets(epoch: epoch)
        case .closeSockets: closeTransport()
        case .transmit(let datagram): network?.send(datagram)
        case .ice(let output, let epoch): perform(output, epoch: epoch)
        case .collectStatistics(let token):
            let reports = collectStatistics().map(\.wire)
            connection?.provideStatistics(reports, for: token, now: loop.now)
        case .media(let output, _): media?.handle(output, now: loop.now)
        case .event(let record): report(record)
        case .log(let entry): log(entry)
        }
    }

    private func log(_ entry: ClientLogEntry) {
        switch entry.level {
        case .debug: Logger.debug(type: .signalingChannel, message: entry.text)
        case .info: Logger.info(type: .signalingChannel, message: entry.text)
        case .warning: Logger.warn(type: .signalingChannel, message: entry.text)
        case .error: Logger.error(type: .signalingChannel, message: entry.text)
        }
    }

    // MARK: Events

    private func report(_ record: ClientConnection.EventRecord) {
        // Whoever is told of an event sees the peer connection as it was then, or later.
        if let state = adapter?.connection.state { observed?.update(state) }
        switch record.event {
        case .signalingText(let text):
            core.deliver(.signalingText(text)) { [weak self] in
                self?.onLoop { driver in
                    driver.connection?.signalingTextDelivered(now: driver.loop.now)
                    driver.drain()
                }
            }
        case .signaling(let message, _):
            switch message {
            case .reOffer, .update: hasNewParameters = true
            default: break
            }
            core.report(record.event)
            // Without media the machine attaches nothing; a sending role has a local stream all the same.
            if case .offer = message, !settings.audioEnabled, !settings.videoEnabled { attach(AttachedSenders()) }
        case .offerTaken(let offer): take(offer)
        case .sendersAttached(let senders): attach(senders)
        case .streamAdded(let stream): add(stream)
        case .streamChanged(let stream): change(stream)
        case .streamRemoved(let id):
            media?.removeRemote(id)
            core.report(record.event)
        case .redirected:
            unsent = []
            core.report(record.event)
        case .dataChannelMessage(let label, let bytes): deliver(bytes, of: label)
        case .rpcFinished(let token, let outcome):
            guard let call = calls.removeValue(forKey: token) else { return }
            tokens[call.id] = nil
            call.completion(outcome.publicResult)
        case .webSocketOpened, .connected, .countsChanged, .dataChannelOpened, .dataChannelsAvailable, .disconnecting:
            core.report(record.event)
        case .ended(let end):
            hasEnded = true
            if let error = end.error { Logger.info(type: .signalingChannel, message: "the connection ended: \(error)") }
            core.beginEnd(end.error?.publicError)
            finish()
        }
    }

    private func take(_ offer: OfferMessage) {
        turnSecrets = SecretRegistry.shared.register(offer.config?.iceServers.compactMap(\.credential) ?? [])
        let peer = ObservedPeer(onClose: { [weak core] in core?.disconnect(error: nil) })
        observed = peer
        let url = connection?.connectedURL.flatMap { URL(string: $0) }
        core.deliver(
            .offerTaken(
                OfferFacts(
                    clientId: offer.clientID ?? "", bundleId: offer.bundleID, connectionId: offer.connectionID,
                    url: url, peer: peer)))
    }

    // MARK: Back-pressure

    /// Gives the application a message. Until its handler has returned the message counts against the receive window, so
    /// that a handler that blocks slows the sender down and memory stays bounded.
    private func deliver(_ bytes: [UInt8], of label: String) {
        let count = bytes.count
        unread.withLock { $0.bytes += count }
        core.deliver(.dataChannelMessage(label: label, data: Data(bytes))) { [weak self] in
            guard let self else { return }
            let wakes = unread.withLock { unread in
                unread.bytes -= count
                // One wake-up for many messages: when a good part of what the peer was told has gone.
                guard unread.told > 0, !unread.isWaking,
                    unread.bytes == 0 || unread.told - unread.bytes >= Self.unreadStep
                else { return false }
                unread.isWaking = true
                return true
            }
            if wakes { onLoop { $0.drain() } }
        }
    }

    /// Tells the peer connection what the application has not read yet; small amounts are not worth telling.
    private func tellUnread() {
        hasMoreToDo = false
        let news = unread.withLock { unread -> Int? in
            unread.isWaking = false
            let amount = unread.bytes >= Self.unreadStep ? unread.bytes : 0
            guard amount != unread.told else { return nil }
            unread.told = amount
            return amount
        }
        guard let news, let adapter else { return }
        adapter.connection.setUnreadBytes(news, now: loop.now)
        connection?.peerWasUsed(now: loop.now)
        hasMoreToDo = true
    }

    private struct Unread {
        /// Given to the application and not yet taken.
        var bytes = 0
        /// As the peer connection knows it.
        var told = 0
        var isWaking = false
    }
    private nonisolated let unread = Locked(Unread())
    private static let unreadStep = 128 * 1024

    // MARK: WebSockets

    private func dial(_ id: DialID, _ url: String) {
        let deadline = loop.now + .seconds(max(1, settings.connectionTimeout))
        dials[id] = WebSocketDial(
            url, on: loop, tls: tls?.client, proxy: settings.proxy, deadline: deadline
        ) { [weak self] event in
            self?.assumeIsolated { $0.handle(event, of: id) }
        }
    }

    private func handle(_ event: WebSocketDial.Event, of id: DialID) {
        let now = loop.now
        switch event {
        case .opened: connection?.webSocketOpened(id, now: now)
        case .text(let text):
            core.deliver(.webSocketMessage(.text(text)))
            connection?.webSocketText(id, text, now: now)
        case .binary(let bytes):
            core.deliver(.webSocketMessage(.binary(Data(bytes))))
            connection?.webSocketBinary(id, bytes, now: now)
        case .closed(let code, let reason):
            dials[id] = nil
            connection?.webSocketClosed(id, code: code, reason: reason, now: now)
        case .failed(let failure):
            dials[id] = nil
            Logger.info(type: .webSocketChannel, message: "WebSocket failed: \(failure.text)")
            connection?.webSocketFailed(id, failure, now: now)
        }
        drain()
    }

    /// Whether signaling goes to this machine itself, where peers are reached at loopback addresses.
    private var isServerOnThisMachine: Bool { dials.values.contains { $0.remoteAddress?.ip.isLoopback == true } }

    // MARK: Peer connection

    private func makePeer(_ offer: OfferMessage, now: Instant) -> Result<PeerConnectionAdapter, ClientError> {
        guard let certificate = try? Engine.certificate() else {
            return .failure(.peerChannel("createNativePeerChannel failed"))
        }
        let configuration = PeerConfiguration(offer, settings: settings, certificate: certificate, now: now)
        let peer = PeerConnection(configuration: configuration, now: now)
        let adapter = PeerConnectionAdapter(peer)
        self.adapter = adapter
        media = TransportMedia(
            peer: peer,
            wake: { [weak self] in
                self?.onLoop { driver in
                    let now = driver.loop.now
                    driver.media?.process(now: now)
                    driver.connection?.peerWasUsed(now: now)
                    driver.drain()
                }
            })
        return .success(adapter)
    }

    private func openSockets(epoch: Int) {
        let network = TransportNetwork(
            loop: loop, tls: tls, proxy: settings.proxy, includesLoopback: isServerOnThisMachine,
            watch: Engine.interfaceWatch(on: loop),
            onDatagrams: { [weak self] batch in self?.assumeIsolated { $0.receive(batch, epoch: epoch) } },
            onStream: { [weak self] id, event in self?.assumeIsolated { $0.handle(event, of: id, epoch: epoch) } },
            onSocket: { [weak self] change in self?.assumeIsolated { $0.handle(change, epoch: epoch) } })
        self.network = network
        let now = loop.now
        network.openSockets()
        adapter?.connection.gather(now: now)
        connection?.peerWasUsed(now: now)
    }

    private func handle(_ change: TransportNetwork.SocketChange, epoch: Int) {
        switch change {
        case .opened(let id, let address):
            connection?.addLocalSocket(id, address: address, epoch: epoch, now: loop.now)
        case .closed(let id): connection?.removeLocalSocket(id, epoch: epoch, now: loop.now)
        }
        drain()
    }

    private func receive(_ batch: [Datagram], epoch: Int) {
        let now = loop.now
        for datagram in batch { connection?.handle(datagram, epoch: epoch, now: now) }
        drain()
    }

    private func perform(_ output: ICEAgent.Output, epoch: Int) {
        switch output {
        case .openStream(let request): network?.open(request)
        case .writeStream(let id, let bytes): network?.write(bytes, to: id)
        case .closeStream(let id): network?.closeStream(id)
        case .resolve(let name, let token):
            network?.resolve(name) { [weak self] addresses in
                self?.assumeIsolated { driver in
                    guard driver.connection?.epoch == epoch else { return }
                    driver.adapter?.connection.resolved(token, addresses: addresses, now: driver.loop.now)
                    driver.connection?.peerWasUsed(now: driver.loop.now)
                    driver.drain()
                }
            }
        case .selectedPairChanged(let local, let remote):
            Logger.info(
                type: .peerChannel, message: "path: \(local.type) \(local.address) to \(remote.type) \(remote.address)")
        case .transmit, .stateChanged, .localCandidate, .gatheringFinished: break
        }
    }

    private func handle(_ event: ICEStreamEvent, of id: ICEStreamID, epoch: Int) {
        guard connection?.epoch == epoch else { return }
        adapter?.connection.handleStream(id, event, now: loop.now)
        connection?.peerWasUsed(now: loop.now)
        drain()
    }

    // MARK: Streams

    private func attach(_ senders: AttachedSenders) {
        guard settings.role.isSender else { return }
        let stream = ConnectedStream(streamId: settings.publisherStreamId, isLocal: true, core: core)
        media?.attach(senders, to: stream, settings: settings, offer: connection?.offer)
        hasNewParameters = true
        core.deliver(.streamAdded(stream))
        if senders.audio != nil { core.microphone.open(for: stream) }
        if senders.video != nil, settings.cameraSettings.isEnabled, settings.initialCameraEnabled {
            core.camera.open(settings.cameraSettings, for: stream)
        }
    }

    private func add(_ remote: RemoteStream) {
        let stream = ConnectedStream(streamId: remote.id, isLocal: false, core: core)
        media?.attach(remote, to: stream)
        core.deliver(.streamAdded(stream))
    }

    private func change(_ remote: RemoteStream) { media?.update(remote) }

    // MARK: Messages and calls

    private var hasMoreToSend: Bool {
        guard let first = unsent.first, let connection else { return false }
        return connection.bufferedAmount(label: first.label) < Self.channelBacklog
    }

    /// Hands the application's messages to their channels, as far as these take them.
    private func sendOutgoing() {
        guard let connection else { return }
        unsent += core.outgoing.takeAll()
        guard !unsent.isEmpty else { return }
        var waiting: [OutgoingMessages.Message] = []
        var full: Set<String> = []
        for message in unsent {
            if full.contains(message.label) || connection.bufferedAmount(label: message.label) >= Self.channelBacklog {
                full.insert(message.label)
                waiting.append(message)
                continue
            }
            if let error = connection.sendMessage(label: message.label, [UInt8](message.data), now: loop.now) {
                Logger.warn(type: .dataChannel, message: "a message was accepted and could not be sent: \(error)")
            }
            core.outgoing.didSend(bytes: message.data.count)
        }
        unsent = waiting
    }

    private func make(_ call: RPCCall, _ id: RPCCallID, _ completion: @escaping RPCCompletion) {
        guard let connection else {
            return completion(.failure(SoraError.rpcUnavailable(reason: "rpc channel is not available")))
        }
        let timeout = Duration.nanoseconds(Int64(max(0, min(call.timeout, 1e8)) * 1e9))
        let token = connection.call(
            method: call.method, params: Array(call.params.text.utf8), isNotification: call.isNotification,
            timeout: timeout, now: loop.now)
        calls[token] = (id, completion)
        tokens[id] = token
        drain()
    }

    // MARK: Statistics

    private func collectStatistics() -> [StatisticsRecord] {
        var records = StatisticsRecords(timestamp: Date().timeIntervalSince1970 * 1_000_000)
        if let peer = adapter?.connection {
            let statistics = peer.statistics(now: loop.now)
            records.add(statistics)
            records.add(local: peer.configuration.certificate, remote: peer.remoteFingerprints)
            records.add(
                peer.iceStatistics, peerState: peer.state, availableBitrate: statistics.availableBitrate)
            media?.addStatistics(to: &records)
        }
        return records.records
    }
}
