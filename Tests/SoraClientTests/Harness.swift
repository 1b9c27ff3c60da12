import SoraClient
import SoraMessages
import SoraPeer
import SoraWire
import Testing

/// Drives one client connection in virtual time and records what it asks for.
final class Harness {
    let client: ClientConnection
    private final class Peers { var all: [ScriptedPeer] = [] }
    private let peers = Peers()
    /// Applied to each peer when it is made.
    var now = Instant.zero
    /// What came out, as short texts in order: `dial 1 URL`, `send 1 TYPE`, `event connected`, …
    var trace: [String] = []
    var events: [ClientConnection.Event] = []
    var records: [ClientConnection.EventRecord] = []
    var texts: [(dial: DialID, text: String)] = []
    var statistics: [StatisticsToken] = []
    var logs: [ClientLogEntry] = []

    init(
        urls: [String] = ["ws://one/signaling"], role: ConnectionRole = .sendrecv,
        change: (inout ClientConfiguration) -> Void = { _ in },
        prepare: @escaping (ScriptedPeer) -> Void = { _ in }
    ) {
        var configuration = ClientConfiguration(urls: urls, connect: ConnectMessage(role: role, channelID: "room"))
        configuration.sendsAudio = false
        configuration.sendsVideo = false
        change(&configuration)
        let peers = peers
        client = ClientConnection(configuration: configuration) { _, _ in
            let peer = ScriptedPeer()
            prepare(peer)
            peers.all.append(peer)
            return peer
        }
    }

    var peer: ScriptedPeer? { peers.all.last }
    var allPeers: [ScriptedPeer] { peers.all }

    func drain() {
        while let output = client.poll() {
            switch output {
            case .dial(let dial, let url): trace.append("dial \(dial.rawValue) \(url)")
            case .abandonDial(let dial): trace.append("abandon \(dial.rawValue)")
            case .sendText(let dial, let text):
                texts.append((dial, text))
                let type = (try? JSONValue(parsing: text))?.objectValue?["type"]?.stringValue ?? "?"
                trace.append("send \(dial.rawValue) \(type)")
            case .closeWebSocket(let dial, let code, _): trace.append("close \(dial.rawValue) \(code)")
            case .openSockets(let epoch): trace.append("open sockets \(epoch)")
            case .closeSockets(let epoch): trace.append("close sockets \(epoch)")
            case .transmit: trace.append("transmit")
            case .collectStatistics(let token):
                statistics.append(token)
                trace.append("statistics")
            case .event(let record):
                records.append(record)
                events.append(record.event)
                trace.append("event \(Self.name(record.event))")
            case .log(let entry): logs.append(entry)
            case .ice, .media: break
            }
        }
    }

    static func name(_ event: ClientConnection.Event) -> String {
        switch event {
        case .webSocketOpened: "webSocketOpened"
        case .signalingText: "text"
        case .signaling(let message, _): "signaling \(message.type)"
        case .offerTaken: "offerTaken"
        case .sendersAttached: "sendersAttached"
        case .streamAdded(let stream): "streamAdded \(stream.id)"
        case .streamChanged(let stream): "streamChanged \(stream.id)"
        case .streamRemoved(let id): "streamRemoved \(id)"
        case .redirected: "redirected"
        case .connected: "connected"
        case .countsChanged(let connections, let publishers, let subscribers):
            "counts \(connections) \(publishers) \(subscribers)"
        case .dataChannelOpened(let label): "opened \(label)"
        case .dataChannelsAvailable: "available"
        case .dataChannelMessage(let label, _): "message \(label)"
        case .rpcFinished: "rpc"
        case .disconnecting: "disconnecting"
        case .ended: "ended"
        }
    }

    /// The trace since the last call.
    func take() -> [String] {
        drain()
        defer { trace = [] }
        return trace
    }

    func advance(_ duration: Duration) {
        let target = now + duration
        drain()
        var steps = 0
        while let due = client.nextTimeout, due <= target {
            now = max(now, due)
            client.handleTimeout(now: now)
            drain()
            steps += 1
            if steps > 10_000 {
                Issue.record("timeouts without progress")
                return
            }
        }
        now = target
    }

