import SoraICE
import SoraMessages
import SoraSDP
import SoraWire

extension SDPExplanation {
    /// The JSON object as text, on one line.
    package var jsonText: String { json.text }

    /// The explanation as one JSON object; credentials are left out.
    var json: JSONObject {
        let description = document.description
        var object: JSONObject = [
            "name": .string(document.name), "kind": .string(document.kind.rawValue),
            "session_id": .string(description.sessionID), "session_version": .string(description.sessionVersion),
            "bundle": .array(description.bundledMids.map { .string($0.rawValue) }),
            "ice_lite": .bool(description.isICELite),
        ]
        if let transport = description.transportAttributes {
            object["has_ice_credentials"] = .bool(transport.iceCredentials != nil)
            object["fingerprints"] = .array(transport.fingerprints.map { .string($0) })
            object["setup"] = transport.setup.map { .string($0.rawValue) } ?? .null
        }
        object["candidates"] = .array(
            description.media.flatMap(\.candidates).compactMap { try? ICECandidate(parsing: $0) }.map(json(of:)))
        object["end_of_candidates"] = .bool(description.media.contains { $0.hasEndOfCandidates })
        object["sections"] = .array(description.media.map(json(of:)))
        object["findings"] = .array(findings.map(\.json))
        return object
    }

    private func json(of candidate: ICECandidate) -> JSONValue {
        [
            "type": .string(candidate.type.rawValue), "transport": .string(candidate.transport.rawValue),
            "address": .string(candidate.address.description), "priority": .integer(Int64(candidate.priority)),
        ]
    }

    private func json(of media: MediaDescription) -> JSONValue {
        var object: JSONObject = [
            "kind": .string(media.kind.text), "mid": media.mid.map { .string($0.rawValue) } ?? .null,
            "in_use": .bool(!media.isRejected), "protocol": .string(media.transportProtocol),
        ]
        guard media.kind != .application else {
            object["sctp_port"] = media.sctpPort.map { .integer(Int64($0)) } ?? .null
            object["max_message_size"] =
                media.effectiveMaxMessageSize == .max ? .null : .integer(Int64(media.effectiveMaxMessageSize))
            return .object(object)
        }
        object["direction"] = .string(media.direction.rawValue)
        object["sender"] = .array(
            (media.direction.sends ? [.string(document.writer)] : [])
                + (media.direction.receives ? [.string(document.reader)] : []))
        object["streams"] = .array(media.msids.map { .string($0.stream) })
        object["codecs"] = .array(media.codecs.map(json(of:)))
        object["header_extensions"] = .array(
            media.headerExtensions.map { ["id": .integer(Int64($0.id)), "uri": .string($0.uri)] })
        object["ssrcs"] = .array(media.ssrcs.map { .integer(Int64($0.ssrc.rawValue)) })
        if let simulcast = media.simulcast {
            object["simulcast"] = ["send": json(of: simulcast.send), "receive": json(of: simulcast.receive)]
        }
        object["rtcp_mux"] = .bool(media.rtcpMux)
        return .object(object)
    }

    private func json(of codec: CodecDescription) -> JSONValue {
        var parameters = JSONObject()
        for entry in codec.formatParameters.entries { parameters[entry.name] = .string(entry.value ?? "") }
        return [
            "payload_type": .integer(Int64(codec.payloadType.rawValue)), "name": .string(codec.name),
            "clock_rate": .integer(Int64(codec.clockRate)),
            "channels": codec.channels.map { .integer(Int64($0)) } ?? .null, "parameters": .object(parameters),
            "feedback": .array(codec.rtcpFeedback.map { .string($0) }),
        ]
    }

    private func json(of layers: [[SimulcastDescription.Layer]]) -> JSONValue {
        .array(
            layers.flatMap { $0 }.map { ["rid": .string($0.rid.rawValue), "paused": .bool($0.isPaused)] })
    }
}
