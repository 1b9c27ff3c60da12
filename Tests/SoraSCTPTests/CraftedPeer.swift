import SoraWire

@testable import SoraSCTP

/// An association under test whose peer is the test itself: it writes every packet by hand.
struct CraftedPeer {
    var association: SCTPAssociation
    var now = Instant(nanoseconds: 5_000_000_000)
    let configuration: SCTPConfiguration
    let peerTag: UInt32 = 0x0BAD_CAFE
    /// TSN of the crafted peer's next DATA chunk.
    var nextTSN = TSN(0x1020_3040)
    var events: [SCTPAssociation.Event] = []

    /// Ports and tag of the fixtures in the list of ready-made inputs.
    static var fixtureConfiguration: SCTPConfiguration {
        var configuration = SCTPConfiguration()
        configuration.localPort = 6_002
        configuration.remotePort = 6_001
        return configuration
    }

    init(configuration: SCTPConfiguration = CraftedPeer.fixtureConfiguration, seed: UInt64 = 3) {
        self.configuration = configuration
        association = SCTPAssociation(configuration: configuration, random: RandomSource(seed: seed))
        association.localTag = 0x7A3C_91E5
    }

    /// A packet with these chunks, sealed.
    func packet(tag: UInt32 = 0x7A3C_91E5, _ write: (inout ByteWriter) -> Void) -> [UInt8] {
        var writer = ByteWriter()
        CommonHeader(
            sourcePort: configuration.remotePort, destinationPort: configuration.localPort, verificationTag: tag
        ).write(to: &writer)
        write(&writer)
        CommonHeader.seal(&writer)
        return writer.bytes
    }

    func initChunk(
        features: InitChunk.Features = [.partialReliability, .reconfiguration], window: UInt32 = 1 << 20,
        cookie: [UInt8]? = nil
    ) -> InitChunk {
        InitChunk(
            initiateTag: peerTag, receiverWindow: window, outboundStreams: 1_024, inboundStreams: 1_024,
            initialTSN: nextTSN, features: features, cookie: cookie)
    }

    /// The peer opens; afterwards the association is established.
    mutating func establish(
        features: InitChunk.Features = [.partialReliability, .reconfiguration], window: UInt32 = 1 << 20
    ) {
        let chunk = initChunk(features: features, window: window)
        send(packet(tag: 0) { chunk.write(to: &$0) })
        guard let answer = drain().first,
            let ack = try? InitChunk(
                value: ByteReader(answer, in: 16..<(12 + Int(loadUInt16(answer, 14)))), isAck: true),
            let cookie = ack.cookie
        else { return }
        send(packet { writeChunk(ChunkType.cookieEcho, to: &$0) { $0.write(cookie) } })
        _ = drain()
    }

    mutating func send(_ packet: [UInt8]) {
        association.handle(packet, now: now)
        collect()
    }

    mutating func sendData(
        _ payload: [UInt8], stream: UInt16 = 1, ssn: UInt16 = 0, ppid: UInt32 = 53,
        flags: DataChunk.Flags = [.beginning, .end], tsn: TSN? = nil
    ) {
        let used = tsn ?? nextTSN
        if tsn == nil { nextTSN += 1 }
        send(
            packet {
                DataChunk(flags: flags, tsn: used, stream: stream, ssn: ssn, ppid: ppid)
                    .write(to: &$0, payload: payload, range: 0..<payload.count)
            })
    }

    /// Acknowledges everything up to `tsn`.
    mutating func sendSack(_ tsn: TSN, window: UInt32 = 1 << 20, gaps: [SackChunk.GapBlock] = []) {
        send(
            packet {
                SackChunk.write(cumulative: tsn, receiverWindow: window, gaps: gaps, duplicates: [], to: &$0)
            })
    }

    mutating func advance(_ duration: Duration) {
        let end = now + duration
        while let due = association.nextTimeout, due <= end {
            now = max(now, due)
            association.handleTimeout(now: now)
            collect()
        }
        now = end
    }

    mutating func collect() {
        while let event = association.nextEvent() { events.append(event) }
    }

    mutating func drain() -> [[UInt8]] {
        var packets: [[UInt8]] = []
        while let packet = association.nextPacket() { packets.append(packet) }
        collect()
        return packets
    }

    /// Types and bodies of the chunks in a packet.
    static func chunks(_ packet: [UInt8]) -> [(type: UInt8, flags: UInt8, bytes: [UInt8])] {
        var result: [(type: UInt8, flags: UInt8, bytes: [UInt8])] = []
        var offset = 12
        while offset + 4 <= packet.count {
            let length = Int(loadUInt16(packet, offset + 2))
            guard length >= 4, offset + length <= packet.count else { break }
            result.append((packet[offset], packet[offset + 1], Array(packet[offset..<(offset + length)])))
            offset += (length + 3) & ~3
        }
        return result
    }

    /// The chunks of everything that is to be sent now.
    mutating func sentChunks() -> [(type: UInt8, flags: UInt8, bytes: [UInt8])] {
        drain().flatMap { CraftedPeer.chunks($0) }
    }

    var messages: [IncomingMessage] {
        events.compactMap { if case .message(let message) = $0 { message } else { nil } }
    }
    var ending: SCTPError?? {
        for case .ended(let error) in events { return .some(error) }
        return nil
    }
}

/// `"0a1B"` as bytes.
func hex(_ text: String) -> [UInt8] {
    var bytes: [UInt8] = []
    var high: UInt8?
    for digit in text.utf8 {
        let value: UInt8
        switch digit {
        case 48...57: value = digit - 48
        case 97...102: value = digit - 87
        case 65...70: value = digit - 55
        default: continue
        }
        if let upper = high {
            bytes.append(upper << 4 | value)
            high = nil
        } else {
            high = value
        }
    }
    return bytes
}
