import LocalSora
import SoraClient
import SoraEmulator
import SoraICE
import SoraMessages
import SoraPeer
import SoraSDP
import SoraSecureTransport
import SoraWire
import TestSupport
import Testing

/// Clients and a server's channel, with WebSockets and datagrams between them, in virtual time.
final class World {
    /// What travels on a WebSocket.
    enum Frame {
        case opened
        case text(String)
        case close(code: UInt16, reason: String?)
        case lost
    }

    final class Client {
        let index: Int
        let connection: ClientConnection
        let connectionID: ConnectionID
        var events: [ClientConnection.Event] = []
        var records: [ClientConnection.EventRecord] = []
        var sent: [String] = []
        var connectedAt: Instant?
        var up: EmulatedLink<Datagram>
        var down: EmulatedLink<Datagram>
        var frames: [(at: Instant, toServer: Bool, dial: DialID, frame: Frame)] = []
        var urls: [DialID: String] = [:]
        /// The WebSocket that the channel knows.
        var joined: DialID?
        /// Sockets whose server side has sent its close frame.
        var serverClosed: Set<DialID> = []
        var openSockets: Set<Int> = []
        /// By socket. The first is there from the start.
        var addresses: [SocketID: SocketAddress] = [:]
        /// What stands between the client and the server.
        var nat: EmulatedNAT?
        /// The datagram path is cut.
        var isCut = false

        init(index: Int, connection: ClientConnection, conditions: LinkConditions) {
            self.index = index
            self.connection = connection
            connectionID = ConnectionID("CONNECTION" + String(index))
            up = EmulatedLink(conditions, seed: 1, link: UInt64(index) * 2)
            down = EmulatedLink(conditions, seed: 1, link: UInt64(index) * 2 + 1)
        }

        var end: ClientEnd? {
            events.lazy.compactMap { if case .ended(let end) = $0 { end } else { nil } }.first
        }
        func messages(_ label: String) -> [[UInt8]] {
            events.compactMap {
                if case .dataChannelMessage(let name, let bytes) = $0, name == label { bytes } else { nil }
            }
        }
        func notifications(_ type: String) -> [NotifyMessage] {
            events.compactMap {
                if case .signaling(.notify(let notify), _) = $0, notify.eventType == type { notify } else { nil }
            }
        }
        func opened(_ label: String) -> Bool { events.contains(.dataChannelOpened(label: label)) }
        var isSwitched: Bool {
            events.contains { if case .signaling(.switched, _) = $0 { true } else { false } }
        }
        var outcomes: [ClientConnection.RPCOutcome] {
            events.compactMap { if case .rpcFinished(_, let outcome) = $0 { outcome } else { nil } }
        }
    }

    private(set) var now = Instant.zero
    let channel: Channel
    private(set) var clients: [Client] = []
    let delay: Duration
    let conditions: LinkConditions
    let serverAddress = SocketAddress(.v4(0x0A00_0001), port: 5000)
    /// URLs that answer with a redirect.
    var redirects: [String: String] = [:]

    static let certificates: [DTLSCertificate] = {
        // Making an identity costs a key generation: two serve all tests.
        guard let a = try? DTLSCertificate.selfSigned(), let b = try? DTLSCertificate.selfSigned() else { return [] }
        return [a, b]
    }()

    let settings: ChannelSettings

    init(
        delay: Duration = .milliseconds(10), loss: Double = 0,
        change: (inout ChannelSettings) -> Void = { _ in }
    ) {
        self.delay = delay
        conditions = LinkConditions(delay: delay, loss: loss)
        var settings = ChannelSettings(certificate: Self.certificates[0], wallClockOrigin: 1_700_000_000)
        change(&settings)
        self.settings = settings
        channel = Channel(id: "room", settings: settings, random: RandomSource(seed: 7))
    }

    @discardableResult
    func join(
        _ connect: ConnectMessage = World.messaging(), urls: [String] = ["ws://server/signaling"],
        nat: NATBehavior? = nil, change: (inout ClientConfiguration) -> Void = { _ in }
    ) -> Client {
        var configuration = ClientConfiguration(urls: urls, connect: connect)
        change(&configuration)
        let index = clients.count + 1
        let base = PeerConfiguration(certificate: Self.certificates[1], media: World.media)
        let client = Client(
            index: index,
            connection: ClientConnection(
                configuration: configuration, peers: ClientPeerSettings(base: base),
                random: RandomSource(seed: UInt64(index))),
            conditions: conditions)
        client.nat = nat.map {
            EmulatedNAT(outerAddress: .v4(0xCB00_7100 + UInt32(index)), behavior: $0)  // 203.0.113.x
        }
        clients.append(client)
        client.connection.start(now: now)
        collect()
        return client
    }

