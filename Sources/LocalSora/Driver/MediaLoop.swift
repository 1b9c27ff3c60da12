import SoraCrypto
import SoraICE
import SoraMessages
import SoraNetwork
import SoraPeer
import SoraWire

/// The channels of one event loop with their UDP sockets: ties ``Channel`` machines to the network.
///
/// An actor pinned to its loop. A channel's members all live here, so forwarding crosses no thread.
actor MediaLoop {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    let settings: ChannelSettings
    let faults: FaultBoard
    private let maximumChannels: Int
    private let script: (@Sendable (ScriptedMessage) -> [ScriptAction])?
    private let report: @Sendable (ServerEvent) -> Void
    var random: RandomSource
    private weak var front: SignalingFront?

    private(set) var sockets: [SocketID: UDPSocket] = [:]
    private(set) var channels: [String: Channel] = [:]
    private(set) var channelOf: [ConnectionID: Channel] = [:]
    /// One for each channel: what happens in one costs nothing for the others.
    private var channelTimers: [String: LoopTimer] = [:]
    /// Who a datagram is for: by its source address once known, by the ICE user name before.
    private var connectionByAddress: [SocketAddress: ConnectionID] = [:]
    private var connectionByFragment: [String: ConnectionID] = [:]
    private var addressesOf: [ConnectionID: [SocketAddress]] = [:]
    private var fragmentOf: [ConnectionID: String] = [:]
    /// What webhooks, counters and faults need of each connection and session.
    var watches: [ConnectionID: ConnectionWatch] = [:]
    var sessionWatches: [String: SessionWatch] = [:]
    var counters = LoopCounters()
    let recordings: RecordingFiles?
    /// Somebody is told of sessions or connections.
    var tellsWebhooks = false
    /// Connections with a bad network, by fault.
    var impairments: [ConnectionID: Impairment] = [:]
    var connectionFaults: [ConnectionID: [ActiveFault]] = [:]
    /// For packets in bad networks.
    private var impairmentTimer: LoopTimer?
    private(set) var isStopped = false

    init(
        loop: EventLoop, settings: ChannelSettings, configuration: ServerConfiguration, faults: FaultBoard,
        random: RandomSource, report: @escaping @Sendable (ServerEvent) -> Void
    ) {
        self.loop = loop
        self.settings = settings
        self.faults = faults
        maximumChannels = configuration.maximumChannels
        script = configuration.script
        recordings = configuration.recordingDirectory.map { RecordingFiles(directory: $0) }
        tellsWebhooks = configuration.sessionWebhook != nil || configuration.eventWebhook != nil
        self.random = random
        self.report = report
    }

    /// Opens the UDP sockets.
    func start(addresses: [IPAddress], port: UInt16, front: SignalingFront) throws(NetworkError) {
        self.front = front
        for (index, address) in addresses.enumerated() {
            let socket = try UDPSocket(
                on: loop, id: SocketID(index), address: SocketAddress(address, port: port), bufferSize: 4 << 20)
            socket.onDatagrams = { [weak self] batch in
                self?.assumeIsolated { $0.receive(batch) }
            }
            sockets[socket.id] = socket
        }
        impairmentTimer = LoopTimer(on: loop) { [weak self] in
            self?.assumeIsolated { $0.deliverImpaired(now: $0.loop.now) }
        }
    }

    func stop() {
        isStopped = true
        for channel in channels.values where channel.recording != nil {
            channel.endRecording(now: loop.now)
            flush(channel)
        }
        recordings?.stop()
        for socket in sockets.values { socket.close() }
        sockets.removeAll()
        impairmentTimer?.cancel()
        impairmentTimer = nil
        for timer in channelTimers.values { timer.cancel() }
        channelTimers.removeAll()
        channels.removeAll()
        channelOf.removeAll()
        connectionByAddress.removeAll()
        connectionByFragment.removeAll()
        addressesOf.removeAll()
        fragmentOf.removeAll()
        watches.removeAll()
        sessionWatches.removeAll()
        impairments.removeAll()
        connectionFaults.removeAll()
    }

    /// Entries of each table; for tests of cleanliness.
    var liveObjects: [String: Int] {
        [
            "descriptors": loop.sourceCount, "channels": channels.count, "channel timers": channelTimers.count,
            "connections": channelOf.count, "addresses": connectionByAddress.count,
            "address lists": addressesOf.count, "fragments": connectionByFragment.count, "watches": watches.count,
            "sessions": sessionWatches.count, "impairments": impairments.count, "faults": connectionFaults.count,
        ]
    }

    // MARK: From signaling

    /// Admits a connection to its channel; refusals go back to the front.
    func join(_ admission: Admission, faults active: [ActiveFault]) {
        guard !isStopped else { return }
        let now = loop.now
        let (id, connect) = (admission.id, admission.connect)
        prepare(active, for: id)
        do throws(ConnectRejection) {
            let channel = try channel(connect.channelID)
            channelOf[id] = channel
            // Before the offer, which may be meant.
            if active.contains(where: \.kind.isOfMessages) { watchMessages(of: channel) }
            let media = sockets.values.sorted { $0.id.rawValue < $1.id.rawValue }.map { ($0.id, $0.localAddress) }
            do throws(ConnectRejection) {
                let fragment = try channel.join(
                    id, connect: connect, grant: admission.grant, sockets: media, now: now)
                connectionByFragment[fragment] = id
                fragmentOf[id] = fragment
                admitted(admission, to: channel, now: now)
            } catch {
                flush(channel)
                throw error
            }
            flush(channel)
        } catch {
            forgetConnection(id)
            counters.failedConnections += 1
            toFront { $0.close(id, code: SignalingCloseCode.signalingError, reason: error.reason) }
            report(
                ServerEvent(
                    kind: .refused, at: now, channelID: connect.channelID, connectionID: id.rawValue,
                    detail: error.reason))
        }
    }

    func receive(text: String, from id: ConnectionID) {
        guard let channel = channelOf[id], !isDeaf(to: id) else { return }
        channel.receive(text: text, from: id, now: loop.now)
        flush(channel)
    }

    func webSocketClosed(_ id: ConnectionID, code: UInt16) {
        guard let channel = channelOf[id] else { return }
        channel.webSocketClosed(id, code: code, now: loop.now)
        flush(channel)
    }

    // MARK: Control

    func release(_ hold: String) {
        for channel in channels.values {
            channel.release(hold, now: loop.now)
            flush(channel)
        }
    }

    /// Runs `body` on a channel and does what follows from it. Nil if there is no such channel.
    func withChannel<Result: Sendable>(
        _ id: String, _ body: @Sendable (Channel, Instant) -> Result
    ) -> Result? {
        guard let channel = channels[id] else { return nil }
        defer { flush(channel) }
        return body(channel, loop.now)
    }

    func withAllChannels<Result: Sendable>(_ body: @Sendable (Channel, Instant) -> Result) -> [Result] {
        channels.values.sorted { $0.id < $1.id }.map { channel in
            defer { flush(channel) }
            return body(channel, loop.now)
        }
    }

    // MARK: Network

    private func receive(_ batch: [Datagram]) {
        let now = loop.now
        let sentBefore = counters.sent.srtp.packets
        var touched: [Channel] = []
        for datagram in batch {
            counters.received.count(datagram.payload)
            guard let id = connection(for: datagram), let channel = channelOf[id] else {
                counters.unknownPackets &+= 1
                continue
            }
            if impairments[id] != nil {
                impairments[id]?.sendUp(datagram, now: now)
                continue
            }
            deliver(datagram, to: id, in: channel, now: now)
            if !touched.contains(where: { $0 === channel }) { touched.append(channel) }
        }
        for channel in touched { flush(channel) }
        if !impairments.isEmpty { scheduleImpaired() }
        let sent = counters.sent.srtp.packets &- sentBefore
        if sent > 0 {
            let delay = Int((EventLoop.clock() - now) / .microseconds(1))
            counters.forwardingDelayMicroseconds &+= sent &* delay
        }
    }

    /// STUN belongs to the connection whose ICE user name it has, everything else to the one that was last heard
    /// from that address.
    private func connection(for datagram: Datagram) -> ConnectionID? {
        if DatagramKind(datagram.payload) == .stun, let name = stunUsername(of: datagram.payload) {
            return connectionByFragment[name.local]
        }
        return connectionByAddress[datagram.remote]
    }

    /// Gives a datagram to its connection, and learns its address if ICE found the message authentic: a forger who
    /// knows a user name moves and evicts nothing (SAF1).
    func deliver(_ datagram: Datagram, to id: ConnectionID, in channel: Channel, now: Instant) {
        let (remote, socket) = (datagram.remote, datagram.socket)
        channel.handle(datagram, for: id, now: now)
        guard connectionByAddress[remote] != id, channel.knows(remote, on: socket, of: id) else { return }
        // A connection has few addresses.
        var known = addressesOf[id] ?? []
        if known.count >= 16 { connectionByAddress.removeValue(forKey: known.removeFirst()) }
        known.append(remote)
        addressesOf[id] = known
        connectionByAddress[remote] = id
    }

    private func handleTimeout(ofChannel id: String) {
        guard let channel = channels[id] else { return }
        channel.handleTimeout(now: loop.now)
        flush(channel)
    }

    private func channel(_ id: String) throws(ConnectRejection) -> Channel {
        if let known = channels[id] { return known }
        guard channels.count < maximumChannels else { throw ConnectRejection(reason: "TOO-MANY-CHANNELS") }
        let channel = Channel(id: id, settings: settings, random: random.split())
        channel.script = script
        channels[id] = channel
        channelTimers[id] = LoopTimer(on: loop) { [weak self] in
            self?.assumeIsolated { $0.handleTimeout(ofChannel: id) }
        }
        return channel
    }

    /// Lets faults see a channel's messages before the script of the configuration does.
    func watchMessages(of channel: Channel) {
        let (faults, script) = (faults, script)
        channel.script = { message in faults.actions(for: message) ?? script?(message) ?? [.pass] }
    }

    func send(_ datagram: Datagram) {
        counters.sent.count(datagram.payload)
        sockets[datagram.socket]?.send(datagram)
    }

    /// Does what a channel asks for.
    func flush(_ channel: Channel) {
        var isImpaired = false
        while let output = channel.poll() {
            switch output {
            case .transmit(let id, let datagram):
                if impairments.isEmpty || impairments[id] == nil {
                    send(datagram)
                } else {
                    impairments[id]?.sendDown(datagram, now: loop.now)
                    isImpaired = true
                }
            case .text(let id, let text): toFront { $0.send(text, to: id) }
            case .closeWebSocket(let id, let code, let reason):
                toFront { $0.close(id, code: code, reason: reason) }
            case .resetWebSocket(let id): toFront { $0.reset(id) }
            case .removed(let id):
                forgetConnection(id)
                toFront { $0.forget(id) }
            case .event(let event):
                report(event)
                note(event, in: channel)
            case .connection(let event): note(event, in: channel)
            case .recording(let event): note(event, in: channel)
            case .file(let output): recordings?.write(output)
            }
        }
        if isImpaired { scheduleImpaired() }
        if channel.isEmpty {
            channelTimers.removeValue(forKey: channel.id)?.cancel()
            if channels.removeValue(forKey: channel.id) != nil {
                counters.channels = counters.channels + channel.totals
                sessionEnded(channel)
            }
        } else {
            channelTimers[channel.id]?.schedule(at: channel.nextTimeout)
        }
    }

    private func forgetConnection(_ id: ConnectionID) {
        channelOf.removeValue(forKey: id)
        watches.removeValue(forKey: id)
        forgetFaults(of: id)
        if let fragment = fragmentOf.removeValue(forKey: id) { connectionByFragment.removeValue(forKey: fragment) }
        for address in addressesOf.removeValue(forKey: id) ?? [] where connectionByAddress[address] == id {
            connectionByAddress.removeValue(forKey: address)
        }
    }

    /// To be called when packets were put into bad networks, or taken out.
    func scheduleImpaired() {
        var earliest = Instant.distantFuture
        for impairment in impairments.values { earliest = min(earliest, impairment.nextTimeout ?? .distantFuture) }
        impairmentTimer?.schedule(at: earliest)
    }

    /// Calls the signaling front: at once if it lives on this loop, else over there, in order.
    func toFront(_ body: @escaping @Sendable (isolated SignalingFront) -> Void) {
        guard let front else { return }
        if front.loop === loop {
            front.assumeIsolated { body($0) }
        } else {
            front.loop.execute { front.assumeIsolated { body($0) } }
        }
    }
}
