import SoraICE
import SoraLoad
import SoraNetwork
import SoraPeer
import SoraSCTP
import SoraSDP
import SoraSecureTransport
import SoraWire
import Synchronization

/// One peer connection with its own UDP socket on an event loop.
actor PeerNode {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let socket: PeerSocket
    private var peer: PeerConnection { socket.peer }
    private var connectWaiters: [CheckedContinuation<Void, Never>] = []
    private var channelWaiters: [CheckedContinuation<StreamID, Never>] = []
    private var channel: StreamID?
    /// Sends back what arrives.
    private var echoes = false
    /// Keeps this many bytes buffered, in messages of this size.
    private var flood: (size: Int, buffered: Int)?
    private var floodMessage: [UInt8] = []
    private var messageWaiter: CheckedContinuation<Void, Never>?
    private(set) var received = (messages: 0, bytes: 0)

    init(loop: EventLoop, certificate: DTLSCertificate, controls: Bool) {
        self.loop = loop
        let peer = PeerConnection(
            configuration: PeerConfiguration(
                iceRole: controls ? .controlling : .controlled, certificate: certificate), now: EventLoop.clock())
        socket = PeerSocket(peer, on: loop)
    }

    func open() throws {
        try socket.open(at: .loopbackV4, bufferSize: 4 << 20) { [weak self] in self?.assumeIsolated { $0.flush() } }
        flush()
    }

    func close() {
        peer.close(now: loop.now)
        flush()
        socket.close()
    }

    func makeOffer() throws -> String {
        peer.enableDataChannels()
        defer { flush() }
        return try peer.makeOffer(now: loop.now).serialized()
    }

    func answer(_ offer: String) throws -> String {
        defer { flush() }
        try peer.acceptOffer(SessionDescription(parsing: offer), now: loop.now)
        return try peer.makeAnswer(now: loop.now).serialized()
    }

    func accept(_ answer: String) throws {
        defer { flush() }
        try peer.acceptAnswer(SessionDescription(parsing: answer), now: loop.now)
    }

    func connected() async {
        if peer.state == .connected { return }
        await withCheckedContinuation { connectWaiters.append($0) }
    }

    func openChannel(ordered: Bool) throws {
        _ = try peer.openDataChannel(label: "x", ordered: ordered, now: loop.now)
        flush()
    }

    func channelOpened() async -> StreamID {
        if let channel { return channel }
        return await withCheckedContinuation { channelWaiters.append($0) }
    }

    func setEchoes(_ echoes: Bool) { self.echoes = echoes }

    func startFlood(size: Int, buffered: Int = 1 << 20) {
        flood = (size, buffered)
        floodMessage = [UInt8](repeating: 7, count: size)
        if let channel { peer.setBufferedAmountLowThreshold(buffered / 2, of: channel) }
        fill()
        flush()
    }

    func stopFlood() { flood = nil }

    private func fill() {
        guard let flood, let channel else { return }
        while peer.bufferedAmount(of: channel) < flood.buffered {
            do { try peer.send(message: floodMessage, isBinary: true, on: channel, now: loop.now) } catch { break }
        }
    }

    /// Round trip times of `count` messages of 100 bytes, one after the other, in microseconds.
    func pingPong(count: Int) async throws -> [Double] {
        guard let channel else { return [] }
        let message = [UInt8](repeating: 1, count: 100)
        var times: [Double] = []
        for _ in 0..<count {
            let begin = EventLoop.clock()
            try peer.send(message: message, isBinary: true, on: channel, now: loop.now)
            await withCheckedContinuation { continuation in
                messageWaiter = continuation
                flush()
            }
            times.append(Double((EventLoop.clock() - begin).wholeNanoseconds) / 1000)
        }
        return times
    }

    // MARK: Loop

    private func flush() {
        socket.flush { output in
            switch output {
            case .stateChanged(.connected):
                for waiter in connectWaiters { waiter.resume() }
                connectWaiters = []
            case .dataChannelOpened(let info):
                channel = info.id
                for waiter in channelWaiters { waiter.resume(returning: info.id) }
                channelWaiters = []
            case .dataChannelMessage(let id, let message, _):
                received.messages += 1
                received.bytes += message.count
                if echoes { try? peer.send(message: message, isBinary: true, on: id, now: loop.now) }
                messageWaiter.take()?.resume()
            case .bufferedAmountLow: fill()
            default: break
            }
        }
    }
}

/// Two nodes, connected, with one data channel.
struct NodePair {
    let a: PeerNode
    let b: PeerNode
    /// From the first call to both sides' channel being open, in milliseconds.
    let connectMilliseconds: Double

    static func open(_ loops: [EventLoop], certificates: [DTLSCertificate], ordered: Bool = true) async throws
        -> NodePair
    {
        let begin = EventLoop.clock()
        let a = PeerNode(loop: loops[0], certificate: certificates[0], controls: true)
        let b = PeerNode(loop: loops[loops.count - 1], certificate: certificates[1], controls: false)
        try await a.open()
        try await b.open()
        let offer = try await a.makeOffer()
        let answer = try await b.answer(offer)
        try await a.accept(answer)
        await a.connected()
        try await a.openChannel(ordered: ordered)
        _ = await a.channelOpened()
        _ = await b.channelOpened()
        return NodePair(a: a, b: b, connectMilliseconds: (EventLoop.clock() - begin).inMilliseconds)
    }

    func close() async {
        await a.close()
        await b.close()
    }
}
