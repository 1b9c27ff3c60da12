import LocalSora
import SoraEmulator
import SoraMessages
import SoraPeer
import SoraRTP
import SoraSecureTransport
import SoraWire
import TestSupport
import Testing

/// One channel with simulated clients and the links between them, in virtual time.
final class ChannelHarness {
    private(set) var now = Instant.zero
    let channel: Channel
    let settings: ChannelSettings
    private(set) var clients: [SimulatedClient] = []
    /// Those that something can still happen to.
    private var active: [SimulatedClient] = []
    private var removedAt: [ConnectionID: Instant] = [:]
    private(set) var events: [ServerEvent] = []
    /// Datagrams that the channel has sent.
    private(set) var transmitted = 0
    private(set) var connectionEvents: [ConnectionEvent] = []
    private(set) var recordingEvents: [RecordingEvent] = []
    /// What was written, by path.
    private(set) var files: [String: [UInt8]] = [:]
    private(set) var removed: [ConnectionID] = []
    private var uplinks: [ConnectionID: EmulatedLink<[UInt8]>] = [:]
    private var downlinks: [ConnectionID: EmulatedLink<[UInt8]>] = [:]
    private let conditions: LinkConditions
    private var random = RandomSource(seed: 4711)
    private let server = SocketAddress(.v4(0x0A00_0001), port: 5000)
    /// Datagrams to a client that are dropped before they reach its link.
    var dropDown: ((ConnectionID, [UInt8]) -> Bool)?

    static let certificate: DTLSCertificate? = try? DTLSCertificate.selfSigned()

    init(
        conditions: LinkConditions = LinkConditions(delay: .milliseconds(5)),
        configure: (inout ChannelSettings) -> Void = { _ in }
    ) throws {
        var settings = ChannelSettings(certificate: try #require(Self.certificate), wallClockOrigin: 1_764_489_600)
        configure(&settings)
        self.settings = settings
        self.conditions = conditions
        channel = Channel(id: "sora", settings: settings, random: RandomSource(seed: 1))
    }

    // MARK: Joining

    static func connect(
        _ role: ConnectionRole = .sendrecv, audio: Bool = true, video: Bool = true,
        _ change: (inout ConnectMessage) -> Void = { _ in }
    ) -> ConnectMessage {
        var connect = ConnectMessage(role: role, channelID: "sora")
        connect.audio = .enabled(audio)
        var wishes = VideoWishes()
        wishes.codecType = "VP8"
        connect.video = video ? .wishes(wishes) : .enabled(false)
        change(&connect)
        return connect
    }

    /// A messaging client with application channels.
    static func messaging(_ channels: [DataChannelDefinition] = [], _ change: (inout ConnectMessage) -> Void = { _ in })
        -> ConnectMessage
    {
        connect(.sendonly, audio: false, video: false) {
            $0.dataChannelSignaling = true
            $0.dataChannels = channels
            change(&$0)
        }
    }

    /// Sends `connect`; the client goes on by itself from the offer.
    @discardableResult
    func join(
        _ connect: ConnectMessage, videoCodecs: [String] = ["VP8"], conditions: LinkConditions? = nil,
        grant change: (inout ConnectionGrant) -> Void = { _ in }, prepare: (SimulatedClient) -> Void = { _ in }
    ) throws -> SimulatedClient {
        DTLSClock.set(now)
        defer { DTLSClock.reset() }
        let id = ConnectionID(SignalingID.generate(using: &random))
        let number = UInt32(clients.count)
        let address = SocketAddress(.v4(0x0A01_0000 + number), port: 2000)
        let client = try #require(
            SimulatedClient(
                id: id, address: address, connect: connect, videoCodecs: videoCodecs, seed: 100 + UInt64(number),
                now: now))
        prepare(client)
        clients.append(client)
        active.append(client)
        uplinks[id] = EmulatedLink(conditions ?? self.conditions, seed: 7, link: UInt64(number) * 2)
        downlinks[id] = EmulatedLink(conditions ?? self.conditions, seed: 7, link: UInt64(number) * 2 + 1)
        var grant = ConnectionGrant(connect, connectionID: id, settings: settings)
        change(&grant)
        _ = try channel.join(id, connect: connect, grant: grant, sockets: [(SocketID(0), server)], now: now)
        settle()
        return client
    }

    /// Joins and waits until the channel has announced the client.
    @discardableResult
    func joined(
        _ connect: ConnectMessage, videoCodecs: [String] = ["VP8"], conditions: LinkConditions? = nil,
        grant: (inout ConnectionGrant) -> Void = { _ in }, prepare: (SimulatedClient) -> Void = { _ in }
    ) throws -> SimulatedClient {
        let client = try join(connect, videoCodecs: videoCodecs, conditions: conditions, grant: grant, prepare: prepare)
        let isUp = run(for: .seconds(5)) { channel.announcedIDs.contains(client.id.rawValue) }
        #expect(isUp, "\(client.log)")
        run(for: .milliseconds(100))
        return client
    }