    func start() {
        client.start(now: now)
        drain()
    }

    func open(_ dial: Int) {
        client.webSocketOpened(DialID(dial), now: now)
        drain()
    }

    func text(_ text: String, on dial: Int = 1) {
        client.webSocketText(DialID(dial), text, now: now)
        drain()
    }

    func receive(_ message: SignalingMessage, on dial: Int = 1) { text(message.text, on: dial) }

    func wsClosed(_ dial: Int = 1, code: UInt16, reason: String? = nil) {
        client.webSocketClosed(DialID(dial), code: code, reason: reason, now: now)
        drain()
    }

    func wsFailed(_ dial: Int = 1, _ text: String = "lost") {
        client.webSocketFailed(DialID(dial), WebSocketFailure(text), now: now)
        drain()
    }

    /// Lets the peer connection say something.
    func peer(_ output: ClientPeerOutput) {
        peer?.outputs.append(output)
        client.peerWasUsed(now: now)
        drain()
    }

    private var lastOffer: OfferMessage? {
        events.reversed().lazy.compactMap { if case .offerTaken(let offer) = $0 { offer } else { nil } }.first
    }

    /// Messages of ours on data channels, inflated, as texts.
    func channelTexts(_ label: String, id: UInt16) -> [String] {
        let definition = lastOffer?.dataChannels?.first { $0.label == label }
        let framing = DataChannelFraming(label: label, compress: definition?.isCompressed ?? false)
        return (peer?.sent ?? []).filter { $0.channel == StreamID(id) }.compactMap {
            (try? framing.message(in: .init(payload: $0.payload, isBinary: $0.isBinary)))
                .map { String(decoding: $0, as: UTF8.self) }
        }
    }

    /// A text arrives on a data channel.
    func channel(_ label: String, id: UInt16, _ message: [UInt8]) {
        let definition = lastOffer?.dataChannels?.first { $0.label == label }
        let framing = DataChannelFraming(label: label, compress: definition?.isCompressed ?? false)
        guard let frame = try? framing.frame(message) else { return }
        peer(.dataChannelMessage(StreamID(id), frame.payload, isBinary: frame.isBinary))
    }

    func channel(_ label: String, id: UInt16, _ text: String) { channel(label, id: id, Array(text.utf8)) }

    // MARK: Ready-made steps

    static let sdp = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"

    static func offer(labels: [String] = [], change: (inout OfferMessage) -> Void = { _ in }) -> SignalingMessage {
        var offer = OfferMessage(sdp: sdp, connectionID: "CONNECTION")
        offer.clientID = "CLIENT"
        offer.bundleID = "BUNDLE"
        if !labels.isEmpty {
            offer.dataChannelSignaling = true
            offer.dataChannels = labels.map { DataChannelDefinition(label: $0, direction: .sendrecv, compress: true) }
        }
        change(&offer)
        return .offer(offer)
    }

    static let reOffer = SignalingMessage.reOffer(DescriptionMessage(sdp: sdp))

    /// Up to `connected`, with the channels of `labels` open as streams 0, 1, 2, ….
    func connect(labels: [String] = [], change: (inout OfferMessage) -> Void = { _ in }) {
        start()
        open(1)
        receive(Self.offer(labels: labels, change: change))
        peer(.stateChanged(.connected))
        openChannels(labels)
    }

    func openChannels(_ labels: [String]) {
        for (index, label) in labels.enumerated() {
            peer(.dataChannelOpened(StreamID(UInt16(index)), label: label))
        }
    }

    static let systemLabels = ["signaling", "notify", "push", "stats", "rpc"]

    func switchOver(ignore: Bool?) { receive(.switched(SwitchedMessage(ignoreDisconnectWebSocket: ignore))) }

    var ends: [ClientEnd] {
        drain()
        return events.compactMap { if case .ended(let end) = $0 { end } else { nil } }
    }

    var outcomes: [ClientConnection.RPCOutcome] {
        drain()
        return events.compactMap { if case .rpcFinished(_, let outcome) = $0 { outcome } else { nil } }
    }
}
