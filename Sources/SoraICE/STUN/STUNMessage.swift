import SoraCrypto
import SoraWire

/// A STUN message (RFC 8489): what connectivity checks, server discovery and TURN are made of.
///
/// Parsing checks form only: cookie, lengths, attribute bounds and FINGERPRINT where there is one.
/// Nothing of a parsed message may change any state before ``isAuthentic(_:)`` says that its
/// integrity attribute is right. Attributes behind that attribute are not in ``attributes``
/// (RFC 8489, 14.5).
package struct STUNMessage: Sendable {
    /// Bytes 4 to 7 of each message.
    package static let magicCookie: UInt32 = 0x2112_A442
    static let headerLength = 20
    static let attributeLimit = 64
    private static let fingerprintMask: UInt32 = 0x5354_554E

    package var messageClass: STUNClass
    package var method: STUNMethod
    package var transactionID: STUNTransactionID
    package var attributes: [STUNAttribute]

    /// The bytes that a parsed message came from, and where its integrity attributes begin.
    private var source: [UInt8] = []
    private var integrityOffset: Int?
    private var integritySHA256Offset: Int?
    /// True if the message came with a (right) FINGERPRINT.
    package private(set) var hasFingerprint = false

    package init(
        _ messageClass: STUNClass, _ method: STUNMethod, transactionID: STUNTransactionID,
        attributes: [STUNAttribute] = []
    ) {
        self.messageClass = messageClass
        self.method = method
        self.transactionID = transactionID
        self.attributes = attributes
    }

    /// True if `packet` begins like STUN rather than DTLS, RTP or ChannelData (RFC 7983, 7).
    package static func looksLikeSTUN(_ packet: [UInt8]) -> Bool {
        packet.count >= headerLength && packet[0] < 4 && packet[4] == 0x21 && packet[5] == 0x12
            && packet[6] == 0xA4 && packet[7] == 0x42
    }

    // MARK: Reading

    /// Parses one whole message.
    package init(parsing packet: [UInt8]) throws(STUNError) {
        guard STUNMessage.looksLikeSTUN(packet) else { throw .notSTUN }
        let type = UInt16(packet[0]) << 8 | UInt16(packet[1])
        let length = Int(packet[2]) << 8 | Int(packet[3])
        guard length % 4 == 0, length == packet.count - STUNMessage.headerLength else {
            throw .lengthMismatch(header: length, actual: packet.count - STUNMessage.headerLength)
        }
        messageClass = STUNClass(rawValue: UInt8(type >> 4 & 1 | type >> 7 & 2)) ?? .request
        method = STUNMethod(type & 0xF | type >> 1 & 0x70 | type >> 2 & 0xF80)
        var reader = ByteReader(packet, in: 8..<packet.count)
        do throws(WireError) {
            transactionID = STUNTransactionID(high: try reader.readUInt32(), low: try reader.readUInt64())
        } catch { throw .notSTUN }
        attributes = []
        source = packet
        try readAttributes(&reader)
    }

    private mutating func readAttributes(_ reader: inout ByteReader) throws(STUNError) {
        var count = 0
        while !reader.isAtEnd {
            guard !hasFingerprint else { throw .fingerprintNotLast }
            count += 1
            guard count <= STUNMessage.attributeLimit else {
                throw .tooManyAttributes(limit: STUNMessage.attributeLimit)
            }
            let offset = reader.position
            var type: UInt16 = 0
            var length = 0
            var value: ByteReader
            do throws(WireError) {
                type = try reader.readUInt16()
                length = Int(try reader.readUInt16())
                value = try reader.readSubreader(length)
                try reader.skip(-length & 3)
            } catch {
                throw .attributeOverrun(type: type, length: length, available: reader.remaining)
            }
            switch type {
            case STUNAttribute.fingerprintType:
                try checkFingerprint(&value, at: offset)
            case STUNAttribute.messageIntegrityType:
                guard length == 20 else { throw .malformedAttribute(type: type, length: length) }
                if integrityOffset == nil, integritySHA256Offset == nil { integrityOffset = offset }
            case STUNAttribute.messageIntegritySHA256Type:
                guard (16...32).contains(length), length % 4 == 0 else {
                    throw .malformedAttribute(type: type, length: length)
                }
                if integritySHA256Offset == nil { integritySHA256Offset = offset }
            default:
                guard integrityOffset == nil, integritySHA256Offset == nil else { continue }
                attributes.append(try STUNAttribute(type: type, value: value, transactionID: transactionID))
            }
        }
    }

    private mutating func checkFingerprint(_ value: inout ByteReader, at offset: Int) throws(STUNError) {
        let length = value.remaining
        guard length == 4, let claimed = try? value.readUInt32() else {
            throw .malformedAttribute(type: STUNAttribute.fingerprintType, length: length)
        }
        guard offset + 8 == source.count else { throw .fingerprintNotLast }
        let expected = CRC32.checksum(of: source[..<offset]) ^ STUNMessage.fingerprintMask
        guard claimed == expected else { throw .fingerprintMismatch }
        hasFingerprint = true
    }

    // MARK: Authenticity

    /// Which integrity attribute closes the message, and the key for it.
    package enum Integrity: Sendable {
        /// MESSAGE-INTEGRITY, with an HMAC-SHA-1 key.
        case sha1(HMACKey)
        /// MESSAGE-INTEGRITY-SHA256, with an HMAC-SHA-256 key.
        case sha256(HMACKey)
    }

    /// True if a parsed message carries any integrity attribute.
    package var isSigned: Bool { integrityOffset != nil || integritySHA256Offset != nil }

    /// True if the message carries this kind of integrity attribute and it is right.
    package func isAuthentic(_ integrity: Integrity) -> Bool {
        switch integrity {
        case .sha1(let key): isAuthentic(key, at: integrityOffset)
        case .sha256(let key): isAuthentic(key, at: integritySHA256Offset)
        }
    }

    private func isAuthentic(_ key: HMACKey, at offset: Int?) -> Bool {
        guard let offset, offset + 4 <= source.count else { return false }
        let length = Int(source[offset + 2]) << 8 | Int(source[offset + 3])
        let end = offset + 4 + length
        guard end <= source.count else { return false }
        // The length in the header counts up to and with the integrity attribute (RFC 8489, 14.5).
        let claimedLength = UInt16(truncatingIfNeeded: end - STUNMessage.headerLength)
        var covered = Array(source[..<offset])
        covered[2] = UInt8(claimedLength >> 8)
        covered[3] = UInt8(claimedLength & 0xFF)
        let expected = Array(key.authenticate(covered).prefix(length))
        return expected.count == length && equalInConstantTime(expected, Array(source[(offset + 4)..<end]))
    }

    // MARK: Writing

    /// The message on the wire, closed by an integrity attribute and FINGERPRINT as asked.
    package func serialized(integrity: Integrity? = nil, fingerprint: Bool = false) -> [UInt8] {
        var writer = ByteWriter(capacity: 128)
        let bits = UInt16(messageClass.rawValue)
        let number = method.rawValue
        let type = number & 0xF | (number & 0x70) << 1 | (number & 0xF80) << 2 | (bits & 1) << 4 | (bits & 2) << 7
        writer.write(type)
        writer.write(UInt16(0))
        writer.write(STUNMessage.magicCookie)
        writer.write(transactionID.high)
        writer.write(transactionID.low)
        for attribute in attributes { attribute.write(to: &writer, transactionID: transactionID) }
        switch integrity {
        case .sha1(let key)?:
            close(&writer, type: STUNAttribute.messageIntegrityType, length: 20) { key.authenticate($0) }
        case .sha256(let key)?:
            close(&writer, type: STUNAttribute.messageIntegritySHA256Type, length: 32) { key.authenticate($0) }
        case nil: break
        }
        if fingerprint {
            close(&writer, type: STUNAttribute.fingerprintType, length: 4) { covered in
                var value = ByteWriter(capacity: 4)
                value.write(CRC32.checksum(of: covered) ^ STUNMessage.fingerprintMask)
                return value.bytes
            }
        }
        writer.patchUInt16(UInt16(truncatingIfNeeded: writer.count - STUNMessage.headerLength), at: 2)
        return writer.bytes
    }

    /// Appends an attribute whose value covers what stands before it, with the length field as if it ended the message.
    private func close(_ writer: inout ByteWriter, type: UInt16, length: Int, value: ([UInt8]) -> [UInt8]) {
        let end = writer.count + 4 + length - STUNMessage.headerLength
        writer.patchUInt16(UInt16(truncatingIfNeeded: end), at: 2)
        let result = value(writer.bytes)
        writer.write(type)
        writer.write(UInt16(truncatingIfNeeded: length))
        writer.write(result)
    }
}

extension STUNMessage: Equatable {
    /// Compares what the messages say, not how they were closed.
    package static func == (a: STUNMessage, b: STUNMessage) -> Bool {
        a.messageClass == b.messageClass && a.method == b.method && a.transactionID == b.transactionID
            && a.attributes == b.attributes
    }
}

/// The halves of USERNAME in a Binding request, for a server that shares one socket among peers: `local`
/// is the receiver's user name fragment, `remote` the sender's. Nothing is authenticated by it.
///
/// Nil for everything else, also if the packet is malformed.
package func stunUsername(of packet: [UInt8]) -> (local: String, remote: String)? {
    guard STUNMessage.looksLikeSTUN(packet), packet[0] == 0, packet[1] == 1,
        let message = try? STUNMessage(parsing: packet), let username = message.username
    else { return nil }
    let halves = username.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
    guard halves.count == 2 else { return nil }
    return (String(decoding: halves[0], as: UTF8.self), String(decoding: halves[1], as: UTF8.self))
}
