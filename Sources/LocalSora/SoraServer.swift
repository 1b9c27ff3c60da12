import SoraMessages
import SoraNetwork
import SoraWire

/// A local Sora-compatible signaling server and SFU, for development and tests.
///
/// ```swift
/// let server = try await SoraServer.start()
/// // connect clients to server.signalingURL
/// await server.stop()
/// ```
///
/// Thread-safe. It must be stopped; releasing the last reference does not stop it.
public final class SoraServer: Sendable {
    /// As it was given at the start.
    public let configuration: ServerConfiguration
    /// The port of signaling, page and HTTP API.
    public let port: UInt16
    /// The second port of the HTTP API, if there is one.
    public let apiPort: UInt16?
    /// The certificate of https and wss as PEM text, for clients that shall trust it; nil without TLS.
    public let certificate: String?
    private let loops: [EventLoop]
    private let mediaLoops: [MediaLoop]
    private let front: SignalingFront
    private let recorder: EventRecorder

    private init(
        configuration: ServerConfiguration, ports: (main: UInt16, api: UInt16?), certificate: String?,
        loops: [EventLoop], mediaLoops: [MediaLoop], front: SignalingFront, recorder: EventRecorder
    ) {
        self.configuration = configuration
        port = ports.main
        apiPort = ports.api
        self.certificate = certificate
        self.loops = loops
        self.mediaLoops = mediaLoops
        self.front = front
        self.recorder = recorder
    }

    /// Starts a server. It accepts connections when this returns.
    /// - Throws: ``ServerError``.
    public static func start(_ configuration: ServerConfiguration = ServerConfiguration()) async throws -> SoraServer {
        guard let host = IPAddress(configuration.host) else { throw ServerError.invalidAddress(configuration.host) }
        let addresses = try mediaAddresses(configuration, host: host)
        let recorder = EventRecorder(handler: configuration.onEvent)
        let report: @Sendable (ServerEvent) -> Void = { recorder.record($0) }
        let settings = try ChannelSettings(configuration)
        let identity = try configuration.tlsIdentity(host: host)
        let tls = try identity.map { identity in try tlsContext(identity) }
        let webhooks = try configuration.webhookLocations()
        let faults = FaultBoard(configuration.faults)
        var random = configuration.seed.map { RandomSource(seed: $0) } ?? .system

        var loops: [EventLoop] = []
        do {
            for index in 0..<max(configuration.eventLoops, 1) {
                loops.append(try EventLoop(name: "sora-server-\(index)"))
            }
            let front = SignalingFront(
                loop: loops[0], configuration: configuration, settings: settings, tls: tls, faults: faults,
                random: random.split(), report: report)
            let mediaLoops = loops.map { loop in
                MediaLoop(
                    loop: loop, settings: settings, configuration: configuration, faults: faults,
                    random: random.split(), report: report)
            }
            let ports = try await front.start(
                host: host, mediaLoops: mediaLoops, mediaAddresses: addresses, webhooks: webhooks)
            return SoraServer(
                configuration: configuration, ports: ports, certificate: identity?.certificateChain, loops: loops,
                mediaLoops: mediaLoops, front: front, recorder: recorder)
        } catch {
            for loop in loops { loop.stop() }
            throw ServerError.cannotListen("\(error)")
        }
    }

    /// Ends all connections and releases every socket and thread. Repeated calls do nothing.
    public func stop() async {
        await front.stop()
        for media in mediaLoops { await media.stop() }
        for loop in loops { loop.stop() }
        recorder.finish()
    }

    /// `ws://127.0.0.1:PORT/signaling`, or the configured host's; `wss` with TLS.
    public var signalingURL: String { configuration.signalingURL(port: port) }

    /// `http://127.0.0.1:PORT/`: the page, and the HTTP API.
    public var pageURL: String { configuration.url(configuration.hasTLS ? "https" : "http", port: port, path: "/") }

    // MARK: Watching

    /// All events so far, in order; at most the newest 10,000.
    public var recordedEvents: [ServerEvent] { recorder.events }

    /// Events from now on.
    public func events() -> AsyncStream<ServerEvent> { recorder.subscribe() }

