import SoraWire

/// Reads a session description line by line, in one pass over its bytes.
///
/// The parser is total: every text gives a value or an ``SDPError`` that names the line. Work and
/// memory are linear in the text, which is bounded by ``SDPLimits``.
struct SDPParser {
    var session = SessionDescription(sessionID: "", sessionVersion: "")
    /// The section being read; nil before the first `m=`.
    var section: SectionBuilder?
    var sessionICE = ICELines()
    /// Number and text of the line being read, for errors.
    var lineNumber = 0
    var lineText: Substring = ""
    private var seenVersion = false
    private var seenOrigin = false
    private var seenName = false
    private var mids = Set<Mid>()

    /// User name and password come on two lines that belong together.
    struct ICELines {
        var usernameFragment: String?
        var password: String?
    }

    mutating func parse(_ text: String) throws(SDPError) -> SessionDescription {
        guard text.utf8.count <= SDPLimits.size else {
            throw .limitExceeded(what: "bytes", limit: SDPLimits.size, line: 0)
        }
        var native = text
        native.makeContiguousUTF8()
        var rest = Substring(native)
        while !rest.isEmpty {
            lineNumber += 1
            let end = rest.utf8.firstIndex(of: UInt8(ascii: "\n"))
            var line = end.map { rest[..<$0] } ?? rest
            rest = end.map { rest[rest.utf8.index(after: $0)...] } ?? ""
            if line.utf8.last == UInt8(ascii: "\r") { line = Substring(line.utf8.dropLast()) }
            if line.isEmpty {
                // Only line ends may follow an empty line.
                guard rest.utf8.allSatisfy({ $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) else {
                    throw syntax("a line of the form x=value instead of an empty line")
                }
                break
            }
            guard line.utf8.count <= SDPLimits.lineLength else {
                throw .limitExceeded(what: "bytes in one line", limit: SDPLimits.lineLength, line: lineNumber)
            }
            lineText = line
            try parseLine(line)
        }
        try finishSection()
        session.sessionLevel.iceCredentials = try credentials(sessionICE)
        guard seenVersion else { throw .missing(line: "v=0") }
        guard seenOrigin else { throw .missing(line: "o=") }
        guard seenName else { throw .missing(line: "s=") }
        foldSessionLevel()
        return session
    }

    func syntax(_ expected: String) -> SDPError {
        .syntax(line: lineNumber, text: String(decoding: lineText.utf8.prefix(200), as: UTF8.self), expected: expected)
    }

    private mutating func parseLine(_ line: Substring) throws(SDPError) {
        let bytes = line.utf8
        guard bytes.count >= 2, let type = bytes.first, bytes[bytes.index(after: bytes.startIndex)] == UInt8(ascii: "=")
        else { throw syntax("one letter and \"=\"") }
        guard !bytes.contains(where: { $0 == 0 || $0 == UInt8(ascii: "\r") }) else {
            throw syntax("text without NUL and carriage return")
        }
        let value = Substring(bytes.dropFirst(2))
        guard seenVersion || type == UInt8(ascii: "v") else { throw syntax("\"v=0\" as the first line") }
        switch type {
        case UInt8(ascii: "v"):
            guard !seenVersion, value == "0" else { throw syntax("version 0, once") }
            seenVersion = true
        case UInt8(ascii: "o"): try parseOrigin(value)
        case UInt8(ascii: "s"):
            guard section == nil, !seenName else { throw syntax("one session name, before the first m= line") }
            session.name = String(value)
            seenName = true
        case UInt8(ascii: "t"):
            guard section == nil else { throw syntax("times before the first m= line") }
            if session.timing == ["0 0"], !seenTiming { session.timing = [] }
            seenTiming = true
            session.timing.append(String(value))
        case UInt8(ascii: "c"):
            guard value.words.count == 3 else { throw syntax("network type, address type and address") }
            if section != nil {
                section?.connection = String(value)
            } else {
                session.sessionLevel.connection = String(value)
            }
        case UInt8(ascii: "b"): try parseBandwidth(value)
        case UInt8(ascii: "m"):
            try finishSection()
            try startSection(value)
        case UInt8(ascii: "a"): try parseAttributeLine(value)
        case UInt8(ascii: "i"), UInt8(ascii: "u"), UInt8(ascii: "e"), UInt8(ascii: "p"), UInt8(ascii: "r"),
            UInt8(ascii: "z"), UInt8(ascii: "k"):
            if section == nil { session.informationLines.append(String(line)) }
        default: throw syntax("a line type of RFC 8866")
        }
    }

    private var seenTiming = false

    private mutating func parseOrigin(_ value: Substring) throws(SDPError) {
        let words = value.words
        guard section == nil, !seenOrigin, words.count == 6 else {
            throw syntax("user name, session id, version, network type, address type and address, once")
        }
        guard words[1].utf8.allSatisfy({ (48...57).contains($0) }), words[2].utf8.allSatisfy({ (48...57).contains($0) })
        else { throw syntax("a session id and version of digits") }
        seenOrigin = true
        session.username = String(words[0])
        session.sessionID = String(words[1])
        session.sessionVersion = String(words[2])
        session.originAddress = words[3...].joined(separator: " ")
    }

    private mutating func parseBandwidth(_ value: Substring) throws(SDPError) {
        guard let (type, number) = value.splitOnce(":"), isToken(type) else { throw syntax("bandwidth as type:number") }
        if number.utf8.first == UInt8(ascii: "-"), decimal(number.dropFirst(), maximum: .max) != nil {
            return  // A negative limit means nothing; other stacks send it for "no limit".
        }
        guard let limit = decimal(number.trimmingSpaces, maximum: .max) else {
            throw syntax("bandwidth as type:number")
        }
        let bandwidth = BandwidthLimit(type: String(type), value: limit)
        if section != nil {
            section?.media.bandwidths.append(bandwidth)
        } else {
            session.sessionLevel.bandwidths.append(bandwidth)
        }
    }

    private mutating func startSection(_ value: Substring) throws(SDPError) {
        guard session.media.count < SDPLimits.sections else {
            throw .limitExceeded(what: "media sections", limit: SDPLimits.sections, line: lineNumber)
        }
        let words = value.words
        guard words.count >= 4, isToken(words[0]) else { throw syntax("media, port, protocol and formats") }
        // "port/count" is legal SDP; the count means multicast layers and is of no use here.
        let portText = words[1].splitOnce("/").map { $0.0 } ?? words[1]
        guard let port = decimal(portText, maximum: 65_535) else { throw syntax("a port of 0 to 65535") }
        guard words[2].utf8.split(separator: UInt8(ascii: "/")).allSatisfy({ isToken(Substring($0)) }) else {
            throw syntax("a transport protocol")
        }
        var media = MediaDescription(
            kind: MediaKind(String(words[0])), port: UInt16(port), transportProtocol: String(words[2]))
        media.connection = nil
        var builder = SectionBuilder(media: media)
        if media.carriesRTP {
            for word in words[3...] {
                guard let number = decimal(word, maximum: 127) else { throw syntax("payload types of 0 to 127") }
                builder.addPayloadType(PayloadType(UInt8(number)))
            }
        } else {
            builder.media.formats = words[3...].map(String.init)
        }
        if media.transportProtocol == "DTLS/SCTP", words[3] != "webrtc-datachannel" {
            // Before RFC 8841 the format was the SCTP port.
            guard let port = decimal(words[3], maximum: 65_535) else { throw syntax("an SCTP port of 0 to 65535") }
            builder.media.sctpPort = UInt16(port)
        }
        section = builder
    }

    private mutating func finishSection() throws(SDPError) {
        guard var builder = section else { return }
        section = nil
        builder.media.iceCredentials = try credentials(builder.ice)
        if let mid = builder.media.mid, !mids.insert(mid).inserted {
            throw .duplicateMid(mid.rawValue, line: builder.midLine)
        }
        session.media.append(try builder.finished(line: lineNumber))
    }

    private func credentials(_ lines: ICELines) throws(SDPError) -> ICEParameters? {
        switch (lines.usernameFragment, lines.password) {
        case (nil, nil): nil
        case (let usernameFragment?, let password?):
            ICEParameters(usernameFragment: usernameFragment, password: password)
        default: throw syntax("both ice-ufrag and ice-pwd at one level before the next section begins")
        }
    }

    /// Gives each section what stands at session level, where it has nothing of its own.
    private mutating func foldSessionLevel() {
        let common = session.sessionLevel
        for index in session.media.indices {
            if session.media[index].connection == nil { session.media[index].connection = common.connection }
            if session.media[index].iceCredentials == nil {
                session.media[index].iceCredentials = common.iceCredentials
            }
            if session.media[index].iceOptions.isEmpty { session.media[index].iceOptions = common.iceOptions }
            if session.media[index].fingerprints.isEmpty { session.media[index].fingerprints = common.fingerprints }
            if session.media[index].setup == nil { session.media[index].setup = common.setup }
            if session.media[index].carriesRTP, !common.headerExtensions.isEmpty {
                var taken = Set(session.media[index].headerExtensions.map(\.id))
                for item in common.headerExtensions where taken.insert(item.id).inserted {
                    session.media[index].headerExtensions.append(item)
                }
            }
        }
        guard let direction = common.direction else { return }
        for index in session.media.indices where !explicitDirections.contains(index) {
            session.media[index].direction = direction
        }
    }

    /// Sections that state their direction themselves.
    var explicitDirections = Set<Int>()
}
