/// SRTP and SRTCP in one direction: protects what leaves, or opens what arrives (RFC 3711, RFC 7714).
///
/// Invariant: no two packets are protected under one key, SSRC and index, and no packet is accepted
/// twice. One owner uses a context at a time, for one direction, for as long as the keys live: a
/// renegotiation must not replace it, else its counters start anew.
///
/// Packets are changed in place. Reserve ``SRTPProfile/overhead`` (``SRTPProfile/rtcpOverhead``) more
/// bytes of capacity, and hold the only reference, so that nothing is copied. Header extensions and
/// CSRCs are authenticated, not encrypted. There is no MKI.
///
/// Key limits: 2^48 RTP and 2^31 RTCP packets for each SSRC (RFC 3711 9.2), enforced.
package final class SRTPContext {
    package let profile: SRTPProfile
    /// How many SSRCs a receiver remembers; the one idle for longest is forgotten first.
    package let maximumReceivedStreams: Int
    /// How many SSRCs a sender may use under one key. They are never forgotten.
    package static let maximumSentStreams = 16_384

    private let keys: SRTPSessionKeys
    private var rtpSealer: (any PacketCipher)?
    private var rtcpSealer: (any PacketCipher)?
    private var rtpOpener: (any PacketCipher)?
    private var rtcpOpener: (any PacketCipher)?
    private var rtpStreams = SRTPStreamTable()
    private var rtcpStreams = SRTPStreamTable()

    /// - Throws: `invalidKeyLength` if key or salt do not have the profile's lengths.
    package convenience init(
        profile: SRTPProfile, masterKey: [UInt8], masterSalt: [UInt8], maximumReceivedStreams: Int = 1024
    ) throws(SRTPError) {
        self.init(
            profile: profile,
            sessionKeys: try SRTPSessionKeys(profile: profile, masterKey: masterKey, masterSalt: masterSalt),
            maximumReceivedStreams: maximumReceivedStreams)
    }

    /// Starts from keys that were derived already.
    package init(profile: SRTPProfile, sessionKeys: SRTPSessionKeys, maximumReceivedStreams: Int = 1024) {
        self.profile = profile
        self.maximumReceivedStreams = max(maximumReceivedStreams, 4)
        keys = sessionKeys
    }

    /// Number of SSRCs whose counters are kept.
    package var streamCount: Int { rtpStreams.count + rtcpStreams.count }

    // MARK: RTP

    /// Encrypts an RTP packet and appends its tag.
    ///
    /// Packets may come a little out of order. A sequence number that was protected before is refused:
    /// send the first result again, or use RTX.
    package func protect(_ packet: inout [UInt8]) throws(SRTPError) {
        let headerLength = try Self.rtpHeaderLength(packet, trailing: 0)
        let (ssrc, sequence) = (Self.word(packet, at: 8), UInt16(packet[2]) << 8 | UInt16(packet[3]))
        let (stream, isNew) = try sendingStream(ssrc, in: &rtpStreams)
        let index = stream.estimateIndex(of: sequence)
        guard index >> 48 == 0 else { throw .keyExhausted(ssrc: ssrc) }
        try Self.check(index, in: stream)
        if rtpSealer == nil { rtpSealer = try makeCipher(keys.rtp, isEncrypting: true) }

        let length = packet.count
        Self.extend(&packet, by: profile.tagLength)
        try apply(rtpSealer, to: &packet, isSealing: true) { base in
            PacketLayout(
                base: base, headerLength: headerLength, textLength: length - headerLength, tagOffset: length,
                trailerOffset: nil, ssrc: ssrc, index: index)
        }
        stream.window.insert(index)
        if isNew { rtpStreams.insert(stream) }
    }

    /// Authenticates and decrypts an RTP packet and removes its tag.
    ///
    /// A replay is refused before anything is decrypted.
    package func unprotect(_ packet: inout [UInt8]) throws(SRTPError) {
        let headerLength = try Self.rtpHeaderLength(packet, trailing: profile.tagLength)
        let (ssrc, sequence) = (Self.word(packet, at: 8), UInt16(packet[2]) << 8 | UInt16(packet[3]))
        let known = rtpStreams.find(ssrc)
        let stream = known ?? SRTPStream(ssrc: ssrc)
        let index = stream.estimateIndex(of: sequence)
        guard index >> 48 == 0 else { throw .keyExhausted(ssrc: ssrc) }
        try Self.check(index, in: stream)
        if rtpOpener == nil { rtpOpener = try makeCipher(keys.rtp, isEncrypting: false) }

        let length = packet.count - profile.tagLength
        try apply(rtpOpener, to: &packet, isSealing: false) { base in
            PacketLayout(
                base: base, headerLength: headerLength, textLength: length - headerLength, tagOffset: length,
                trailerOffset: nil, ssrc: ssrc, index: index)
        }
        packet.removeLast(profile.tagLength)
        stream.window.insert(index)
        if known == nil {
            rtpStreams.evictIdleStreams(limit: maximumReceivedStreams)
            rtpStreams.insert(stream)
        }
    }

    // MARK: RTCP

    /// Encrypts a compound RTCP packet and appends tag, E flag and index.
    package func protectRTCP(_ packet: inout [UInt8]) throws(SRTPError) {
        try Self.checkRTCPHeader(packet, trailing: 0)
        let ssrc = Self.word(packet, at: 4)
        let (stream, isNew) = try sendingStream(ssrc, in: &rtcpStreams)
        // Counting starts at one: some receivers take zero for "nothing received yet".
        let index = (stream.window.highest ?? 0) + 1
        guard index >> 31 == 0 else { throw .keyExhausted(ssrc: ssrc) }
        if rtcpSealer == nil { rtcpSealer = try makeCipher(keys.rtcp, isEncrypting: true) }

        let length = packet.count
        let (tagOffset, trailerOffset) = rtcpOffsets(textEnd: length)
        Self.extend(&packet, by: profile.rtcpOverhead)
        let trailer = UInt32(truncatingIfNeeded: index) | 0x8000_0000
        for position in 0..<4 {
            packet[trailerOffset + position] = UInt8(truncatingIfNeeded: trailer >> UInt32(24 - 8 * position))
        }
        try apply(rtcpSealer, to: &packet, isSealing: true) { base in
            PacketLayout(
                base: base, headerLength: 8, textLength: length - 8, tagOffset: tagOffset,
                trailerOffset: trailerOffset, ssrc: ssrc, index: index)
        }
        stream.window.insert(index)
        if isNew { rtcpStreams.insert(stream) }
    }

    /// Authenticates and decrypts a compound RTCP packet and removes tag, E flag and index.
    package func unprotectRTCP(_ packet: inout [UInt8]) throws(SRTPError) {
        try Self.checkRTCPHeader(packet, trailing: profile.rtcpOverhead)
        let ssrc = Self.word(packet, at: 4)
        let length = packet.count - profile.rtcpOverhead
        let (tagOffset, trailerOffset) = rtcpOffsets(textEnd: length)
        let trailer = Self.word(packet, at: trailerOffset)
        guard trailer & 0x8000_0000 != 0 else { throw .unencryptedRTCP(ssrc: ssrc) }
        let index = UInt64(trailer & 0x7FFF_FFFF)
        let known = rtcpStreams.find(ssrc)
        let stream = known ?? SRTPStream(ssrc: ssrc)
        try Self.check(index, in: stream)
        if rtcpOpener == nil { rtcpOpener = try makeCipher(keys.rtcp, isEncrypting: false) }

        try apply(rtcpOpener, to: &packet, isSealing: false) { base in
            PacketLayout(
                base: base, headerLength: 8, textLength: length - 8, tagOffset: tagOffset,
                trailerOffset: trailerOffset, ssrc: ssrc, index: index)
        }
        packet.removeLast(profile.rtcpOverhead)
        stream.window.insert(index)
        if known == nil {
            rtcpStreams.evictIdleStreams(limit: maximumReceivedStreams)
            rtcpStreams.insert(stream)
        }
    }

    // MARK: Parts

    private func sendingStream(
        _ ssrc: UInt32, in table: inout SRTPStreamTable
    ) throws(SRTPError) -> (stream: SRTPStream, isNew: Bool) {
        if let stream = table.find(ssrc) { return (stream, false) }
        guard table.count < Self.maximumSentStreams else { throw .tooManyStreams(limit: Self.maximumSentStreams) }
        return (SRTPStream(ssrc: ssrc), true)
    }

    private static func check(_ index: UInt64, in stream: SRTPStream) throws(SRTPError) {
        switch stream.window.check(index) {
        case .new: return
        case .replayed: throw .replayed(ssrc: stream.ssrc, index: index)
        case .tooOld: throw .tooOld(ssrc: stream.ssrc, index: index)
        }
    }

    private func makeCipher(
        _ set: SRTPSessionKeys.KeySet, isEncrypting: Bool
    ) throws(SRTPError) -> any PacketCipher {
        switch profile {
        case .aeadAES128GCM, .aeadAES256GCM:
            try GCMPacketCipher(profile: profile, keys: set, isEncrypting: isEncrypting)
        case .aesCM128HMACSHA1_80:
            try CounterModePacketCipher(profile: profile, keys: set)
        }
    }

    private func apply(
        _ cipher: (any PacketCipher)?, to packet: inout [UInt8], isSealing: Bool,
        _ layout: (UnsafeMutablePointer<UInt8>) -> PacketLayout
    ) throws(SRTPError) {
        guard let cipher else { return }
        try packet.withUnsafeMutableBufferPointer { buffer throws(SRTPError) in
            guard let base = buffer.baseAddress else { return }
            if isSealing { try cipher.seal(layout(base)) } else { try cipher.open(layout(base)) }
        }
    }

    /// RFC 3711 3.4 puts the index before the tag, RFC 7714 9 behind it.
    private func rtcpOffsets(textEnd: Int) -> (tag: Int, trailer: Int) {
        switch profile {
        case .aeadAES128GCM, .aeadAES256GCM: (textEnd, textEnd + profile.tagLength)
        case .aesCM128HMACSHA1_80: (textEnd + 4, textEnd)
        }
    }

    private static func extend(_ packet: inout [UInt8], by count: Int) {
        packet.reserveCapacity(packet.count + count)
        for _ in 0..<count { packet.append(0) }
    }

    /// The length of fixed header, CSRCs and extension, all inside the packet without its tag.
    private static func rtpHeaderLength(_ packet: [UInt8], trailing: Int) throws(SRTPError) -> Int {
        let available = packet.count - trailing
        guard available >= 12 else { throw .truncated(length: packet.count, minimum: 12 + trailing) }
        guard packet[0] >> 6 == 2 else { throw .unsupportedVersion(packet[0] >> 6) }
        var length = 12 + 4 * Int(packet[0] & 0x0F)
        if packet[0] & 0x10 != 0 {
            guard available >= length + 4 else {
                throw .truncated(length: packet.count, minimum: length + 4 + trailing)
            }
            length += 4 + 4 * (Int(packet[length + 2]) << 8 | Int(packet[length + 3]))
        }
        guard available >= length else { throw .truncated(length: packet.count, minimum: length + trailing) }
        return length
    }

    private static func checkRTCPHeader(_ packet: [UInt8], trailing: Int) throws(SRTPError) {
        guard packet.count >= 8 + trailing else { throw .truncated(length: packet.count, minimum: 8 + trailing) }
        guard packet[0] >> 6 == 2 else { throw .unsupportedVersion(packet[0] >> 6) }
    }

    private static func word(_ bytes: [UInt8], at offset: Int) -> UInt32 {
        UInt32(bytes[offset]) << 24 | UInt32(bytes[offset + 1]) << 16 | UInt32(bytes[offset + 2]) << 8
            | UInt32(bytes[offset + 3])
    }
}
