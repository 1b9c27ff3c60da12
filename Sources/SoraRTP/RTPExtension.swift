import SoraWire

/// The RTP header extensions that this project knows, by meaning. Their local identifiers are negotiated (RFC 8285).
package enum RTPExtensionKind: UInt8, CaseIterable, Sendable {
    case mid
    case rid
    case repairedRid
    case audioLevel
    case absoluteSendTime
    case transportSequenceNumber
    case videoOrientation
    case playoutDelay
    case dependencyDescriptor
    case absoluteCaptureTime
    case videoContentType
    case videoTiming
    case transmissionOffset
    case colorSpace

    /// The name in `a=extmap`.
    package var uri: String {
        switch self {
        case .mid: "urn:ietf:params:rtp-hdrext:sdes:mid"
        case .rid: "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"
        case .repairedRid: "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id"
        case .audioLevel: "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
        case .absoluteSendTime: "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
        case .transportSequenceNumber:
            "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
        case .videoOrientation: "urn:3gpp:video-orientation"
        case .playoutDelay: "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay"
        case .dependencyDescriptor:
            "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"
        case .absoluteCaptureTime: "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time"
        case .videoContentType: "http://www.webrtc.org/experiments/rtp-hdrext/video-content-type"
        case .videoTiming: "http://www.webrtc.org/experiments/rtp-hdrext/video-timing"
        case .transmissionOffset: "urn:ietf:params:rtp-hdrext:toffset"
        case .colorSpace: "http://www.webrtc.org/experiments/rtp-hdrext/color-space"
        }
    }

    package init?(uri: String) {
        guard let kind = RTPExtensionKind.allCases.first(where: { $0.uri == uri }) else { return nil }
        self = kind
    }

    /// Whether the value describes the media, so that an SFU passes it on, rather than one hop's transport.
    package var describesMedia: Bool {
        switch self {
        case .mid, .rid, .repairedRid, .absoluteSendTime, .transportSequenceNumber, .transmissionOffset: false
        default: true
        }
    }
}

/// The negotiated local identifiers of one m-line or bundle, both ways round.
package struct RTPExtensionMap: Equatable, Sendable {
    private var idByKind: [UInt8]
    private var kindByID: [UInt8]  // kind's raw value plus one; 0: none

    package init() {
        idByKind = [UInt8](repeating: 0, count: RTPExtensionKind.allCases.count)
        kindByID = [UInt8](repeating: 0, count: 256)
    }

    package init(_ entries: [RTPExtensionKind: UInt8]) {
        self.init()
        for (kind, id) in entries { self[kind] = id }
    }

    /// The local identifier, 1...255, or nil if the extension was not negotiated.
    package subscript(kind: RTPExtensionKind) -> UInt8? {
        get {
            let id = idByKind[Int(kind.rawValue)]
            return id == 0 ? nil : id
        }
        set {
            let old = idByKind[Int(kind.rawValue)]
            if old != 0 { kindByID[Int(old)] = 0 }
            idByKind[Int(kind.rawValue)] = newValue ?? 0
            if let id = newValue, id != 0 { kindByID[Int(id)] = kind.rawValue &+ 1 }
        }
    }

    /// What a local identifier means here.
    package func kind(of id: UInt8) -> RTPExtensionKind? {
        let stored = kindByID[Int(id)]
        return stored == 0 ? nil : RTPExtensionKind(rawValue: stored &- 1)
    }

    package var isEmpty: Bool { idByKind.allSatisfy { $0 == 0 } }
}

/// One header extension element to be written.
package struct RTPExtensionElement: Equatable, Sendable {
    /// Local identifier, 1...255; above 14 the packet uses the two-byte form.
    package var id: UInt8
    /// 0...255 bytes; none or more than 16 makes the packet use the two-byte form.
    package var value: [UInt8]

    package init(id: UInt8, value: [UInt8]) {
        self.id = id
        self.value = value
    }
}

/// Values of the known extensions, to and from their bytes.
package enum RTPExtensionValue {
    /// Text of `mid`, `rid` and `repairedRid` (RFC 7941: UTF-8; these are ASCII tokens). Nil unless ASCII.
    package static func text(_ packet: [UInt8], _ range: Range<Int>) -> String? {
        guard range.lowerBound >= 0, range.upperBound <= packet.count else { return nil }
        let bytes = packet[range]
        guard bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// A `UInt16`: transport-wide sequence number.
    package static func uint16(_ packet: [UInt8], _ range: Range<Int>) -> UInt16? {
        guard range.count >= 2, range.lowerBound >= 0, range.upperBound <= packet.count else { return nil }
        return UInt16(packet[range.lowerBound]) << 8 | UInt16(packet[range.lowerBound + 1])
    }

    /// Three bytes: absolute send time, playout delay.
    package static func uint24(_ packet: [UInt8], _ range: Range<Int>) -> UInt32? {
        guard range.count == 3, range.lowerBound >= 0, range.upperBound <= packet.count else { return nil }
        let i = range.lowerBound
        return UInt32(packet[i]) << 16 | UInt32(packet[i + 1]) << 8 | UInt32(packet[i + 2])
    }

    /// Level in -dBov, 0 (loudest) to 127 (silence), and whether the encoder says it is voice (RFC 6464).
    package static func audioLevel(_ packet: [UInt8], _ range: Range<Int>) -> (level: UInt8, isVoice: Bool)? {
        guard !range.isEmpty, range.lowerBound >= 0, range.upperBound <= packet.count else { return nil }
        let byte = packet[range.lowerBound]
        return (byte & 0x7F, byte & 0x80 != 0)
    }

    /// Clockwise rotation to apply for display, in degrees: 0, 90, 180 or 270 (3GPP TS 26.114, 7.4.5).
    package static func rotation(_ packet: [UInt8], _ range: Range<Int>) -> Int? {
        guard !range.isEmpty, range.lowerBound >= 0, range.upperBound <= packet.count else { return nil }
        return Int(packet[range.lowerBound] & 0x03) * 90
    }

    /// Absolute send time: seconds modulo 64 in 6.18 fixed point.
    package static func absoluteSendTime(_ now: Instant) -> UInt32 {
        let nanoseconds = UInt64(bitPattern: now.nanoseconds) % 64_000_000_000
        return UInt32(truncatingIfNeeded: (nanoseconds << 18) / 1_000_000_000) & 0xFF_FFFF
    }

    package static func bytes(ofText text: String) -> [UInt8] { Array(text.utf8.prefix(255)) }
    package static func bytes(ofAudioLevel level: UInt8, isVoice: Bool) -> [UInt8] {
        [min(level, 127) | (isVoice ? 0x80 : 0)]
    }
    package static func bytes(ofRotation degrees: Int) -> [UInt8] { [UInt8(((degrees / 90) % 4 + 4) % 4)] }
    package static func bytes(ofUInt16 value: UInt16) -> [UInt8] {
        [UInt8(value >> 8), UInt8(truncatingIfNeeded: value)]
    }
    package static func bytes(ofUInt24 value: UInt32) -> [UInt8] {
        [
            UInt8(truncatingIfNeeded: value >> 16), UInt8(truncatingIfNeeded: value >> 8),
            UInt8(truncatingIfNeeded: value),
        ]
    }
    /// Minimum and maximum playout delay in milliseconds, each 0...40,950 in steps of 10.
    package static func bytes(ofPlayoutDelay minimum: Int, _ maximum: Int) -> [UInt8] {
        let low = UInt32(min(max(minimum / 10, 0), 0xFFF))
        let high = UInt32(min(max(maximum / 10, 0), 0xFFF))
        return bytes(ofUInt24: low << 12 | high)
    }
}
