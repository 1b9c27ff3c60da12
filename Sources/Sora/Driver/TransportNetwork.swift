internal import SoraICE
internal import SoraLocking
internal import SoraNetwork
internal import SoraWire

/// The sockets of one peer connection. Confined to its loop.
final class TransportNetwork {
    private let loop: EventLoop
    private let tls: TLSContexts?
    private let proxy: Proxy?
    private let includesLoopback: Bool
    private let onDatagrams: ([Datagram]) -> Void
    private let onStream: (ICEStreamID, ICEStreamEvent) -> Void
    /// A socket came or went because an address did.
    private let onSocket: (SocketChange) -> Void
    private let watch: InterfaceWatch
    private var watchNumber: Int?
    private var nextSocket = 0
    private var sockets: [SocketID: UDPSocket] = [:]
    private var streams: [ICEStreamID: any ByteStream] = [:]
    private var openers: [ICEStreamID: StreamOpener] = [:]
    private var resolutions: [Int: Resolution] = [:]
    private var nextResolution = 0
    private var isClosed = false

    /// Bytes that may wait in a connection to a TURN server. What is beyond is lost, as on any full link: media that
    /// comes late is worth nothing, and everything else is repeated.
    private static let streamBacklog = 512 * 1024

    enum SocketChange {
        case opened(SocketID, SocketAddress)
        case closed(SocketID)
    }

    init(
        loop: EventLoop, tls: TLSContexts?, proxy: Proxy?, includesLoopback: Bool, watch: InterfaceWatch,
        onDatagrams: @escaping ([Datagram]) -> Void, onStream: @escaping (ICEStreamID, ICEStreamEvent) -> Void,
        onSocket: @escaping (SocketChange) -> Void
    ) {
        self.watch = watch
        self.onSocket = onSocket
        self.loop = loop
        self.tls = tls
        self.proxy = proxy
        self.includesLoopback = includesLoopback
        self.onDatagrams = onDatagrams
        self.onStream = onStream
    }

    /// Opens one UDP socket for each address of the machine, now and as they come, and closes those whose address goes.
    /// Addresses that cannot be bound are left out.
    func openSockets() {
        take(NetworkInterfaces.current(includesLoopback: includesLoopback))
        watchNumber = watch.add { [weak self] in self?.take($0) }
    }

    /// ICE6: new addresses first, so that there is another way before the old one is given up.
    private func take(_ interfaces: [NetworkInterface]) {
        guard !isClosed else { return }
        // A cable that is pulled leaves its address behind.
        let usable = interfaces.filter {
            $0.flags.isSuperset(of: [.up, .running]) && (includesLoopback || !$0.flags.contains(.loopback))
        }
        let present = Set(usable.map(\.address))
        let lost = sockets.values.filter { !present.contains($0.localAddress.ip) }
        let known = Set(sockets.values.map(\.localAddress.ip))
        let new = usable.filter { !known.contains($0.address) }.map(\.address)
        if watchNumber != nil, !new.isEmpty || !lost.isEmpty {
            let gone = lost.map(\.localAddress.ip)
            Logger.info(type: .peerChannel, message: "network changed: new addresses \(new), gone \(gone)")
        }
        for address in new { openSocket(at: address) }
        for socket in lost {
            sockets[socket.id] = nil
            socket.close()
            onSocket(.closed(socket.id))
        }
        // The kernel keeps connections of an address that is gone, and they would be silent for half a minute.
        for (id, stream) in streams {
            let ip = stream.localAddress.ip
            guard !ip.isLoopback, !ip.isUnspecified, !present.contains(ip) else { continue }
            end(stream, id, reason: "the network interface of the connection is gone")
        }
    }

    private func openSocket(at address: IPAddress) {
        do throws(NetworkError) {
            let socket = try UDPSocket(on: loop, id: SocketID(nextSocket), address: SocketAddress(address, port: 0))
            nextSocket += 1
            socket.onDatagrams = onDatagrams
            sockets[socket.id] = socket
            onSocket(.opened(socket.id, socket.localAddress))
        } catch {
            EngineLog.write(.info, "no socket at \(address): \(error)")
        }
    }

    func send(_ datagram: Datagram) { sockets[datagram.socket]?.send(datagram) }

    // MARK: Streams

    /// Opens a connection to a TURN server or an ICE-TCP candidate. What happens is told by `onStream`.
    func open(_ request: ICEStreamRequest) {
        let target = StreamTarget(
            host: request.address.ip.description, port: request.address.port,
            tls: request.tlsServerName.flatMap { tls?.turn(for: $0) }, serverName: request.tlsServerName)
        let deadline = loop.now + .seconds(10)
        openers[request.id] = StreamOpener(target, proxy: proxy, on: loop, deadline: deadline) { [weak self] result in
            guard let self, openers.removeValue(forKey: request.id) != nil else { return }
            switch result {
            case .failure(let failure): onStream(request.id, .closed(reason: failure.text))
            case .success(let stream): adopt(stream, request.id)
            }
        }
    }

    private func adopt(_ stream: any ByteStream, _ id: ICEStreamID) {
        streams[id] = stream
        stream.onEvent = { [weak self] event in
            guard let self else { return }
            switch event {
            case .data(let bytes): onStream(id, .data(bytes))
            case .ended: end(stream, id, reason: "the server closed the connection")
            case .closed(let error):
                end(
                    stream, id,
                    reason: error.map { "the connection was lost: \($0)" } ?? "the server closed the connection")
            case .opened, .writable: break
            }
        }
        onStream(id, .connected(local: stream.localAddress))
    }

    private func end(_ stream: any ByteStream, _ id: ICEStreamID, reason: String) {
        guard streams.removeValue(forKey: id) != nil else { return }
        stream.onEvent = nil
        stream.close()
        onStream(id, .closed(reason: reason))
    }

    func write(_ bytes: [UInt8], to id: ICEStreamID) {
        guard let stream = streams[id], stream.bufferedAmount <= Self.streamBacklog else { return }
        stream.write(bytes)
    }

    func closeStream(_ id: ICEStreamID) {
        openers.removeValue(forKey: id)?.cancel()
        if let stream = streams.removeValue(forKey: id) {
            stream.onEvent = nil
            stream.close()
        }
    }

    // MARK: Names

    /// - Parameter completion: gets no address when there is none.
    func resolve(_ name: String, completion: @escaping ([IPAddress]) -> Void) {
        nextResolution += 1
        let number = nextResolution
        let deadline = loop.now + .seconds(10)
        resolutions[number] = Resolver.shared.resolve(name, on: loop, deadline: deadline) { [weak self] result in
            guard let self, resolutions.removeValue(forKey: number) != nil else { return }
            completion((try? result.get()) ?? [])
        }
    }

    /// Sends what is queued and closes everything; nothing is told any more.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        if let watchNumber { watch.remove(watchNumber) }
        for resolution in resolutions.values { resolution.cancel() }
        resolutions = [:]
        for opener in openers.values { opener.cancel() }
        openers = [:]
        for stream in streams.values {
            stream.onEvent = nil
            stream.finishAndClose(by: loop.now + .seconds(3))
        }
        streams = [:]
        for socket in sockets.values { socket.close() }
        sockets = [:]
    }
}
