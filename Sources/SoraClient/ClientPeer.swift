import SoraICE
import SoraMessages
import SoraPeer
import SoraSDP
import SoraWire

/// What the client connection needs of a peer connection. ``PeerConnectionAdapter`` is the real one;
/// tests put a scripted one in its place.
package protocol ClientPeer: AnyObject {
    /// What of the offer's settings could not be used, for the log.
    var warnings: [String] { get }
    /// Takes an offer. On an error nothing has changed.
    func accept(_ offer: SessionDescription, now: Instant) throws(PeerError)
    /// Makes the m-line `mid` send our track, with the parameters of `encodings`.
    func attach(_ track: LocalTrack, now: Instant) throws(ClientError) -> TransceiverID
    /// Begins to answer; the answer comes by ``poll()`` once it is in force.
    func beginAnswer(now: Instant)
    /// Streams that the other side sends now, by their first stream id.
    var remoteStreams: [RemoteStream] { get }

    func addLocalSocket(_ id: SocketID, address: SocketAddress, now: Instant)
    func removeLocalSocket(_ id: SocketID, now: Instant)
    func handle(_ datagram: Datagram, now: Instant)
    /// What happened to a connection that ICE asked for.
    func handleStream(_ id: ICEStreamID, _ event: ICEStreamEvent, now: Instant)
    /// The answer to a name that ICE asked for; empty if it has no address.
    func resolved(_ token: Int, addresses: [IPAddress], now: Instant)
    /// Starts to ask STUN and TURN servers even without a local socket.
    func gather(now: Instant)
    func handleTimeout(now: Instant)
    var nextTimeout: Instant? { get }
    /// Queues one message; false if the transport refuses it.
    func send(_ payload: [UInt8], isBinary: Bool, on channel: StreamID, now: Instant) -> Bool
    /// Bytes accepted for a channel and not yet sent.
    func bufferedAmount(of channel: StreamID) -> Int
    func close(now: Instant)
    func poll() -> ClientPeerOutput?
    /// What is known about why the path to the server failed or is in trouble, for users.
    var pathProblem: PathProblem? { get }
}

/// What keeps a peer connection from its server.
package struct PathProblem: Equatable, Sendable {
    /// For users.
    package var reason: String
    /// Only relays may be used and none is left: an attempt can never succeed.
    package var endsAttempt = false

    package init(_ reason: String, endsAttempt: Bool = false) {
        self.reason = reason
        self.endsAttempt = endsAttempt
    }
}

extension ClientPeer {
    package var warnings: [String] { [] }
    package var pathProblem: PathProblem? { nil }
    // A peer without servers asks for neither.
    package func handleStream(_ id: ICEStreamID, _ event: ICEStreamEvent, now: Instant) {}
    package func resolved(_ token: Int, addresses: [IPAddress], now: Instant) {}
    package func gather(now: Instant) {}
}

/// What a ``ClientPeer`` has to say.
package enum ClientPeerOutput {
    case transmit(Datagram)
    case stateChanged(PeerConnectionState)
    /// As in SDP without `a=`: `candidate:…`.
    case localCandidate(String)
    case answer(SessionDescription)
    case answerFailed(PeerError)
    case dataChannelOpened(StreamID, label: String)
    case dataChannelMessage(StreamID, [UInt8], isBinary: Bool)
    case dataChannelClosed(StreamID)
    /// The peer connection ended by itself; nil: orderly, by the other side.
    case ended(PeerError?)
    case ice(ICEAgent.Output)
    case media(PeerConnection.Output)
}

/// An own track to send.
package struct LocalTrack: Sendable, Equatable {
    package var isVideo: Bool
    package var mid: String
    package var streamID: String
    package var trackID: String
    /// The offer's encodings; one plain stream if empty.
    package var encodings: [SimulcastEncoding]
    package var isSimulcast: Bool
}
