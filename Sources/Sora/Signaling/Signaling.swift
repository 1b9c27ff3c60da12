import Foundation

/// A signaling message.
public enum Signaling: Codable {
    case connect(SignalingConnect)
    case offer(SignalingOffer)
    case answer(SignalingAnswer)
    case update(SignalingUpdate)
    case reOffer(SignalingReOffer)
    case reAnswer(SignalingReAnswer)
    case candidate(SignalingCandidate)
    case notify(SignalingNotify)
    case ping(SignalingPing)
    case pong(SignalingPong)
    case disconnect(SignalingDisconnect)
    case push(SignalingPush)
    case switched(SignalingSwitched)
    case redirect(SignalingRedirect)
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
