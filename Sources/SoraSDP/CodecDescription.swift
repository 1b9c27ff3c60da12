import SoraWire

/// One payload type of a section: its `rtpmap`, `fmtp` and `rtcp-fb` lines together.
package struct CodecDescription: Sendable, Equatable {
    package var payloadType: PayloadType
    /// Encoding name as written (`opus`, `VP8`, `rtx`); compared without regard to case. Empty for a
    /// dynamic payload type without `rtpmap`.
    package var name: String
    /// Hertz; 0 only together with an empty name.
    package var clockRate: Int
    package var channels: Int?
    package var formatParameters: FormatParameters
    /// Each as in SDP behind the payload type: `nack pli`, `transport-cc`, …
    package var rtcpFeedback: [String]

    package init(
        payloadType: PayloadType, name: String, clockRate: Int, channels: Int? = nil,
        formatParameters: FormatParameters = FormatParameters(), rtcpFeedback: [String] = []
    ) {
        self.payloadType = payloadType
        self.name = name
        self.clockRate = clockRate
        self.channels = channels
        self.formatParameters = formatParameters
        self.rtcpFeedback = rtcpFeedback
    }

    package func isNamed(_ other: String) -> Bool { name.lowercased() == other.lowercased() }

    /// For `rtx`: the payload type whose packets it repeats (RFC 4588, 8.6).
    package var associatedPayloadType: PayloadType? {
        guard isNamed("rtx"), let value = formatParameters["apt"], let number = UInt8(value), number < 128
        else { return nil }
        return PayloadType(number)
    }

    /// Whether this codec carries media itself, rather than repair, redundancy, noise or tones.
    package var isMedia: Bool {
        !["", "rtx", "red", "ulpfec", "flexfec-03", "flexfec", "cn", "telephone-event"].contains(name.lowercased())
    }
}

/// The parameters of an `a=fmtp` line, in order. An entry without `=` has no value.
package struct FormatParameters: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    package var entries: [SDPAttribute]

    package init(_ entries: [SDPAttribute] = []) { self.entries = entries }

    package init(dictionaryLiteral elements: (String, String)...) {
        entries = elements.map { SDPAttribute($0.0, $0.1) }
    }

    /// Reads `key=value;key2=value2`. Never fails: what has no `=` is an entry without value.
    package init(parsing text: Substring) {
        entries = []
        for part in text.utf8.split(separator: UInt8(ascii: ";")) {
            let item = Substring(part).trimmingSpaces
            if item.isEmpty { continue }
            if let equals = item.utf8.firstIndex(of: UInt8(ascii: "=")) {
                entries.append(
                    SDPAttribute(
                        String(item[..<equals].trimmingSpaces),
                        String(item[item.utf8.index(after: equals)...].trimmingSpaces)))
            } else {
                entries.append(SDPAttribute(String(item)))
            }
        }
    }

    package var isEmpty: Bool { entries.isEmpty }

    /// The value of `key`, which is compared without regard to case. Setting nil removes it.
    package subscript(key: String) -> String? {
        get {
            let wanted = key.lowercased()
            return entries.first { $0.name.lowercased() == wanted }?.value
        }
        set {
            let wanted = key.lowercased()
            let index = entries.firstIndex { $0.name.lowercased() == wanted }
            switch (index, newValue) {
            case (let index?, let value?): entries[index].value = value
            case (let index?, nil): entries.remove(at: index)
            case (nil, let value?): entries.append(SDPAttribute(key, value))
            case (nil, nil): break
            }
        }
    }

    /// As in SDP: `key=value;key2=value2`.
    package var text: String {
        entries.map { entry in entry.value.map { "\(entry.name)=\($0)" } ?? entry.name }.joined(separator: ";")
    }
}

extension MediaDescription {
    package func codec(_ payloadType: PayloadType) -> CodecDescription? {
        codecs.first { $0.payloadType == payloadType }
    }

    /// The first codec of this name (case does not matter).
    package func codec(named name: String) -> CodecDescription? {
        codecs.first { $0.isNamed(name) }
    }

    /// The retransmission codec whose `apt` is `payloadType`.
    package func retransmissionCodec(for payloadType: PayloadType) -> CodecDescription? {
        codecs.first { $0.associatedPayloadType == payloadType }
    }

    /// The first codec that carries media: what the describer prefers, and in an answer what is sent.
    package var preferredCodec: CodecDescription? { codecs.first { $0.isMedia } }

    package func headerExtension(_ uri: String) -> HeaderExtensionDescription? {
        headerExtensions.first { $0.uri == uri }
    }
}
