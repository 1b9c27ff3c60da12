/// Cuts messages out of a byte stream, wherever reads end (ICE18).
struct StreamFramer: Sendable {
    enum Format: Sendable {
        /// STUN messages and padded ChannelData (RFC 8656, 12.5).
        case turn
        /// Two bytes of length before each packet (RFC 4571), as ICE over TCP has it (RFC 6544).
        case lengthPrefixed
    }

    /// The stream is out of step: no message begins with these bytes.
    struct OutOfStep: Error, Equatable {
        var first: UInt8
        var second: UInt8
    }

    private let format: Format
    private var buffer: [UInt8] = []
    private var head = 0

    init(_ format: Format) { self.format = format }

    /// Bytes that wait for the rest of their message; at most one message and one read.
    var pending: Int { buffer.count - head }

    mutating func append(_ bytes: [UInt8]) {
        if head == buffer.count {
            buffer = bytes
            head = 0
        } else {
            if head > 0 {
                buffer.removeFirst(head)
                head = 0
            }
            buffer.append(contentsOf: bytes)
        }
    }

    /// The next whole message; nil until more bytes come.
    mutating func next() throws(OutOfStep) -> [UInt8]? {
        guard pending >= (format == .turn ? 4 : 2) else { return nil }
        let first = buffer[head]
        let second = buffer[head + 1]
        let skipped: Int
        let length: Int
        let padding: Int
        switch format {
        case .lengthPrefixed:
            (skipped, length, padding) = (2, Int(first) << 8 | Int(second), 0)
        case .turn:
            let field = Int(buffer[head + 2]) << 8 | Int(buffer[head + 3])
            if first < 0x40 {
                guard field % 4 == 0 else { throw OutOfStep(first: first, second: second) }
                (skipped, length, padding) = (0, STUNMessage.headerLength + field, 0)
            } else if first <= 0x4F {
                (skipped, length, padding) = (0, TURNChannelData.headerLength + field, -field & 3)
            } else {
                throw OutOfStep(first: first, second: second)
            }
        }
        guard pending >= skipped + length + padding else { return nil }
        let message = Array(buffer[(head + skipped)..<(head + skipped + length)])
        head += skipped + length + padding
        return message
    }

    /// A packet framed for a ``Format/lengthPrefixed`` stream; nil if it is too long.
    static func frame(_ packet: [UInt8]) -> [UInt8]? {
        guard packet.count <= 0xFFFF else { return nil }
        return [UInt8(packet.count >> 8), UInt8(packet.count & 0xFF)] + packet
    }
}