    func setConditions(of client: SimulatedClient, down: LinkConditions) {
        downlinks[client.id]?.conditions = down
    }

    // MARK: Running

    /// Lets everything happen that happens at this moment.
    func settle() {
        DTLSClock.set(now)
        var isBusy = true
        while isBusy {
            isBusy = false
            while let output = channel.poll() {
                isBusy = true
                handle(output)
            }
            for client in active {
                for datagram in client.drain(now: now) {
                    isBusy = true
                    uplinks[client.id]?.send(datagram.payload, now: now)
                }
                for text in client.takeOutgoing() where client.webSocketIsOpen {
                    isBusy = true
                    channel.receive(text: text, from: client.id, now: now)
                }
                if client.dropsWebSocket, client.webSocketIsOpen, !client.isDead {
                    isBusy = true
                    client.webSocketIsOpen = false
                    channel.webSocketClosed(client.id, code: 1005, now: now)
                }
            }
        }
    }

    private func handle(_ output: Channel.Output) {
        func client(_ id: ConnectionID) -> SimulatedClient? { active.first { $0.id == id } }
        switch output {
        case .text(let id, let text): client(id)?.receive(text: text, now: now)
        case .closeWebSocket(let id, let code, let reason):
            guard let client = client(id), client.webSocketIsOpen else { return }
            client.webSocketClosed(code: code, reason: reason)
            channel.webSocketClosed(id, code: code, now: now)
        case .resetWebSocket(let id):
            client(id)?.webSocketReset()
            channel.webSocketClosed(id, code: 1006, now: now)
        case .transmit(let id, let datagram):
            transmitted += 1
            if dropDown?(id, datagram.payload) ?? false { return }
            downlinks[id]?.send(datagram.payload, now: now)
        case .removed(let id):
            removed.append(id)
            removedAt[id] = now
        case .event(let event): events.append(event)
        case .connection(let event): connectionEvents.append(event)
        case .recording(let event): recordingEvents.append(event)
        case .file(let output):
            var file = files[output.path] ?? []
            if file.count < output.offset { file += [UInt8](repeating: 0, count: output.offset - file.count) }
            let end = min(output.offset + output.bytes.count, file.count)
            file.replaceSubrange(output.offset..<end, with: output.bytes)
            files[output.path] = file
        }
    }

    /// Runs until `condition` holds or `limit` of virtual time passed. Returns whether it held.
    @discardableResult
    func run(for limit: Duration, until condition: () -> Bool = { false }) -> Bool {
        defer { DTLSClock.reset() }
        let end = now + limit
        settle()
        while !condition() {
            var next = channel.nextTimeout ?? .distantFuture
            for client in active {
                next = min(
                    next, uplinks[client.id]?.nextTimeout ?? .distantFuture,
                    downlinks[client.id]?.nextTimeout ?? .distantFuture)
                if !client.isDead { next = min(next, client.peer.nextTimeout ?? .distantFuture) }
            }
            guard next <= end else {
                now = end
                return condition()
            }
            now = max(now, next)
            active.removeAll { removedAt[$0.id].map { now - $0 > .seconds(2) } ?? false }
            DTLSClock.set(now)
            for client in active {
                while let payload = uplinks[client.id]?.receive(now: now) {
                    channel.handle(
                        Datagram(socket: SocketID(0), remote: client.address, payload: payload), for: client.id,
                        now: now)
                    settle()
                }
                while let payload = downlinks[client.id]?.receive(now: now) {
                    guard !client.isDead else { continue }
                    client.peer.handle(Datagram(socket: SocketID(0), remote: server, payload: payload), now: now)
                    settle()
                }
                if !client.isDead, let due = client.peer.nextTimeout, due <= now {
                    client.peer.handleTimeout(now: now)
                    settle()
                }
            }
            if let due = channel.nextTimeout, due <= now {
                channel.handleTimeout(now: now)
                settle()
            }
        }
        return true
    }

    /// Does something with the channel or a client, and what follows from it at once.
    @discardableResult
    func perform<Result>(_ body: (Channel, Instant) throws -> Result) rethrows -> Result {
        DTLSClock.set(now)
        defer { DTLSClock.reset() }
        defer { settle() }
        return try body(channel, now)
    }

    func count(_ kind: ServerEvent.Kind) -> Int { events.count { $0.kind == kind } }
    func clearEvents() { events.removeAll() }
}
