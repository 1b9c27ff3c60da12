import SoraWire

extension SDPParser {
    mutating func parseAttributeLine(_ line: Substring) throws(SDPError) {
        let (name, value): (Substring, Substring?) =
            if let (name, value) = line.splitOnce(":") { (name, value) } else { (line, nil) }
        guard isToken(name) else { throw syntax("an attribute name") }
        if try parseCommonAttribute(name, value) { return }
        if section == nil {
            if try parseSessionAttribute(name, value) { return }
            session.otherAttributes.append(SDPAttribute(String(name), value.map(String.init)))
        } else {
            if try parseMediaAttribute(name, value) { return }
            section?.media.otherAttributes.append(SDPAttribute(String(name), value.map(String.init)))
        }
    }

    /// The value of an attribute that must have one.
    private func required(_ value: Substring?, _ expected: String) throws(SDPError) -> Substring {
        guard let value, !value.trimmingSpaces.isEmpty else { throw syntax(expected) }
        return value
    }

    /// An attribute that must not have a value.
    private func flag(_ value: Substring?) throws(SDPError) {
        guard value == nil else { throw syntax("this attribute without a value") }
    }

    private func number(_ text: Substring?, _ maximum: UInt64, _ expected: String) throws(SDPError) -> UInt64 {
        guard let text, let value = decimal(text.trimmingSpaces, maximum: maximum) else { throw syntax(expected) }
        return value
    }

    // MARK: Attributes of both levels

    private mutating func parseCommonAttribute(_ name: Substring, _ value: Substring?) throws(SDPError) -> Bool {
        switch name {
        case "ice-ufrag", "ice-pwd":
            let isPassword = name == "ice-pwd"
            let text = try required(value, "an ICE string").trimmingSpaces
            guard (isPassword ? 22 : 4)...256 ~= text.utf8.count, text.utf8.allSatisfy(isICECharacter) else {
                throw syntax("\(isPassword ? 22 : 4) to 256 characters of letters, digits, + and /")
            }
            let path: WritableKeyPath<ICELines, String?> = isPassword ? \.password : \.usernameFragment
            if section != nil {
                section?.ice[keyPath: path] = String(text)
            } else {
                sessionICE[keyPath: path] = String(text)
            }
        case "ice-options":
            let options = try required(value, "option tags separated by spaces").words.map(String.init)
            if section != nil {
                section?.media.iceOptions += options
            } else {
                session.sessionLevel.iceOptions += options
            }
        case "fingerprint":
            let text = try required(value, "a hash name and bytes").trimmingSpaces
            guard isFingerprint(text) else {
                throw syntax("a hash name and as many two-digit hexadecimal bytes, separated by colons, as it has")
            }
            if section != nil {
                section?.media.fingerprints.append(String(text))
            } else {
                session.sessionLevel.fingerprints.append(String(text))
            }
        case "setup":
            guard let setup = DTLSSetup(rawValue: String(try required(value, "a role").trimmingSpaces)) else {
                throw syntax("actpass, active, passive or holdconn")
            }
            if section != nil { section?.media.setup = setup } else { session.sessionLevel.setup = setup }
        case "sendrecv", "sendonly", "recvonly", "inactive":
            try flag(value)
            guard let direction = MediaDirection(rawValue: String(name)) else { return false }
            if section != nil {
                section?.media.direction = direction
                explicitDirections.insert(session.media.count)
            } else {
                session.sessionLevel.direction = direction
            }
        case "extmap":
            try parseHeaderExtension(try required(value, "an id and a URI"))
        case "extmap-allow-mixed":
            try flag(value)
            session.extmapAllowMixed = true
        default: return false
        }
        return true
    }

    private mutating func parseHeaderExtension(_ value: Substring) throws(SDPError) {
        let words = value.words
        guard words.count >= 2 else { throw syntax("an id and a URI") }
        let (idText, directionText): (Substring, Substring?) =
            if let (id, direction) = words[0].splitOnce("/") { (id, direction) } else { (words[0], nil) }
        guard let id = decimal(idText, maximum: 255), id >= 1 else { throw syntax("a header extension id of 1 to 255") }
        var direction: MediaDirection?
        if let directionText {
            direction = MediaDirection(rawValue: String(directionText))
            guard direction != nil else { throw syntax("sendrecv, sendonly, recvonly or inactive behind the id") }
        }
        let item = HeaderExtensionDescription(
            id: UInt8(id), uri: String(words[1]), direction: direction,
            attributes: words.count > 2 ? words[2...].joined(separator: " ") : nil)
        if section != nil {
            guard section?.extensionIDs.insert(item.id).inserted == true else {
                throw syntax("a header extension id that the section does not use yet")
            }
            section?.media.headerExtensions.append(item)
        } else {
            guard session.sessionLevel.headerExtensions.count < SDPLimits.headerExtensions else {
                throw .limitExceeded(what: "header extensions", limit: SDPLimits.headerExtensions, line: lineNumber)
            }
            session.sessionLevel.headerExtensions.append(item)
        }
    }

