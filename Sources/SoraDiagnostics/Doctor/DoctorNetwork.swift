import SoraICE
import SoraNetwork
import SoraWire

/// The sockets of the examined peer connection. Confined to its loop.
final class DoctorNetwork {
    private let loop: EventLoop
    private let configuration: DoctorConfiguration
    private let onDatagrams: ([Datagram]) -> Void
    private let onStream: (ICEStreamID, ICEStreamEvent) -> Void
    private var sockets: [SocketID: UDPSocket] = [:]
    private var tunnels: [ICEStreamID: Tunnel] = [:]
    private var streams: [ICEStreamID: any ByteStream] = [:]
    private var resolutions: [Int: Resolution] = [:]
    private var isClosed = false
    /// Addresses that no socket could be bound to, with the reason.
    private(set) var problems: [String] = []
    /// The certificates of servers whose TLS failed, by their address.
    private(set) var refusedCertificates: [SocketAddress: [CertificateSummary]] = [:]

    init(
        loop: EventLoop, configuration: DoctorConfiguration, onDatagrams: @escaping ([Datagram]) -> Void,
        onStream: @escaping (ICEStreamID, ICEStreamEvent) -> Void
    ) {
        self.loop = loop
        self.configuration = configuration
        self.onDatagrams = onDatagrams
        self.onStream = onStream
    }

    /// One UDP socket for each address of the machine.
    func openSockets(includesLoopback: Bool) -> [UDPSocket] {
        var opened: [UDPSocket] = []
        for (index, interface) in NetworkInterfaces.current(includesLoopback: includesLoopback).enumerated() {
            do throws(NetworkError) {
                let socket = try UDPSocket(
                    on: loop, id: SocketID(index), address: SocketAddress(interface.address, port: 0))
                socket.onDatagrams = onDatagrams
                sockets[socket.id] = socket
                opened.append(socket)
            } catch {
                problems.append("\(interface.name) \(interface.address): \(error)")
            }
        }
        return opened
    }

    func send(_ datagram: Datagram) { sockets[datagram.socket]?.send(datagram) }

    // MARK: Streams to TURN servers

    func open(_ request: ICEStreamRequest) {
        let deadline = loop.now + configuration.timeout
        tunnels[request.id] = Tunnel(
            to: request.address.ip.description, port: request.address.port, proxy: configuration.proxy,
            agent: configuration.agent, on: loop, deadline: deadline
        ) { [weak self] result in
            guard let self, tunnels.removeValue(forKey: request.id) != nil else { return }
            switch result {
            case .success(let stream): secure(stream, request, by: deadline)
            case .failure(.dial(let failure)): onStream(request.id, .closed(reason: "\(failure.error)"))
            case .failure(.proxy(let error)): onStream(request.id, .closed(reason: "\(error)"))
            case .failure(.timedOut): onStream(request.id, .closed(reason: "timed out"))
            }
        }
    }

    private func secure(_ stream: any ByteStream, _ request: ICEStreamRequest, by deadline: Instant) {
        let local = (stream as? TCPConnection)?.localAddress ?? SocketAddress(.anyV4, port: 0)
        guard let name = request.tlsServerName else { return adopt(stream, request.id, local) }
        let connection: TLSConnection
        do {
            connection = try TLSConnection(
                client: try configuration.tlsContext(), serverName: name, over: stream, deadline: deadline)
        } catch {
            stream.close()
            return onStream(request.id, .closed(reason: "\(error)"))
        }
        streams[request.id] = connection
        connection.onEvent = { [weak self, unowned connection] event in
            guard let self else { return }
            switch event {
            case .opened: adopt(connection, request.id, local)
            case .closed(let error):
                refusedCertificates[request.address] = connection.peerCertificates.compactMap {
                    CertificateSummary(der: $0)
                }
                streams[request.id] = nil
                onStream(request.id, .closed(reason: error.map { "\($0)" } ?? "closed in the TLS handshake"))
            case .data, .writable, .ended: break
            }
        }
    }

    private func adopt(_ stream: any ByteStream, _ id: ICEStreamID, _ local: SocketAddress) {
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
        onStream(id, .connected(local: local))
    }

    func write(_ bytes: [UInt8], to id: ICEStreamID) { streams[id]?.write(bytes) }

    func closeStream(_ id: ICEStreamID) {
        tunnels.removeValue(forKey: id)?.cancel()
        if let stream = streams.removeValue(forKey: id) {
            stream.onEvent = nil
            stream.close()
        }
    }

    // MARK: Names

    /// - Parameter completion: gets no address when there is none.
    func resolve(_ name: String, token: Int, completion: @escaping ([IPAddress]) -> Void) {
        resolutions[token] = configuration.resolver.resolve(name, on: loop, deadline: loop.now + configuration.timeout)
        {
            [weak self] result in
            guard let self, resolutions.removeValue(forKey: token) != nil else { return }
            completion((try? result.get()) ?? [])
        }
    }

    /// Closes everything; nothing is told any more.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        for resolution in resolutions.values { resolution.cancel() }
        for tunnel in tunnels.values { tunnel.cancel() }
        for stream in streams.values {
            stream.onEvent = nil
            stream.close()
        }
        for socket in sockets.values { socket.close() }
        resolutions = [:]
        tunnels = [:]
        streams = [:]
        sockets = [:]
    }
}