    /// Waits for an event of the log, also one that has happened already.
    /// - Parameters:
    ///   - count: Which of those that fit: 2 waits for the second.
    ///   - channelID, connectionID: Nil fits any.
    ///   - limit: How long to wait at most.
    /// - Returns: The event; nil if it did not come in time or the server was stopped.
    public func waitForEvent(
        _ kind: ServerEvent.Kind, count: Int = 1, channelID: String? = nil, connectionID: String? = nil,
        within limit: Duration = .seconds(10)
    ) async -> ServerEvent? {
        await recorder.event(count: count, within: limit) { event in
            event.kind == kind && (channelID ?? event.channelID) == event.channelID
                && (connectionID ?? event.connectionID) == event.connectionID
        }
    }

    // MARK: Control

    /// Lets messages go that a script held under this name.
    public func release(_ hold: String) async {
        for media in mediaLoops { await media.release(hold) }
    }

    /// Ends a connection. Returns whether there was one.
    @discardableResult
    public func disconnect(
        channelID: String, connectionID: String, code: UInt16 = 1000, reason: String = "DISCONNECTED-API"
    ) async -> Bool {
        for media in mediaLoops {
            let found = await media.withChannel(channelID) { channel, now in
                let id = ConnectionID(connectionID)
                guard channel.hasMember(id) else { return false }
                channel.disconnect(id, code: code, reason: reason, now: now)
                return true
            }
            if found == true { return true }
        }
        return false
    }

    /// Sends a `push` with this JSON object to everybody in a channel.
    /// - Throws: if `json` is not a JSON object.
    public func push(channelID: String, json: String) async throws {
        let data = try JSONValue(parsing: json)
        for media in mediaLoops {
            _ = await media.withChannel(channelID) { channel, now in
                try? channel.push(data, to: .everyone, now: now)
            }
        }
    }

    /// Connections that are announced in a channel, in order of joining: their connection ids.
    public func connectionIDs(channelID: String) async -> [String] {
        for media in mediaLoops {
            if let ids = await media.withChannel(channelID, { channel, _ in channel.announcedIDs }) { return ids }
        }
        return []
    }

    // MARK: Faults

    /// Puts a fault into force: for connections that are there, and for those to come.
    /// - Returns: How many connections it met at once.
    @discardableResult
    public func inject(_ fault: Fault) async -> Int { await front.inject(fault)?.connections ?? 0 }

    /// Takes all faults back. Connections that were ended stay so.
    public func removeFaults() async { _ = await front.removeFaults(nil) }

    // MARK: Statistics

    /// Everything about the server and each connection as JSON text: what `/stats` answers.
    public func statistics() async -> String { await front.statistics().text }

    /// How many sockets, connections and table entries the server holds; for tests of cleanliness.
    package func liveObjects() async -> [String: Int] {
        var counts = await front.liveObjects
        for media in mediaLoops { counts.merge(await media.liveObjects, uniquingKeysWith: +) }
        return counts
    }

    // MARK: Setting up

    private static func mediaAddresses(
        _ configuration: ServerConfiguration, host: IPAddress
    ) throws -> [IPAddress] {
        guard configuration.mediaAddresses.isEmpty else {
            return try configuration.mediaAddresses.map { text in
                guard let address = IPAddress(text) else { throw ServerError.invalidAddress(text) }
                return address
            }
        }
        guard host.isUnspecified else { return [host] }
        return reachableAddresses(NetworkInterfaces.current(includesLoopback: true).map(\.address), like: host)
    }

    /// This machine's addresses that a client may reach: those of the network first, loopback last. A server on
    /// `::` takes both families, since clients of either may have found it by name.
    package static func reachableAddresses(_ all: [IPAddress], like host: IPAddress) -> [IPAddress] {
        var addresses: [IPAddress] = []
        for address in all {
            guard !address.isLinkLocal, !address.isUnspecified, address.isV4 || !host.isV4,
                !addresses.contains(address)
            else { continue }
            addresses.append(address)
        }
        if addresses.isEmpty { return [host.isV4 ? .loopbackV4 : .loopbackV6] }
        return addresses.filter { !$0.isLoopback } + addresses.filter(\.isLoopback)
    }

    private static func tlsContext(_ identity: TLSIdentity) throws -> TLSContext {
        do {
            return try TLSContext(server: TLSServerConfiguration(identity: identity))
        } catch {
            throw ServerError.certificate("\(error)")
        }
    }
}