    static let media = MediaCapabilities(
        audioCodecs: [
            CodecDescription(payloadType: PayloadType(109), name: "opus", clockRate: 48_000, channels: 2)
        ],
        videoCodecs: [
            CodecDescription(payloadType: PayloadType(120), name: "VP8", clockRate: 90_000),
            CodecDescription(
                payloadType: PayloadType(121), name: "rtx", clockRate: 90_000, formatParameters: ["apt": "120"]),
        ],
        audioExtensions: [HeaderExtensionDescription(id: 1, uri: HeaderExtensionURI.mid)],
        videoExtensions: [HeaderExtensionDescription(id: 1, uri: HeaderExtensionURI.mid)])

    static func messaging(
        labels: [String] = ["#dev"], ignore: Bool? = nil, change: (inout ConnectMessage) -> Void = { _ in }
    ) -> ConnectMessage {
        var connect = ConnectMessage(role: .sendrecv, channelID: "room")
        connect.audio = .enabled(false)
        connect.video = .enabled(false)
        connect.dataChannelSignaling = true
        connect.ignoreDisconnectWebSocket = ignore
        connect.dataChannels = labels.map { DataChannelDefinition(label: $0, direction: .sendrecv) }
        change(&connect)
        return connect
    }

    // MARK: Running

    private func send(_ frame: Frame, of client: Client, _ dial: DialID, toServer: Bool, after delay: Duration? = nil) {
        client.frames.append((now + (delay ?? self.delay), toServer, dial, frame))
    }

    func collect() {
        var isBusy = true
        while isBusy {
            isBusy = false
            for client in clients {
                while let output = client.connection.poll() {
                    isBusy = true
                    handle(output, of: client)
                }
            }
            while let output = channel.poll() {
                isBusy = true
                handle(output)
            }
        }
    }

    private func handle(_ output: ClientConnection.Output, of client: Client) {
        switch output {
        case .dial(let dial, let url):
            client.urls[dial] = url
            // TCP and the upgrade: two round trips.
            send(.opened, of: client, dial, toServer: false, after: delay * 4)
        case .abandonDial(let dial):
            client.frames.removeAll { $0.dial == dial }
        case .sendText(let dial, let text):
            client.sent.append(text)
            send(.text(text), of: client, dial, toServer: true)
        case .closeWebSocket(let dial, let code, let reason):
            send(.close(code: code, reason: reason), of: client, dial, toServer: true)
        case .openSockets(let epoch):
            client.openSockets.insert(epoch)
            let address = SocketAddress(.v4(0x0A00_0100 + UInt32(client.index)), port: 4000)
            client.addresses = [SocketID(epoch): address]
            client.connection.addLocalSocket(SocketID(epoch), address: address, epoch: epoch, now: now)
        case .closeSockets(let epoch): client.openSockets.remove(epoch)
        case .transmit(let datagram):
            guard !client.isCut, let inner = client.addresses[datagram.socket] else { return }
            let source = client.nat?.outbound(from: inner, to: datagram.remote, now: now) ?? inner
            let size = datagram.payload.count
            client.up.send(
                Datagram(socket: SocketID(0), remote: source, payload: datagram.payload), size: size, now: now)
        case .collectStatistics(let token): client.connection.provideStatistics([["id": "s"]], for: token, now: now)
        case .event(let record):
            client.events.append(record.event)
            client.records.append(record)
            if record.event == .connected { client.connectedAt = now }
        case .ice, .media, .log: break
        }
    }

    private func handle(_ output: Channel.Output) {
        switch output {
        case .text(let id, let text):
            if let (client, dial) = socket(id) { send(.text(text), of: client, dial, toServer: false) }
        case .closeWebSocket(let id, let code, let reason):
            if let (client, dial) = socket(id), client.serverClosed.insert(dial).inserted {
                send(.close(code: code, reason: reason.isEmpty ? nil : reason), of: client, dial, toServer: false)
            }
        case .resetWebSocket(let id):
            if let (client, dial) = socket(id) { send(.lost, of: client, dial, toServer: false) }
        case .transmit(let id, let datagram):
            guard let client = clients.first(where: { $0.connectionID == id }), !client.isCut else { return }
            client.down.send(datagram, size: datagram.payload.count, now: now)
        case .removed, .event, .connection, .recording, .file: break
        }
    }

    private func socket(_ id: ConnectionID) -> (Client, DialID)? {
        guard let client = clients.first(where: { $0.connectionID == id }), let dial = client.joined else { return nil }
        return (client, dial)
    }

