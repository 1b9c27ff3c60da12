import Foundation

/// A signaling message.
public enum Signaling: Codable {
    /// The client asks to join.
    case connect(SignalingConnect)
    /// The server's session description.
    case offer(SignalingOffer)
    /// The client's session description.
    case answer(SignalingAnswer)
    /// Obsolete form of a new session description.
    case update(SignalingUpdate)
    /// A new session description of the server.
    case reOffer(SignalingReOffer)
    /// The client's answer to it.
    case reAnswer(SignalingReAnswer)
    /// A way to reach the client.
    case candidate(SignalingCandidate)
    /// Something happened in the channel.
    case notify(SignalingNotify)
    /// The server asks whether the client is there.
    case ping(SignalingPing)
    /// The client is there.
    case pong(SignalingPong)
    /// The client leaves.
    case disconnect(SignalingDisconnect)
    /// JSON that the application's server pushed.
    case push(SignalingPush)
    /// Signaling moves to data channels.
    case switched(SignalingSwitched)
    /// The client must connect elsewhere.
    case redirect(SignalingRedirect)
    /// The server ends the connection.
    case close(SignalingClose)

    /// Parses a received message. Whatever is wrong becomes `.failure`.
    public static func decode(_ data: Data) -> Result<Signaling, any Error> {
        Result { try Signaling(SignalingObject(parsing: data)) }
    }

    /// The `type` of the message on the wire.
    public func typeName() -> String {
        switch self {
        case .connect: "connect"
        case .offer: "offer"
        case .answer: "answer"
        case .update: "update"
        case .reOffer: "re-offer"
        case .reAnswer: "re-answer"
        case .candidate: "candidate"
        case .notify: "notify"
        case .ping: "ping"
        case .pong: "pong"
        case .disconnect: "disconnect"
        case .push: "push"
        case .switched: "switched"
        case .redirect: "redirect"
        case .close: "close"
        }
    }

    init(_ object: SignalingObject) throws {
        let type = try object.required(object.string("type"))
        switch type {
        case "offer": self = .offer(try SignalingOffer(object))
        case "update": self = .update(SignalingUpdate(sdp: try object.required(object.string("sdp"))))
        case "re-offer": self = .reOffer(SignalingReOffer(sdp: try object.required(object.string("sdp"))))
        case "notify": self = .notify(try SignalingNotify(object))
        case "ping": self = .ping(SignalingPing(statisticsEnabled: try object.bool("stats")))
        case "push": self = .push(SignalingPush(data: object.any("data")))
        case "switched":
            self = .switched(
                SignalingSwitched(ignoreDisconnectWebSocket: try object.bool("ignore_disconnect_websocket")))
        case "redirect": self = .redirect(SignalingRedirect(location: try object.required(object.string("location"))))
        case "close": self = .close(try SignalingClose(object))
        default: throw SoraError.unknownSignalingMessageType(type: type)
        }
    }

    public init(from decoder: any Decoder) throws { try self.init(SignalingObject(from: decoder)) }

    /// Messages that only the server sends are ``SoraError/invalidSignalingMessage``.
    public func encode(to encoder: any Encoder) throws {
        switch self {
        case .connect(let message): try message.encode(to: encoder)
        case .answer(let message): try message.encode(to: encoder)
        case .update(let message): try message.encode(to: encoder)
        case .reAnswer(let message): try message.encode(to: encoder)
        case .candidate(let message): try message.encode(to: encoder)
        case .pong(let message): try message.encode(to: encoder)
        case .disconnect(let message): try message.encode(to: encoder)
        case .offer, .reOffer, .notify, .ping, .push, .switched, .redirect, .close:
            throw SoraError.invalidSignalingMessage
        }
        var container = encoder.container(keyedBy: SignalingKey.self)
        try container.encode(typeName(), forKey: "type")
    }
}
