import SoraClient
import SoraICE
import SoraMessages
import SoraPeer
import SoraSDP
import SoraWire

/// A peer connection that does what the test says.
final class ScriptedPeer: ClientPeer {
    struct Sent: Equatable {
        var channel: StreamID
        var payload: [UInt8]
        var isBinary: Bool
    }

    var outputs: [ClientPeerOutput] = []
    var accepted: [SessionDescription] = []
    var attached: [LocalTrack] = []
    var sent: [Sent] = []
    var sockets: [SocketID] = []
    var streamEvents: [ICEStreamEvent] = []
    var isClosed = false
    /// When true the answer waits for ``releaseAnswer()``.
    var holdsAnswers = false
    private(set) var heldAnswers = 0
    var acceptError: PeerError?
    var answerError: PeerError?
    var missingMids: Set<String> = []
    var refusesToSend = false
    var remoteStreams: [RemoteStream] = []

    func accept(_ offer: SessionDescription, now: Instant) throws(PeerError) {
        if let acceptError { throw acceptError }
        accepted.append(offer)
    }

    func attach(_ track: LocalTrack, now: Instant) throws(ClientError) -> TransceiverID {
        if missingMids.contains(track.mid) {
            throw .peerChannel("transceiver for \(track.isVideo ? "video" : "audio") not found")
        }
        attached.append(track)
        return TransceiverID(track.isVideo ? 2 : 1)
    }

    func beginAnswer(now: Instant) {
        if holdsAnswers { heldAnswers += 1 } else { answer() }
    }

    func releaseAnswer() {
        guard heldAnswers > 0 else { return }
        heldAnswers -= 1
        answer()
    }

    private func answer() {
        if let answerError {
            outputs.append(.answerFailed(answerError))
        } else {
            outputs.append(.answer(SessionDescription(sessionID: "1", sessionVersion: "\(accepted.count)")))
        }
    }

    func addLocalSocket(_ id: SocketID, address: SocketAddress, now: Instant) { sockets.append(id) }
    func removeLocalSocket(_ id: SocketID, now: Instant) { sockets.removeAll { $0 == id } }
    func handle(_ datagram: Datagram, now: Instant) {}
    func handleStream(_ id: ICEStreamID, _ event: ICEStreamEvent, now: Instant) { streamEvents.append(event) }
    func resolved(_ token: Int, addresses: [IPAddress], now: Instant) {}
    func gather(now: Instant) {}
    func handleTimeout(now: Instant) {}
    var nextTimeout: Instant? { nil }

    func send(_ payload: [UInt8], isBinary: Bool, on channel: StreamID, now: Instant) -> Bool {
        guard !refusesToSend, !isClosed else { return false }
        sent.append(Sent(channel: channel, payload: payload, isBinary: isBinary))
        return true
    }

    func bufferedAmount(of channel: StreamID) -> Int {
        sent.filter { $0.channel == channel }.reduce(0) { $0 + $1.payload.count }
    }
    func close(now: Instant) { isClosed = true }

    func poll() -> ClientPeerOutput? { outputs.isEmpty ? nil : outputs.removeFirst() }
}