    // MARK: Session level

    private mutating func parseSessionAttribute(_ name: Substring, _ value: Substring?) throws(SDPError) -> Bool {
        switch name {
        case "group":
            let words = try required(value, "group semantics").words
            guard isToken(words[0]) else { throw syntax("group semantics") }
            session.groups.append(
                MediaGroup(semantics: String(words[0]), mids: words.dropFirst().map { Mid(String($0)) }))
        case "ice-lite":
            try flag(value)
            session.isICELite = true
        case "msid-semantic":
            session.msidSemantic = String((value ?? "").trimmingSpaces)
        default: return false
        }
        return true
    }

    // MARK: Media level

    private mutating func parseMediaAttribute(_ name: Substring, _ value: Substring?) throws(SDPError) -> Bool {
        switch name {
        case "mid":
            let mid = Mid(String(try required(value, "an identification tag").trimmingSpaces))
            guard isToken(mid.rawValue), section?.media.mid == nil || section?.media.mid == mid else {
                throw syntax("one identification tag per section")
            }
            section?.media.mid = mid
            section?.midLine = lineNumber
        case "rtcp-mux":
            try flag(value)
            section?.media.rtcpMux = true
        case "rtcp-rsize":
            try flag(value)
            section?.media.rtcpReducedSize = true
        case "bundle-only":
            try flag(value)
            section?.media.isBundleOnly = true
        case "end-of-candidates":
            try flag(value)
            section?.media.hasEndOfCandidates = true
        case "rtcp":
            let words = try required(value, "a port").words
            guard let port = decimal(words[0], maximum: 65_535), words.count == 1 || words.count == 4 else {
                throw syntax("a port of 0 to 65535, then nothing or network type, address type and address")
            }
            section?.media.rtcp = RTCPAddress(
                port: UInt16(port), address: words.count == 4 ? words[1...].joined(separator: " ") : nil)
        case "candidate": try parseCandidate(value)
        case "rtpmap": try parseRTPMap(try required(value, "payload type and codec"))
        case "fmtp":
            guard let (type, text) = try required(value, "payload type and parameters").splitOnce(" ") else {
                return false
            }
            let parameters = FormatParameters(parsing: text)
            guard let payloadType = decimal(type, maximum: 127) else {
                // For a section without RTP the format is any token; nothing is known about it here.
                if section?.media.carriesRTP == false { return false }
                throw syntax("a payload type of 0 to 127")
            }
            section?.updateCodec(UInt8(payloadType)) { codec in
                codec.formatParameters.entries += parameters.entries
            }
        case "rtcp-fb": try parseFeedback(try required(value, "payload type and feedback"))
        case "msid":
            let words = try required(value, "a stream id").words
            guard words.count <= 2 else { throw syntax("a stream id and at most one track id") }
            section?.media.msids.append(
                MediaStreamIdentifier(stream: String(words[0]), track: words.count == 2 ? String(words[1]) : nil))
        case "ssrc": try parseSSRC(try required(value, "an SSRC and an attribute"))
        case "ssrc-group":
            let words = try required(value, "semantics and SSRCs").words
            var ssrcs: [SSRC] = []
            for word in words.dropFirst() {
                ssrcs.append(SSRC(UInt32(try number(word, UInt64(UInt32.max), "an SSRC of 0 to 4294967295"))))
            }
            section?.media.ssrcGroups.append(SSRCGroup(semantics: String(words[0]), ssrcs: ssrcs))
        case "rid": try parseRID(try required(value, "a rid"))
        case "simulcast": try parseSimulcast(try required(value, "a direction and rids"))
        case "sctp-port":
            let port = try number(value, 65_535, "a port of 0 to 65535")
            section?.media.sctpPort = UInt16(port)
        case "max-message-size":
            let size = try number(value, UInt64(Int.max), "a number of bytes")
            section?.media.maxMessageSize = Int(size)
        case "sctpmap":
            let words = try required(value, "port, protocol and streams").words
            guard words.count >= 2, let port = decimal(words[0], maximum: 65_535) else {
                throw syntax("port, protocol and number of streams")
            }
            section?.media.sctpPort = UInt16(port)
            if words.count > 2 {
                let streams = try number(words[2], 65_535, "a number of streams up to 65535")
                section?.media.sctpMapStreams = UInt16(streams)
            }
        default: return false
        }
        return true
    }

    private mutating func parseCandidate(_ value: Substring?) throws(SDPError) {
        var view = try required(value, "a candidate").utf8
        while view.last == UInt8(ascii: " ") { view = view.dropLast() }
        guard isCandidate(Substring(view)) else {
            throw syntax("foundation, component, transport, priority, address, port, \"typ\" and type (RFC 8839, 5.1)")
        }
        guard (section?.media.candidates.count ?? 0) < SDPLimits.candidates else {
            throw .limitExceeded(what: "candidates in one section", limit: SDPLimits.candidates, line: lineNumber)
        }
        section?.media.candidates.append("candidate:" + Substring(view))
    }