    private func arrive(_ frame: Frame, at client: Client, dial: DialID, toServer: Bool) {
        switch (frame, toServer) {
        case (.opened, _): client.connection.webSocketOpened(dial, now: now)
        case (.text(let text), false): client.connection.webSocketText(dial, text, now: now)
        case (.close(let code, let reason), false):
            client.connection.webSocketClosed(dial, code: code, reason: reason, now: now)
            if client.serverClosed.contains(dial) {
                send(.close(code: code, reason: nil), of: client, dial, toServer: true)
            }
        case (.lost, false): client.connection.webSocketFailed(dial, WebSocketFailure("reset"), now: now)
        case (.text(let text), true): serverReceives(text, from: client, dial: dial)
        case (.close(let code, _), true):
            if client.joined == dial {
                client.joined = nil
                channel.webSocketClosed(client.connectionID, code: code, now: now)
            }
            if client.serverClosed.insert(dial).inserted {
                send(.close(code: code, reason: nil), of: client, dial, toServer: false)
            }
        case (.lost, true):
            client.joined = nil
            channel.webSocketClosed(client.connectionID, code: 1006, now: now)
        }
    }

    private func serverReceives(_ text: String, from client: Client, dial: DialID) {
        if client.joined == dial {
            channel.receive(text: text, from: client.connectionID, now: now)
            return
        }
        do {
            let connect = try ConnectMessage(validating: JSONValue(parsing: text))
            if let url = client.urls[dial], let location = redirects[url] {
                send(
                    .text(SignalingMessage.redirect(RedirectMessage(location: location)).text), of: client, dial,
                    toServer: false)
                return
            }
            client.joined = dial
            _ = try channel.join(
                client.connectionID, connect: connect,
                grant: ConnectionGrant(connect, connectionID: client.connectionID, settings: settings),
                sockets: [(SocketID(0), serverAddress)], now: now)
        } catch {
            let reason = (error as? ConnectRejection)?.reason ?? "INVALID-CONNECT-MESSAGE"
            client.serverClosed.insert(dial)
            send(.close(code: 4490, reason: reason), of: client, dial, toServer: false)
        }
    }

    /// A packet of the server at the outer address: the NAT lets it in, or it does not.
    private func arrive(_ packet: [UInt8], at outer: SocketAddress, of client: Client) {
        var inner = outer
        if client.nat != nil {
            guard outer.ip == client.nat?.outerAddress,
                let found = client.nat?.inbound(to: outer.port, from: serverAddress, now: now)
            else { return }
            inner = found
        }
        guard let socket = client.addresses.first(where: { $0.value == inner })?.key else { return }
        client.connection.handle(
            Datagram(socket: socket, remote: serverAddress, payload: packet), epoch: client.connection.epoch, now: now)
    }

    /// The client's machine loses its address, and has another one right away.
    func move(_ client: Client, to address: SocketAddress, socket: SocketID) {
        let epoch = client.connection.epoch
        let old = client.addresses
        client.addresses = [socket: address]
        client.connection.addLocalSocket(socket, address: address, epoch: epoch, now: now)
        for id in old.keys { client.connection.removeLocalSocket(id, epoch: epoch, now: now) }
        collect()
    }

    /// The network drops a client's WebSocket in both directions.
    func cutWebSocket(of client: Client) {
        guard let dial = client.joined else { return }
        send(.lost, of: client, dial, toServer: false, after: .zero)
        send(.lost, of: client, dial, toServer: true, after: .zero)
    }

    /// Runs until `condition` holds or `limit` of virtual time passed. Returns whether it held.
    @discardableResult
    func run(for limit: Duration, until condition: () -> Bool = { false }) -> Bool {
        let end = now + limit
        var idleTurns = 0
        defer { DTLSClock.reset() }
        collect()
        while !condition() {
            var next = channel.nextTimeout ?? .distantFuture
            for client in clients {
                for time in [client.connection.nextTimeout, client.up.nextTimeout, client.down.nextTimeout] {
                    next = min(next, time ?? .distantFuture)
                }
                for frame in client.frames { next = min(next, frame.at) }
            }
            guard next <= end else {
                now = end
                return condition()
            }
            idleTurns = next > now ? 0 : idleTurns + 1
            guard idleTurns < 10_000 else {
                Issue.record(
                    "time stands still: \(String(describing: channel.nextTimeout)) \(clients.map(\.connection.nextTimeout))"
                )
                return false
            }
            now = max(now, next)
            DTLSClock.set(now)
            for client in clients {
                while let index = client.frames.firstIndex(where: { $0.at <= now }) {
                    let frame = client.frames.remove(at: index)
                    arrive(frame.frame, at: client, dial: frame.dial, toServer: frame.toServer)
                    collect()
                }
                while let datagram = client.up.receive(now: now) {
                    channel.handle(datagram, for: client.connectionID, now: now)
                    collect()
                }
                while let datagram = client.down.receive(now: now) {
                    arrive(datagram.payload, at: datagram.remote, of: client)
                    collect()
                }
                if let due = client.connection.nextTimeout, due <= now {
                    client.connection.handleTimeout(now: now)
                    collect()
                }
            }
            if let due = channel.nextTimeout, due <= now {
                channel.handleTimeout(now: now)
                collect()
            }
        }
        return true
    }

    func send(_ message: [UInt8], label: String = "#dev", from client: Client) -> MessagingError? {
        defer { collect() }
        return client.connection.sendMessage(label: label, message, now: now)
    }
}
