import Foundation
import SoraClient
import SoraPeer
import SoraSDP
import SoraWire

@testable import Sora

import struct SoraMessages.ConnectMessage

/// A peer connection without a network: it answers at once and says what the test makes it say.
final class VirtualPeer: ClientPeer {
    var outputs: [ClientPeerOutput] = []
    var remoteStreams: [RemoteStream] = []
    private(set) var sent: [(channel: StreamID, payload: [UInt8])] = []
    private var answers = 0

    func accept(_ offer: SessionDescription, now: Instant) throws(PeerError) {}
    func attach(_ track: LocalTrack, now: Instant) throws(ClientError) -> TransceiverID {
        TransceiverID(track.isVideo ? 2 : 1)
    }
    func beginAnswer(now: Instant) {
        answers += 1
        outputs.append(.answer(SessionDescription(sessionID: "1", sessionVersion: "\(answers)")))
    }
    func addLocalSocket(_ id: SocketID, address: SocketAddress, now: Instant) {}
    func removeLocalSocket(_ id: SocketID, now: Instant) {}
    func handle(_ datagram: Datagram, now: Instant) {}
    func handleTimeout(now: Instant) {}
    var nextTimeout: Instant? { nil }
    func send(_ payload: [UInt8], isBinary: Bool, on channel: StreamID, now: Instant) -> Bool {
        sent.append((channel, payload))
        return true
    }
    func bufferedAmount(of channel: StreamID) -> Int { 0 }
    func close(now: Instant) {}
    func poll() -> ClientPeerOutput? { outputs.isEmpty ? nil : outputs.removeFirst() }
}

/// The client's machine in virtual time, driven by a schedule instead of sockets.
///
/// `@unchecked Sendable`: one thread, the test's, uses it; only the release of cameras at the end comes from others and
/// touches the core alone.
final class VirtualDriver: ConnectionDriver, @unchecked Sendable {
    let core: ChannelCore
    private(set) var connection: ClientConnection!
    private(set) var peers: [VirtualPeer] = []
    private(set) var dials: [DialID] = []
    private(set) var openDial: DialID?
    var now = Instant.zero
    private var calls: [RPCCallToken: @Sendable (Result<RPCAnswer?, any Error>) -> Void] = [:]
    private var isDraining = false
    /// Answers to pings that left.
    private(set) var pongs = 0

    init(core: ChannelCore, settings: ConfigurationSnapshot) {
        self.core = core
        var configuration = ClientConfiguration(
            urls: settings.urlCandidates.map(\.absoluteString),
            connect: ConnectMessage(role: .recvonly, channelID: settings.channelId))
        configuration.connectionTimeout = .seconds(settings.connectionTimeout)
        configuration.waitsForDelivery = true
        connection = ClientConnection(configuration: configuration) { [unowned self] _, _ in
            let peer = VirtualPeer()
            peers.append(peer)
            return peer
        }
    }

    func start() {
        connection.start(now: now)
        drain()
    }
    func end(_ cause: EndCause) {
        connection.disconnect(now: now)
        drain()
    }
    func abandon() { end(.user) }
    func outgoingMessagesAvailable() {
        for message in core.outgoing.takeAll() {
            _ = connection.sendMessage(label: message.label, [UInt8](message.data), now: now)
            core.outgoing.didSend(bytes: message.data.count)
        }
        drain()
    }
    func call(_ call: RPCCall, completion: @escaping @Sendable (Result<RPCAnswer?, any Error>) -> Void) -> RPCCallID {
        let token = connection.call(
            method: call.method, params: Array(call.params.text.utf8), isNotification: call.isNotification,
            timeout: .seconds(2), now: now)
        calls[token] = completion
        drain()
        return RPCCallID(number: token.rawValue)
    }
    func cancelCall(_ id: RPCCallID) {
        connection.cancelCall(RPCCallToken(id.number))
        drain()
    }
    func statistics(completion: @escaping @Sendable (Result<[StatisticsRecord], any Error>) -> Void) {
        completion(.success([]))
    }
    func setMicrophoneHardMute(_ isMuted: Bool) -> SoraError? { nil }

    /// Calls that wait for their outcome.
    var waitingCalls: Int { calls.count }

    // MARK: What a schedule does

    func perform(_ body: (ClientConnection) -> Void) {
        body(connection)
        drain()
    }

    func peer(_ output: ClientPeerOutput) {
        guard connection.peer != nil else { return }
        peers.last?.outputs.append(output)
        perform { $0.peerWasUsed(now: now) }
    }

    func openLatestDial() {
        guard let dial = dials.popLast() else { return }
        openDial = dial
        perform { $0.webSocketOpened(dial, now: now) }
    }

    func failDial(_ text: String) {
        guard let dial = dials.popLast() else { return }
        perform { $0.webSocketFailed(dial, WebSocketFailure(text), now: now) }
    }

    /// The server closes the WebSocket.
    func closeWebSocket(_ code: UInt16, _ reason: String?) {
        guard let dial = openDial else { return }
        openDial = nil
        perform { $0.webSocketClosed(dial, code: code, reason: reason, now: now) }
    }

    /// The WebSocket is gone without a word.
    func loseWebSocket(_ text: String = "lost") {
        guard let dial = openDial else { return }
        openDial = nil
        perform { $0.webSocketFailed(dial, WebSocketFailure(text), now: now) }
    }

    func text(_ text: String) {
        guard let openDial else { return }
        perform { $0.webSocketText(openDial, text, now: now) }
    }

    func advance(_ duration: Duration) {
        let target = now + duration
        while let due = connection.nextTimeout, due <= target {
            now = max(now, due)
            perform { $0.handleTimeout(now: now) }
        }
        now = target
    }

    func drain() {
        guard !isDraining else { return }
        isDraining = true
        defer { isDraining = false }
        while let output = connection.poll() {
            switch output {
            case .dial(let id, _): dials.append(id)
            case .abandonDial(let id):
                dials.removeAll { $0 == id }
                if openDial == id { openDial = nil }
            case .closeWebSocket(let id, _, _):
                // The server lets go at once.
                if openDial == id { openDial = nil }
                connection.webSocketClosed(id, code: 1000, reason: nil, now: now)
            case .collectStatistics(let token): connection.provideStatistics([], for: token, now: now)
            case .event(let record): report(record)
            case .sendText(_, let text): if text.contains(#""type":"pong""#) { pongs += 1 }
            case .openSockets, .closeSockets, .transmit, .ice, .media, .log: break
            }
        }
    }

    private func report(_ record: ClientConnection.EventRecord) {
        switch record.event {
        case .signalingText(let text):
            core.deliver(.signalingText(text)) { [weak self] in
                guard let self else { return }
                perform { $0.signalingTextDelivered(now: now) }
            }
        case .offerTaken(let offer):
            core.deliver(
                .offerTaken(
                    OfferFacts(
                        clientId: offer.clientID ?? "", bundleId: nil, connectionId: offer.connectionID, url: nil,
                        peer: ObservedPeer(onClose: {}))))
        case .streamAdded(let stream):
            core.deliver(.streamAdded(ConnectedStream(streamId: stream.id, isLocal: false, core: core)))
        case .dataChannelMessage(let label, let bytes):
            core.deliver(.dataChannelMessage(label: label, data: Data(bytes)))
        case .rpcFinished(let token, let outcome):
            calls.removeValue(forKey: token)?(outcome.publicResult)
        case .ended(let end):
            core.beginEnd(end.error?.publicError)
            core.finish()
        default: core.report(record.event)
        }
    }
}