    private mutating func parseRTPMap(_ value: Substring) throws(SDPError) {
        let expected = "payload type 0 to 127, then name/clock rate with an optional channel count"
        let words = value.words
        guard words.count == 2, let payloadType = decimal(words[0], maximum: 127) else { throw syntax(expected) }
        let parts = words[1].utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { Substring($0) }
        guard (2...3).contains(parts.count), isToken(parts[0]),
            let clockRate = decimal(parts[1], maximum: UInt64(Int32.max)), clockRate > 0
        else { throw syntax(expected) }
        var channels: Int?
        if parts.count == 3 {
            guard let count = decimal(parts[2], maximum: 255), count > 0 else { throw syntax(expected) }
            channels = Int(count)
        }
        let name = String(parts[0])
        section?.updateCodec(UInt8(payloadType)) { codec in
            codec.name = name
            codec.clockRate = Int(clockRate)
            codec.channels = channels
        }
    }

    private mutating func parseFeedback(_ value: Substring) throws(SDPError) {
        guard let (type, text) = value.trimmingSpaces.splitOnce(" ") else { throw syntax("payload type and feedback") }
        let feedback = text.words.joined(separator: " ")
        if type == "*" {
            guard section?.addWildcardFeedback(feedback) != false else {
                throw .limitExceeded(
                    what: "feedback lines for all payload types", limit: SDPLimits.wildcardFeedback, line: lineNumber)
            }
            return
        }
        guard let payloadType = decimal(type, maximum: 127) else { throw syntax("a payload type of 0 to 127 or *") }
        section?.updateCodec(UInt8(payloadType)) { codec in codec.rtcpFeedback.append(feedback) }
    }

    private mutating func parseSSRC(_ value: Substring) throws(SDPError) {
        guard let (id, text) = value.splitOnce(" "), let ssrc = decimal(id, maximum: UInt64(UInt32.max)), !text.isEmpty
        else { throw syntax("an SSRC of 0 to 4294967295 and an attribute") }
        let attribute =
            if let (name, content) = text.splitOnce(":") {
                SDPAttribute(String(name), String(content))
            } else {
                SDPAttribute(String(text))
            }
        section?.addSSRCAttribute(SSRC(UInt32(ssrc)), attribute)
    }

    private mutating func parseRID(_ value: Substring) throws(SDPError) {
        let words = value.words
        guard words.count >= 2, isRestrictionID(words[0]),
            let direction = RIDDescription.Direction(rawValue: String(words[1]))
        else { throw syntax("a rid, then send or recv") }
        let id = RestrictionID(String(words[0]))
        guard section?.rids.insert(id).inserted == true else { throw syntax("a rid that the section does not use yet") }
        var rid = RIDDescription(id: id, direction: direction)
        for entry in FormatParameters(parsing: words[2...].joined(separator: " ")[...]).entries {
            if entry.name == "pt" {
                for item in (entry.value ?? "").utf8.split(separator: UInt8(ascii: ",")) {
                    guard let payloadType = decimal(Substring(item), maximum: 127) else {
                        throw syntax("payload types of 0 to 127 behind pt=")
                    }
                    rid.payloadTypes.append(PayloadType(UInt8(payloadType)))
                }
            } else {
                rid.restrictions.append(entry)
            }
        }
        section?.media.rids.append(rid)
    }

    private mutating func parseSimulcast(_ value: Substring) throws(SDPError) {
        let expected = "send and recv, each once and followed by rids"
        let words = value.words
        guard words.count == 2 || words.count == 4, section?.media.simulcast == nil else { throw syntax(expected) }
        var simulcast = SimulcastDescription()
        for position in stride(from: 0, to: words.count, by: 2) {
            var streams: [[SimulcastDescription.Layer]] = []
            for stream in words[position + 1].utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
            {
                var alternatives: [SimulcastDescription.Layer] = []
                for item in stream.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
                    let isPaused = item.first == UInt8(ascii: "~")
                    let rid = Substring(isPaused ? item.dropFirst() : item)
                    guard isRestrictionID(rid) else { throw syntax(expected) }
                    alternatives.append(.init(RestrictionID(String(rid)), isPaused: isPaused))
                }
                streams.append(alternatives)
            }
            switch words[position] {
            case "send" where simulcast.send.isEmpty: simulcast.send = streams
            case "recv" where simulcast.receive.isEmpty: simulcast.receive = streams
            default: throw syntax(expected)
            }
        }
        section?.media.simulcast = simulcast
    }

    /// `rid-id` of RFC 8851.
    private func isRestrictionID(_ text: Substring) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 48...57, 65...90, 97...122, UInt8(ascii: "-"), UInt8(ascii: "_"): true
                default: false
                }
            }
    }
}
