import SoraWire

extension CodecDescription {
    /// Whether both describe the same codec configuration, so that an answer may keep it: name, clock
    /// rate and channels agree, and the parameters that select a bitstream profile agree. Levels may
    /// differ.
    package func isCompatible(with other: CodecDescription) -> Bool {
        guard isNamed(other.name), clockRate == other.clockRate, (channels ?? 1) == (other.channels ?? 1)
        else { return false }
        switch name.lowercased() {
        case "h264":
            // RFC 6184, 8.2.2.
            let mode = formatParameters["packetization-mode"] ?? "0"
            guard mode == other.formatParameters["packetization-mode"] ?? "0" else { return false }
            guard let mine = H264ProfileLevel(formatParameters), let theirs = H264ProfileLevel(other.formatParameters)
            else { return false }
            return mine.profile == theirs.profile
        case "h265":
            // RFC 7798, 7.2.2: profile, tier and profile space must agree.
            return agrees(other, "profile-space", default: "0") && agrees(other, "profile-id", default: "1")
                && agrees(other, "tier-flag", default: "0") && agrees(other, "tx-mode", default: "SRST")
        case "vp9": return agrees(other, "profile-id", default: "0")
        case "av1": return agrees(other, "profile", default: "0")
        default: return true
        }
    }

    private func agrees(_ other: CodecDescription, _ key: String, default value: String) -> Bool {
        (formatParameters[key] ?? value).lowercased() == (other.formatParameters[key] ?? value).lowercased()
    }
}

/// Profile and level of an H.264 stream, from `profile-level-id` (RFC 6184, 8.1).
package struct H264ProfileLevel: Sendable, Equatable {
    /// Sub-profiles that several pairs of profile and constraint flags mean.
    package enum Profile: Sendable, Equatable {
        case constrainedBaseline, baseline, main, extended, constrainedHigh, high, high10, high422, high444
        case high10Intra, high422Intra, high444Intra, cavlc444Intra
    }
    package var profile: Profile
    package var levelIDC: UInt8

    /// Six hexadecimal digits; nil if malformed or of no known profile.
    package init?(profileLevelID text: String) {
        guard text.utf8.count == 6, text.utf8.allSatisfy(isHexadecimalDigit), let number = UInt32(text, radix: 16)
        else { return nil }
        let flags = UInt8(number >> 8 & 0xFF)
        // The pairs of table 5 in RFC 6184: profile, mask and value of the constraint flags.
        let table: [(idc: UInt32, mask: UInt8, value: UInt8, profile: Profile)] = [
            (0x42, 0x4F, 0x40, .constrainedBaseline), (0x4D, 0x8F, 0x80, .constrainedBaseline),
            (0x58, 0xCF, 0xC0, .constrainedBaseline), (0x42, 0x4F, 0x00, .baseline), (0x58, 0xCF, 0x80, .baseline),
            (0x4D, 0xAF, 0x00, .main), (0x58, 0xCF, 0x00, .extended), (0x64, 0xFF, 0x00, .high),
            (0x64, 0xFF, 0x0C, .constrainedHigh), (0x6E, 0xFF, 0x00, .high10), (0x7A, 0xFF, 0x00, .high422),
            (0xF4, 0xFF, 0x00, .high444), (0x6E, 0xFF, 0x10, .high10Intra), (0x7A, 0xFF, 0x10, .high422Intra),
            (0xF4, 0xFF, 0x10, .high444Intra), (0x2C, 0xFF, 0x10, .cavlc444Intra),
        ]
        guard let row = table.first(where: { $0.idc == number >> 16 && flags & $0.mask == $0.value })
        else { return nil }
        profile = row.profile
        levelIDC = UInt8(number & 0xFF)
    }

    /// Absence of the parameter means Baseline at level 1 (RFC 6184, 8.1).
    package init?(_ parameters: FormatParameters) {
        self.init(profileLevelID: parameters["profile-level-id"] ?? "42000a")
    }
}
