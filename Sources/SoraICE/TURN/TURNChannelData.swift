/// ChannelData messages (RFC 8656, 12.4): four bytes before the application's.
enum TURNChannelData {
    static let headerLength = 4
    /// Channel numbers that clients may bind.
    static let numbers: ClosedRange<UInt16> = 0x4000...0x4FFF

    /// True if a packet from a TURN server begins like ChannelData.
    static func isChannelData(_ packet: [UInt8]) -> Bool {
        packet.count >= headerLength && packet[0] >= 0x40 && packet[0] <= 0x4F
    }

    /// Puts the header before the payload, in place if nobody else holds it and there is room. On a stream it is padded
    /// with zeros to a multiple of four (RFC 8656, 12.5). Nil if the payload is longer than the length field can say.
    static func wrap(_ payload: consuming [UInt8], channel: UInt16, padded: Bool) -> [UInt8]? {
        let count = payload.count
        guard count <= 0xFFFF else { return nil }
        payload.insert(
            contentsOf: [
                UInt8(channel >> 8), UInt8(channel & 0xFF), UInt8(count >> 8), UInt8(count & 0xFF),
            ], at: 0)
        if padded {
            for _ in 0..<(-count & 3) { payload.append(0) }
        }
        return payload
    }

    /// Channel and payload of a whole message, padding or surplus cut off; in place if nobody else holds the packet.
    static func unwrap(_ packet: consuming [UInt8]) -> (channel: UInt16, payload: [UInt8])? {
        guard isChannelData(packet) else { return nil }
        let channel = UInt16(packet[0]) << 8 | UInt16(packet[1])
        let length = Int(packet[2]) << 8 | Int(packet[3])
        guard headerLength + length <= packet.count else { return nil }
        packet.removeLast(packet.count - headerLength - length)
        packet.removeFirst(headerLength)
        return (channel, packet)
    }
}
