import Foundation
import SoraMessages
import SoraNetwork
import SoraSecureTransport
import SoraWire
import Synchronization

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
    public let configuration: ServerConfiguration
    /// The port of signaling, page and HTTP API.
    public let port: UInt16
    private let loops: [EventLoop]
    private let mediaLoops: [MediaLoop]
    private let front: SignalingFront
    private let recorder: EventRecorder

    private init(
        configuration: ServerConfiguration, port: UInt16, loops: [EventLoop], mediaLoops: [MediaLoop],
        front: SignalingFront, recorder: EventRecorder
    ) {
        self.configuration = configuration
        self.port = port
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
        let settings = try channelSettings(configuration)
        var random = configuration.seed.map { RandomSource(seed: $0) } ?? .system

        var loops: [EventLoop] = []
        do {
            for index in 0..<max(configuration.eventLoops, 1) {
                loops.append(try EventLoop(name: "sora-server-\(index)"))
            }
            let front = SignalingFront(
                loop: loops[0], configuration: configuration, settings: settings, random: random.split(),
                report: report)
            let mediaLoops = loops.map { loop in
                MediaLoop(
                    loop: loop, settings: settings, random: random.split(), script: configuration.script,
                    report: report)
            }
            for (index, media) in mediaLoops.enumerated() {
                let port = configuration.mediaPort == 0 ? 0 : configuration.mediaPort &+ UInt16(index)
                try await media.start(addresses: addresses, port: port, front: front)
            }
            let port = try await front.start(
                address: SocketAddress(host, port: configuration.port), mediaLoops: mediaLoops)
            return SoraServer(
                configuration: configuration, port: port, loops: loops, mediaLoops: mediaLoops, front: front,
                recorder: recorder)
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

    /// `ws://127.0.0.1:PORT/signaling`, or the configured host's.
    public var signalingURL: String {
        let host = configuration.host.contains(":") ? "[\(configuration.host)]" : configuration.host
        let reachable = host == "0.0.0.0" ? "127.0.0.1" : host == "[::]" ? "[::1]" : host
        return "ws://\(reachable):\(port)/signaling"
    }

    // MARK: Watching

    /// All events so far, in order; at most the newest 10,000.
    public var recordedEvents: [ServerEvent] { recorder.events }

    /// Events from now on.
    public func events() -> AsyncStream<ServerEvent> { recorder.subscribe() }

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
        return [.loopbackV4]
    }

    private static func channelSettings(_ configuration: ServerConfiguration) throws -> ChannelSettings {
        let certificate: DTLSCertificate
        do {
            certificate = try DTLSCertificate.selfSigned()
        } catch {
            throw ServerError.certificate("\(error)")
        }
        let origin = Date().timeIntervalSince1970 - Double(EventLoop.clock().nanoseconds) / 1e9
        var settings = ChannelSettings(certificate: certificate, wallClockOrigin: origin)
        settings.dataChannelSignaling = configuration.dataChannelSignaling
        settings.ignoreDisconnectWebSocket = configuration.ignoreDisconnectWebSocket
        settings.compressesSystemChannels = configuration.compressesDataChannels
        settings.videoCodec = configuration.videoCodec
        settings.videoBitRate = configuration.videoBitRate
        if let methods = configuration.rpcMethods { settings.rpcMethods = methods }
        settings.spotlightNumber = configuration.spotlightNumber
        settings.maximumMembers = configuration.maximumConnectionsPerChannel
        settings.answerTimeout = configuration.answerTimeout
        settings.pingInterval = configuration.pingInterval
        settings.iceServers = configuration.turnServers.map {
            .init(urls: $0.urls, username: $0.username, credential: $0.credential)
        }
        settings.iceTransportPolicy = configuration.forcesRelay ? "relay" : "all"
        return settings
    }
}

/// Keeps the newest events and hands them to whoever watches.
final class EventRecorder: Sendable {
    private struct State {
        var events: [ServerEvent] = []
        var watchers: [Int: AsyncStream<ServerEvent>.Continuation] = [:]
        var nextWatcher = 0
        var isFinished = false
    }
    private let state = Mutex(State())
    private let handler: (@Sendable (ServerEvent) -> Void)?
    private static let limit = 10_000

    init(handler: (@Sendable (ServerEvent) -> Void)?) { self.handler = handler }

    var events: [ServerEvent] { state.withLock { $0.events } }

    func record(_ event: ServerEvent) {
        let watchers = state.withLock { state in
            if state.events.count >= Self.limit { state.events.removeFirst(Self.limit / 10) }
            state.events.append(event)
            return Array(state.watchers.values)
        }
        for watcher in watchers { watcher.yield(event) }
        handler?(event)
    }

    func subscribe() -> AsyncStream<ServerEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: ServerEvent.self, bufferingPolicy: .bufferingNewest(Self.limit))
        let number: Int? = state.withLock { state in
            guard !state.isFinished else { return nil }
            let number = state.nextWatcher
            state.nextWatcher += 1
            state.watchers[number] = continuation
            return number
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.watchers.removeValue(forKey: number) }
        }
        return stream
    }

    func finish() {
        let watchers = state.withLock { state in
            state.isFinished = true
            let all = Array(state.watchers.values)
            state.watchers.removeAll()
            return all
        }
        for watcher in watchers { watcher.finish() }
    }
}
