import SoraWire

/// A media section while its lines are read. Keeps indexes, so that no line makes the parser search.
struct SectionBuilder {
    var media: MediaDescription
    var connection: String? {
        get { media.connection }
        set { media.connection = newValue }
    }
    var ice = SDPParser.ICELines()
    var midLine = 0
    /// Position in ``MediaDescription/codecs`` by payload type.
    private var codecIndex = [Int?](repeating: nil, count: 128)
    private var ssrcIndex: [SSRC: Int] = [:]
    private var wildcardFeedback: [String] = []
    var rids = Set<RestrictionID>()
    var extensionIDs = Set<UInt8>()

    init(media: MediaDescription) { self.media = media }

    mutating func addPayloadType(_ payloadType: PayloadType) {
        guard codecIndex[Int(payloadType.rawValue)] == nil else { return }
        codecIndex[Int(payloadType.rawValue)] = media.codecs.count
        // Static assignments (RFC 3551, 6) need no rtpmap.
        let (name, clockRate): (String, Int) =
            switch payloadType.rawValue {
            case 0: ("PCMU", 8_000)
            case 8: ("PCMA", 8_000)
            case 9: ("G722", 8_000)
            case 13: ("CN", 8_000)
            default: ("", 0)
            }
        media.codecs.append(CodecDescription(payloadType: payloadType, name: name, clockRate: clockRate))
    }

    /// Changes the codec of `payloadType`; a payload type that the m-line does not list is ignored.
    mutating func updateCodec(_ payloadType: UInt8, _ change: (inout CodecDescription) -> Void) {
        guard payloadType < 128, let index = codecIndex[Int(payloadType)] else { return }
        change(&media.codecs[index])
    }

    mutating func addSSRCAttribute(_ ssrc: SSRC, _ attribute: SDPAttribute) {
        if let index = ssrcIndex[ssrc] {
            media.ssrcs[index].attributes.append(attribute)
        } else {
            ssrcIndex[ssrc] = media.ssrcs.count
            media.ssrcs.append(SSRCDescription(ssrc: ssrc, attributes: [attribute]))
        }
    }

    /// False when there are too many.
    mutating func addWildcardFeedback(_ feedback: String) -> Bool {
        wildcardFeedback.append(feedback)
        return wildcardFeedback.count <= SDPLimits.wildcardFeedback
    }

    /// The section with its wildcard feedback added to each codec.
    func finished(line: Int) throws(SDPError) -> MediaDescription {
        guard !wildcardFeedback.isEmpty else { return media }
        var result = media
        for index in result.codecs.indices {
            var seen = Set(result.codecs[index].rtcpFeedback)
            for feedback in wildcardFeedback where seen.insert(feedback).inserted {
                result.codecs[index].rtcpFeedback.append(feedback)
            }
        }
        return result
    }
}
