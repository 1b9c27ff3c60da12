/// `audio` or `video` of `connect`: on, off, or on with wishes.
package enum MediaSetting<Wishes: JSONConvertible & Sendable & Equatable>: Sendable, Equatable, JSONConvertible {
    case enabled(Bool)
    case wishes(Wishes)

    package init?(json: JSONValue) {
        if let flag = json.boolValue {
            self = .enabled(flag)
        } else if let wishes = Wishes(json: json) {
            self = .wishes(wishes)
        } else {
            return nil
        }
    }

    package var json: JSONValue {
        switch self {
        case .enabled(let flag): .bool(flag)
        case .wishes(let wishes): wishes.json
        }
    }

    package var isEnabled: Bool { self != .enabled(false) }
    package var wishes: Wishes? { if case .wishes(let wishes) = self { wishes } else { nil } }
}

/// Wishes for audio (signaling specification 1.7). All optional; `extra` keeps what is not known.
package struct AudioWishes: Sendable, Equatable, JSONConvertible {
    /// `OPUS`; historic ones are passed on.
    package var codecType: String?
    /// kbit/s, 6...510.
    package var bitRate: Int?
    package var opusParams: OpusParameters?
    package var extra = JSONObject()

    package init() {}

    package init?(json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        var fields = FieldReader(object)
        codecType = fields.read("codec_type")
        bitRate = fields.read("bit_rate")
        opusParams = fields.read("opus_params")
        guard fields.mistyped.isEmpty else { return nil }
        extra = fields.rest
    }

    package var json: JSONValue {
        var object = JSONObject()
        object.set("codec_type", codecType)
        object.set("bit_rate", bitRate)
        object.set("opus_params", opusParams)
        object.append(missingFrom: extra)
        return .object(object)
    }
}

/// Wishes for the Opus encoder; they come back in the offer's `a=fmtp`.
package struct OpusParameters: Sendable, Equatable, JSONConvertible {
    /// 1...8.
    package var channels: Int?
    /// Hertz, 8000...48000.
    package var maxPlaybackRate: Int?
    /// Milliseconds, 3...120.
    package var minPtime: Int?
    /// Milliseconds.
    package var ptime: Int?
    package var stereo: Bool?
    package var spropStereo: Bool?
    package var useInbandFEC: Bool?
    package var useDTX: Bool?
    /// Hertz.
    package var clockRate: Int?
    package var extra = JSONObject()

    /// Whether all values are ones that the specification allows.
    package var isInRange: Bool {
        func fits(_ value: Int?, _ range: ClosedRange<Int>) -> Bool { value.map(range.contains) ?? true }
        return fits(channels, 1...8) && fits(maxPlaybackRate, 8_000...48_000) && fits(minPtime, 3...120)
            && fits(ptime, 3...120) && fits(clockRate, 8_000...48_000)
    }

    package init() {}

    package init?(json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        var fields = FieldReader(object)
        channels = fields.read("channels")
        maxPlaybackRate = fields.read("maxplaybackrate")
        minPtime = fields.read("minptime")
        ptime = fields.read("ptime")
        stereo = fields.read("stereo")
        spropStereo = fields.read("sprop_stereo")
        useInbandFEC = fields.read("useinbandfec")
        useDTX = fields.read("usedtx")
        clockRate = fields.read("clock_rate")
        guard fields.mistyped.isEmpty else { return nil }
        extra = fields.rest
    }

    package var json: JSONValue {
        var object = JSONObject()
        object.set("channels", channels)
        object.set("maxplaybackrate", maxPlaybackRate)
        object.set("minptime", minPtime)
        object.set("ptime", ptime)
        object.set("stereo", stereo)
        object.set("sprop_stereo", spropStereo)
        object.set("useinbandfec", useInbandFEC)
        object.set("usedtx", useDTX)
        object.set("clock_rate", clockRate)
        object.append(missingFrom: extra)
        return .object(object)
    }
}

/// Wishes for video (signaling specification 1.7). The parameter objects stay JSON: the server
/// honours only some of their keys and hands the rest on.
package struct VideoWishes: Sendable, Equatable, JSONConvertible {
    /// `VP8`, `VP9`, `AV1`, `H264` or `H265`.
    package var codecType: String?
    /// kbit/s, 1...50000.
    package var bitRate: Int?
    /// `profile_id`.
    package var vp9Params: JSONObject?
    /// `profile`.
    package var av1Params: JSONObject?
    /// `profile_level_id`, `b_frame`.
    package var h264Params: JSONObject?
    /// `level_id`, `b_frame`.
    package var h265Params: JSONObject?
    package var extra = JSONObject()

    package init() {}

    package init?(json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        var fields = FieldReader(object)
        codecType = fields.read("codec_type")
        bitRate = fields.read("bit_rate")
        vp9Params = fields.read("vp9_params")
        av1Params = fields.read("av1_params")
        h264Params = fields.read("h264_params")
        h265Params = fields.read("h265_params")
        guard fields.mistyped.isEmpty else { return nil }
        extra = fields.rest
    }

    package var json: JSONValue {
        var object = JSONObject()
        object.set("codec_type", codecType)
        object.set("bit_rate", bitRate)
        object.set("vp9_params", vp9Params)
        object.set("av1_params", av1Params)
        object.set("h264_params", h264Params)
        object.set("h265_params", h265Params)
        object.append(missingFrom: extra)
        return .object(object)
    }
}
