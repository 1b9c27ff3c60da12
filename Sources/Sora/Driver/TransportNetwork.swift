internal import SoraICE
internal import SoraNetwork
internal import SoraWire

/// The sockets of one peer connection. Confined to its loop.
final class TransportNetwork {
    private let loop: EventLoop
    private let tls: TLSContext?
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

    enum SocketChange {
        case opened(SocketID, SocketAddress)
        case closed(SocketID)
    }

    init(
        loop: EventLoop, tls: TLSContext?, proxy: Proxy?, includesLoopback: Bool, watch: InterfaceWatch,
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

    private func take(_ interfaces: [NetworkInterface]) {
        guard !isClosed else { return }
        let usable = interfaces.filter {
            $0.flags.contains(.up) && (includesLoopback || !$0.flags.contains(.loopback))
        }
        for (id, socket) in sockets where !usable.contains(where: { $0.address == socket.localAddress.ip }) {
            sockets[id] = nil
            socket.close()
            onSocket(.closed(id))
        }
        for interface in usable where !sockets.values.contains(where: { $0.localAddress.ip == interface.address }) {
            do throws(NetworkError) {
                let socket = try UDPSocket(
                    on: loop, id: SocketID(nextSocket), address: SocketAddress(interface.address, port: 0))
                nextSocket += 1
                socket.onDatagrams = onDatagrams
                sockets[socket.id] = socket
                onSocket(.opened(socket.id, socket.localAddress))
            } catch {
                EngineLog.write(.info, "no socket at \(interface.address): \(error)")
            }
        }
    }

    func send(_ datagram: Datagram) { sockets[datagram.socket]?.send(datagram) }

    // MARK: Streams

    /// Opens a connection to a TURN server or an ICE-TCP candidate. What happens is told by `onStream`.
    func open(_ request: ICEStreamRequest) {
        let target = StreamTarget(
            host: request.address.ip.description, port: request.address.port,
            tls: request.tlsServerName == nil ? nil : tls, serverName: request.tlsServerName)
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
            case .ended, .closed:
                guard let ended = streams.removeValue(forKey: id) else { return }
                ended.onEvent = nil
                ended.close()
                onStream(id, .closed(reason: "the server closed the connection"))
            case .opened, .writable: break
            }
        }
        let local = (stream as? TCPConnection)?.localAddress ?? SocketAddress(.v4(0), port: 0)
        onStream(id, .connected(local: local))
    }

    func write(_ bytes: [UInt8], to id: ICEStreamID) { streams[id]?.write(bytes) }

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
