/// Every signaling message, of both directions.
///
/// Decoding is tolerant: unknown keys are kept and written again, JSON null counts as an absent key
/// (except where any JSON is allowed), and numbers may be written in any notation. A known key with a
/// value of the wrong type, or a missing required key, makes the message undecodable.
package enum SignalingMessage: Sendable, Equatable {
    case connect(ConnectMessage)
    case redirect(RedirectMessage)
    case offer(OfferMessage)
    case answer(DescriptionMessage)
    case candidate(CandidateMessage)
    case reOffer(DescriptionMessage)
    case reAnswer(DescriptionMessage)
    /// The older form of `re-offer` and `re-answer`; never sent.
    case update(DescriptionMessage)
    case ping(PingMessage)
    case pong(PongMessage)
    case reqStats
    case stats(StatsMessage)
    case notify(NotifyMessage)
    case push(PushMessage)
    case switched(SwitchedMessage)
    case disconnect(DisconnectMessage)
    case close(CloseMessage)
    /// A type that is not known, with the whole message.
    case unknown(type: String, JSONObject)

    /// Reads a message from the text of a WebSocket or data channel frame.
    package init(parsing text: String) throws(MessageError) {
        let json: JSONValue
        do throws(JSONError) { json = try JSONValue(parsing: text) } catch { throw .json(error) }
        try self.init(json: json)
    }

    /// Reads a message from UTF-8 bytes, such as an inflated data channel message.
    package init(parsing bytes: [UInt8]) throws(MessageError) {
        let json: JSONValue
        do throws(JSONError) { json = try JSONValue(parsing: bytes) } catch { throw .json(error) }
        try self.init(json: json)
    }

    package init(json: JSONValue) throws(MessageError) {
        guard let object = json.objectValue else { throw .notAnObject }
        guard let type = object["type"]?.stringValue else { throw .missingType }
        switch type {
        case "connect":
            do throws(ConnectRejection) {
                self = .connect(try ConnectMessage(validating: json))
            } catch { throw .invalid(type: type, key: error.reason) }
        case "redirect": self = .redirect(try RedirectMessage(object))
        case "offer": self = .offer(try OfferMessage(object))
        case "answer": self = .answer(try DescriptionMessage(object, type: type))
        case "candidate": self = .candidate(try CandidateMessage(object))
        case "re-offer": self = .reOffer(try DescriptionMessage(object, type: type))
        case "re-answer": self = .reAnswer(try DescriptionMessage(object, type: type))
        case "update": self = .update(try DescriptionMessage(object, type: type))
        case "ping": self = .ping(try PingMessage(object))
        case "pong": self = .pong(try PongMessage(object))
        case "req-stats": self = .reqStats
        case "stats": self = .stats(try StatsMessage(object))
        case "notify": self = .notify(try NotifyMessage(object))
        case "push": self = .push(PushMessage(object))
        case "switched": self = .switched(try SwitchedMessage(object))
        case "disconnect": self = .disconnect(try DisconnectMessage(object))
        case "close": self = .close(try CloseMessage(object))
        default: self = .unknown(type: type, object)
        }
    }

    package var type: String {
        switch self {
        case .connect: "connect"
        case .redirect: "redirect"
        case .offer: "offer"
        case .answer: "answer"
        case .candidate: "candidate"
        case .reOffer: "re-offer"
        case .reAnswer: "re-answer"
        case .update: "update"
        case .ping: "ping"
        case .pong: "pong"
        case .reqStats: "req-stats"
        case .stats: "stats"
        case .notify: "notify"
        case .push: "push"
        case .switched: "switched"
        case .disconnect: "disconnect"
        case .close: "close"
        case .unknown(let type, _): type
        }
    }

    package var json: JSONObject {
        switch self {
        case .connect(let message): message.json
        case .redirect(let message): message.json
        case .offer(let message): message.json
        case .answer(let message), .reOffer(let message), .reAnswer(let message), .update(let message):
            message.json(type: type)
        case .candidate(let message): message.json
        case .ping(let message): message.json
        case .pong(let message): message.json
        case .reqStats: ["type": "req-stats"]
        case .stats(let message): message.json
        case .notify(let message): message.json
        case .push(let message): message.json
        case .switched(let message): message.json
        case .disconnect(let message): message.json
        case .close(let message): message.json
        case .unknown(_, let object): object
        }
    }

    /// Compact JSON text for a frame.
    package var text: String { json.text }
}
