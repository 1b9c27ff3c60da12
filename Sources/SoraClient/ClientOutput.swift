import SoraICE
import SoraMessages
import SoraPeer
import SoraRTP
import SoraWire

/// Names one attempt to open a WebSocket. Never reused within a connection.
package struct DialID: Hashable, Sendable {
    package var rawValue: Int
    package init(_ rawValue: Int) { self.rawValue = rawValue }
}

/// Names one JSON-RPC call to its caller, across redirects.
package struct RPCCallToken: Hashable, Sendable {
    package var rawValue: Int
    package init(_ rawValue: Int) { self.rawValue = rawValue }
}

/// Names one request for statistics.
package struct StatisticsToken: Hashable, Sendable {
    package var rawValue: Int
    package init(_ rawValue: Int) { self.rawValue = rawValue }
}

/// W3C-like states of a connection; no transition leads back.
package enum ClientState: Sendable, Equatable {
    case idle, connecting, connected, disconnecting, disconnected
}

/// A remote sender: what one stream id brings.
package struct RemoteStream: Sendable, Equatable {
    package struct Track: Sendable, Equatable {
        package var transceiver: TransceiverID
        package var isVideo: Bool
        package var trackID: String?
        package init(transceiver: TransceiverID, isVideo: Bool, trackID: String?) {
            self.transceiver = transceiver
            self.isVideo = isVideo
            self.trackID = trackID
        }
    }
    package var id: String
    package var tracks: [Track]
    package init(id: String, tracks: [Track]) {
        self.id = id
        self.tracks = tracks
    }
}

/// Where own media goes, once the offer said so.
package struct AttachedSenders: Sendable, Equatable {
    package var audio: TransceiverID?
    package var video: TransceiverID?
    package init(audio: TransceiverID? = nil, video: TransceiverID? = nil) {
        self.audio = audio
        self.video = video
    }
}

extension ClientConnection {
    /// What the driver has to do or to tell, in order.
    package enum Output {
        /// Open a WebSocket: resolve, connect, TLS, upgrade.
        case dial(DialID, url: String)
        /// Give up an attempt, or close a WebSocket that lost the race, without a word.
        case abandonDial(DialID)
        case sendText(DialID, String)
        /// Send a close frame. What was sent before leaves first.
        case closeWebSocket(DialID, code: UInt16, reason: String)
        /// Open UDP sockets for the peer connection of `epoch` and report them by
        /// ``ClientConnection/addLocalSocket(_:address:epoch:now:)``.
        case openSockets(epoch: Int)
        /// Close the sockets of `epoch`, after what was transmitted before.
        case closeSockets(epoch: Int)
        case transmit(Datagram)
        /// ICE wants something of the network that is not a datagram.
        case ice(ICEAgent.Output, epoch: Int)
        /// Answer by ``ClientConnection/provideStatistics(_:for:now:)``.
        case collectStatistics(StatisticsToken)
        /// Packets and feedback of the peer connection, for the media pipelines.
        case media(PeerConnection.Output, epoch: Int)
        case event(EventRecord)
        case log(ClientLogEntry)
    }

    /// An event with the state of the connection when it happened.
    package struct EventRecord: Sendable {
        package var event: Event
        /// 0 at first, one more after each redirect.
        package var epoch: Int
        /// Nil until an offer was processed.
        package var connectionID: String?
    }

    /// What the application is told, in this order.
    package enum Event: Sendable, Equatable {
        /// A WebSocket opened and won the race.
        case webSocketOpened(url: String)
        /// The text of a signaling message, before it is acted upon.
        case signalingText(String)
        /// The same message after its synchronous effects.
        case signaling(SignalingMessage, text: String)
        /// Ids and channels of an offer are known, the peer connection exists.
        case offerTaken(OfferMessage)
        /// Own tracks have their transceivers: the local stream exists.
        case sendersAttached(AttachedSenders)
        case streamAdded(RemoteStream)
        /// A track of a known stream came or went.
        case streamChanged(RemoteStream)
        case streamRemoved(id: String)
        /// Everything of the old transport is void.
        case redirected(location: String)
        case connected
        case countsChanged(connections: Int, publishers: Int, subscribers: Int)
        case dataChannelOpened(label: String)
        /// All `#` labels of the offer are open.
        case dataChannelsAvailable
        case dataChannelMessage(label: String, [UInt8])
        case rpcFinished(RPCCallToken, RPCOutcome)
        /// The end began: no more sends and calls.
        case disconnecting
        /// The last event.
        case ended(ClientEnd)
    }

    /// How a call ended.
    package enum RPCOutcome: Sendable, Equatable {
        /// A notification went out.
        case sent
        /// The id, the result, and the whole response as received.
        case result(id: Int, JSONValue, message: [UInt8])
        case serverError(RPCErrorObject, message: [UInt8])
        case failure(RPCFailure)
    }
}

/// A line for the log. Texts never contain what applications or servers put into messages.
package struct ClientLogEntry: Sendable, Equatable {
    package enum Level: Sendable, Equatable { case debug, info, warning, error }
    package var level: Level
    package var text: String
}
