import SoraWire

// The grammar of RFC 8839, 5.1 and RFC 6544, 4.5.
extension ICECandidate {
    /// Longest line that is looked at.
    static let maximumLineLength = 1_024

    /// The line as SDP and `candidate` messages carry it: `candidate:…`, without `a=`.
    package var attributeValue: String {
        var text = "candidate:\(foundation) \(component) \(transport.rawValue) \(priority) "
        text += ICECandidate.words(of: address) + " typ \(type.rawValue)"
        if let relatedAddress {
            switch relatedAddress {
            case .ip(let address): text += " raddr \(address.ip) rport \(address.port)"
            case .name(let name, let port): text += " raddr \(name) rport \(port)"
            }
        }
        if let tcpType { text += " tcptype \(tcpType.rawValue)" }
        if let usernameFragment { text += " ufrag \(usernameFragment)" }
        return text
    }

    private static func words(of address: CandidateAddress) -> String {
        switch address {
        case .ip(let address): "\(address.ip) \(address.port)"
        case .name(let name, let port): "\(name) \(port)"
        }
    }

    /// Parses `candidate:…`, with or without `a=` before it and a line end behind it.
    ///
    /// Extension attributes that are not known are skipped, as the RFC asks.
    package init(parsing attributeValue: String) throws(ICEError) {
        var parser = try Parser(attributeValue)
        self = try parser.candidate()
    }

    /// Takes the words of a line one by one, each by its own rule.
    private struct Parser {
        let line: String
        /// Separated by exactly one space each; an empty word is one that is missing.
        var words: ArraySlice<Substring>

        init(_ text: String) throws(ICEError) {
            var body = Substring(text)
            while let last = body.utf8.last, last == 13 || last == 10 {
                body = Substring(body.unicodeScalars.dropLast())
            }
            if body.hasPrefix("a=") { body = body.dropFirst(2) }
            line = String(body.prefix(200))
            guard body.utf8.count <= ICECandidate.maximumLineLength else {
                throw .malformedCandidate(line: line, field: "length")
            }
            guard body.hasPrefix("candidate:") else { throw .malformedCandidate(line: line, field: "candidate:") }
            words = body.dropFirst("candidate:".count).split(separator: " ", omittingEmptySubsequences: false)[...]
            // A trailing space is harmless and common.
            if words.count > 8, words.last?.isEmpty == true { words.removeLast() }
        }

        func malformed(_ field: String) -> ICEError { .malformedCandidate(line: line, field: field) }

        mutating func word(_ field: String) throws(ICEError) -> Substring {
            guard let word = words.popFirst(), !word.isEmpty,
                word.utf8.allSatisfy({ $0 > 32 && $0 != 127 })
            else { throw malformed(field) }
            return word
        }

        /// Digits only, at most `digits` of them, within `range`.
        mutating func number(_ field: String, digits: Int, _ range: ClosedRange<UInt64>) throws(ICEError) -> UInt64 {
            let word = try word(field)
            guard word.utf8.count <= digits, word.utf8.allSatisfy({ (48...57).contains($0) }),
                let value = UInt64(word), range.contains(value)
            else { throw malformed(field) }
            return value
        }

        mutating func keyword(_ expected: String) throws(ICEError) {
            guard try word(expected) == expected else { throw malformed(expected) }
        }

        mutating func host(_ field: String) throws(ICEError) -> CandidateAddress {
            let word = try word(field)
            if let ip = IPAddress(word) { return .ip(SocketAddress(ip, port: 0)) }
            guard word.utf8.count <= 255, !word.contains(":"),
                word.utf8.allSatisfy({
                    (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0)
                        || [45, 46, 95].contains($0)
                }), word.utf8.contains(where: { !(48...57).contains($0) && $0 != 46 })
            else { throw malformed(field) }
            return .name(String(word), port: 0)
        }

        mutating func candidate() throws(ICEError) -> ICECandidate {
            let foundation = try word("foundation")
            guard foundation.utf8.count <= 32, foundation.utf8.allSatisfy(ICECredentials.isICECharacter) else {
                throw malformed("foundation")
            }
            let component = try number("component", digits: 3, 1...256)
            let transportWord = try word("transport")
            let priority = try number("priority", digits: 10, 0...UInt64(UInt32.max))
            var address = try host("address")
            address = ICECandidate.with(address, port: UInt16(try number("port", digits: 5, 0...65_535)))
            try keyword("typ")
            let typeWord = try word("type")
            guard let type = ICECandidateType(rawValue: String(typeWord)) else { throw malformed("type") }
            guard let transport = ICETransport(rawValue: transportWord.lowercased()) else {
                throw ICEError.unsupportedCandidate(line: line, reason: "transport \(transportWord)")
            }
            var candidate = ICECandidate(
                foundation: String(foundation), component: Int(component), transport: transport,
                priority: UInt32(priority), address: address, type: type)
            try extensions(of: &candidate)
            if transport == .tcp, candidate.tcpType == nil { throw malformed("tcptype") }
            return candidate
        }

        mutating func extensions(of candidate: inout ICECandidate) throws(ICEError) {
            while !words.isEmpty {
                switch try word("extension name") {
                case "raddr":
                    let host = try host("raddr")
                    try keyword("rport")
                    let port = UInt16(try number("rport", digits: 5, 0...65_535))
                    candidate.relatedAddress = ICECandidate.with(host, port: port)
                case "tcptype":
                    guard let type = ICETCPType(rawValue: String(try word("tcptype"))) else {
                        throw malformed("tcptype")
                    }
                    if candidate.transport == .tcp { candidate.tcpType = type }
                case "ufrag":
                    let fragment = try word("ufrag")
                    guard fragment.utf8.count <= 256, fragment.utf8.allSatisfy(ICECredentials.isICECharacter) else {
                        throw malformed("ufrag")
                    }
                    candidate.usernameFragment = String(fragment)
                default:
                    _ = try word("extension value")
                }
            }
        }
    }

    private static func with(_ address: CandidateAddress, port: UInt16) -> CandidateAddress {
        switch address {
        case .ip(let address): .ip(SocketAddress(address.ip, port: port))
        case .name(let name, _): .name(name, port: port)
        }
    }
}
