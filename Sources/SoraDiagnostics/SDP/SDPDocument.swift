import SoraMessages
import SoraSDP

/// One session description, with what is known of the message that it came in.
package struct SDPDocument: Sendable {
    package enum Kind: String, Sendable { case offer, answer, unknown }

    /// Type of the message, or `description`; with its place where a text holds several.
    package var name: String
    package var kind: Kind
    package var description: SessionDescription
    /// The message, for descriptions that stood in an `offer`.
    package var offer: OfferMessage?
    /// It came in a message of Sora's signaling, whose offers are always the server's.
    package var isSignaling = false

    package init(_ description: SessionDescription, name: String = "description", kind: Kind? = nil) {
        self.name = name
        self.description = description
        self.kind = kind ?? SDPDocument.guess(description)
    }

    /// Who wrote it and who reads it.
    package var writer: String { isSignaling ? (kind == .answer ? "client" : "server") : names.0 }
    package var reader: String { isSignaling ? (kind == .answer ? "server" : "client") : names.1 }
    private var names: (String, String) {
        switch kind {
        case .offer: ("offerer", "answerer")
        case .answer: ("answerer", "offerer")
        case .unknown: ("writer", "reader")
        }
    }

    /// An answer has chosen a DTLS role, an offer leaves it open (RFC 8842, 5).
    private static func guess(_ description: SessionDescription) -> Kind {
        let setups = description.media.compactMap(\.setup)
        if setups.contains(.actpass) { return .offer }
        return setups.isEmpty ? .unknown : .answer
    }

    /// All descriptions in a text: SDP itself, a signaling message, or any JSON that holds such messages.
    package static func find(in text: String) throws(SDPDocumentError) -> [SDPDocument] {
        let body = text.drop { $0.isWhitespace || $0 == "\u{FEFF}" }
        guard let first = body.first else { throw .empty }
        guard first == "{" || first == "[" else {
            return [SDPDocument(try parse(String(body), name: "description"))]
        }
        let json: JSONValue
        do throws(JSONError) {
            json = try JSONValue(parsing: String(body))
        } catch {
            throw .json(error)
        }
        var found: [SDPDocument] = []
        try collect(json, depth: 0, into: &found)
        guard !found.isEmpty else { throw .noDescription }
        if found.count > 1 {
            for index in found.indices { found[index].name = "\(index + 1). \(found[index].name)" }
        }
        return found
    }

    private static func parse(_ text: String, name: String) throws(SDPDocumentError) -> SessionDescription {
        do throws(SDPError) {
            return try SessionDescription(parsing: text)
        } catch {
            throw .sdp(name: name, error)
        }
    }

    private static func collect(
        _ json: JSONValue, depth: Int, into found: inout [SDPDocument]
    ) throws(SDPDocumentError) {
        guard depth < 64 else { return }
        switch json {
        case .array(let elements):
            for element in elements { try collect(element, depth: depth + 1, into: &found) }
        case .object(let object):
            if let text = object["sdp"]?.stringValue, text.hasPrefix("v=") {
                found.append(try document(of: object, sdp: text))
            }
            for member in object.members { try collect(member.value, depth: depth + 1, into: &found) }
        default: break
        }
    }

    private static func document(of object: JSONObject, sdp: String) throws(SDPDocumentError) -> SDPDocument {
        let type = object["type"]?.stringValue ?? "description"
        let description = try parse(sdp, name: Masking.line(type, limit: 40))
        var document = SDPDocument(description, name: Masking.line(type, limit: 40))
        switch type {
        case "offer", "re-offer", "update": (document.kind, document.isSignaling) = (.offer, true)
        case "answer", "re-answer": (document.kind, document.isSignaling) = (.answer, true)
        // A throw-away offer that shows what the client can do.
        case "connect": document.kind = .offer
        default: break
        }
        if case .offer(let message)? = try? SignalingMessage(json: .object(object)) { document.offer = message }
        return document
    }
}

/// Why a text has no description to explain.
package enum SDPDocumentError: Error, Equatable, Sendable, CustomStringConvertible {
    case empty
    case json(JSONError)
    /// JSON without a member `sdp` that holds one.
    case noDescription
    case sdp(name: String, SDPError)

    package var description: String {
        switch self {
        case .empty: "the text is empty"
        case .json(let error): "neither SDP (which begins with v=0) nor JSON: \(error)"
        case .noDescription: "the JSON has no member \"sdp\" with a session description"
        case .sdp(let name, let error): "the SDP of \"\(name)\" cannot be read: \(error)"
        }
    }
}
