import SoraWire

/// One attribute of a STUN message, without the integrity and fingerprint attributes, which belong to
/// writing and checking a whole message.
///
/// User names, realms and nonces are bytes: they go back, and into keys, exactly as they came.
package enum STUNAttribute: Equatable, Sendable {
    case mappedAddress(SocketAddress)
    case xorMappedAddress(SocketAddress)
    case username([UInt8])
    case errorCode(STUNErrorCode)
    case unknownAttributes([UInt16])
    case realm([UInt8])
    case nonce([UInt8])
    case software([UInt8])
    case alternateServer(SocketAddress)
    case alternateDomain([UInt8])
    /// SHA-256 of user name and realm.
    case userHash([UInt8])
    /// Algorithm numbers in the sender's order; those with parameters or numbers unknown to us stay in.
    case passwordAlgorithms([UInt16])
    case passwordAlgorithm(UInt16)
    // RFC 8445
    case priority(UInt32)
    case useCandidate
    case iceControlled(tieBreaker: UInt64)
    case iceControlling(tieBreaker: UInt64)
    // RFC 8656
    case channelNumber(UInt16)
    /// Seconds.
    case lifetime(UInt32)
    case xorPeerAddress(SocketAddress)
    case data([UInt8])
    case xorRelayedAddress(SocketAddress)
    case requestedAddressFamily(STUNAddressFamily)
    case additionalAddressFamily(STUNAddressFamily)
    case evenPort(reserveNext: Bool)
    /// Protocol number; 17 is UDP.
    case requestedTransport(UInt8)
    case dontFragment
    case reservationToken(UInt64)
    /// Any other type. Below 0x8000 the receiver has to understand it.
    case unknown(type: UInt16, value: [UInt8])

    /// The attribute's number (RFC 8489, 18.3).
    package var type: UInt16 {
        switch self {
        case .mappedAddress: 0x0001
        case .username: 0x0006
        case .errorCode: 0x0009
        case .unknownAttributes: 0x000A
        case .channelNumber: 0x000C
        case .lifetime: 0x000D
        case .xorPeerAddress: 0x0012
        case .data: 0x0013
        case .realm: 0x0014
        case .nonce: 0x0015
        case .xorRelayedAddress: 0x0016
        case .requestedAddressFamily: 0x0017
        case .evenPort: 0x0018
        case .requestedTransport: 0x0019
        case .dontFragment: 0x001A
        case .passwordAlgorithm: 0x001D
        case .userHash: 0x001E
        case .xorMappedAddress: 0x0020
        case .reservationToken: 0x0022
        case .priority: 0x0024
        case .useCandidate: 0x0025
        case .additionalAddressFamily: 0x8000
        case .passwordAlgorithms: 0x8002
        case .alternateDomain: 0x8003
        case .software: 0x8022
        case .alternateServer: 0x8023
        case .iceControlled: 0x8029
        case .iceControlling: 0x802A
        case .unknown(let type, _): type
        }
    }

    /// Numbers of the attributes that close a message.
    static let messageIntegrityType: UInt16 = 0x0008
    static let messageIntegritySHA256Type: UInt16 = 0x001C
    static let fingerprintType: UInt16 = 0x8028
}

// MARK: Reading

extension STUNAttribute {
    /// Reads the value of an attribute; `reader` is bounded to it.
    init(type: UInt16, value: ByteReader, transactionID: STUNTransactionID) throws(STUNError) {
        let length = value.remaining
        var reader = value
        do throws(WireError) {
            if let attribute = try STUNAttribute.read(type, &reader, transactionID), reader.isAtEnd {
                self = attribute
                return
            }
        } catch {}
        throw .malformedAttribute(type: type, length: length)
    }

    /// Nil if a field holds a value that its format forbids.
    private static func read(
        _ type: UInt16, _ reader: inout ByteReader, _ id: STUNTransactionID
    ) throws(WireError) -> STUNAttribute? {
        switch type {
        case 0x0001: return try readAddress(&reader, nil).map { .mappedAddress($0) }
        case 0x0006: return readText(&reader, limit: 513).map { .username($0) }
        case 0x0009: return try readErrorCode(&reader).map { .errorCode($0) }
        case 0x000A, 0x8002: return try readNumbers(type, &reader)
        case 0x000C:
            let number = try reader.readUInt16()
            try reader.skip(2)
            return .channelNumber(number)
        case 0x000D: return .lifetime(try reader.readUInt32())
        case 0x0012: return try readAddress(&reader, id).map { .xorPeerAddress($0) }
        case 0x0013: return .data(reader.readRemaining())
        case 0x0014: return readText(&reader, limit: 763).map { .realm($0) }
        case 0x0015: return readText(&reader, limit: 763).map { .nonce($0) }
        case 0x0016: return try readAddress(&reader, id).map { .xorRelayedAddress($0) }
        case 0x0017: return try readFamily(&reader).map { .requestedAddressFamily($0) }
        case 0x0018: return .evenPort(reserveNext: try reader.readUInt8() & 0x80 != 0)
        case 0x0019:
            let number = try reader.readUInt8()
            try reader.skip(3)
            return .requestedTransport(number)
        case 0x001A: return .dontFragment
        case 0x001D:
            let algorithm = try reader.readUInt16()
            try reader.skip(Int(try reader.readUInt16()))
            return .passwordAlgorithm(algorithm)
        case 0x001E: return .userHash(try reader.readBytes(32))
        case 0x0020: return try readAddress(&reader, id).map { .xorMappedAddress($0) }
        case 0x0022: return .reservationToken(try reader.readUInt64())
        case 0x0024: return .priority(try reader.readUInt32())
        case 0x0025: return .useCandidate
        case 0x8000: return try readFamily(&reader).map { .additionalAddressFamily($0) }
        case 0x8003: return .alternateDomain(reader.readRemaining())
        case 0x8022: return readText(&reader, limit: 763).map { .software($0) }
        case 0x8023: return try readAddress(&reader, nil).map { .alternateServer($0) }
        case 0x8029: return .iceControlled(tieBreaker: try reader.readUInt64())
        case 0x802A: return .iceControlling(tieBreaker: try reader.readUInt64())
        default: return .unknown(type: type, value: reader.readRemaining())
        }
    }

    private static func readText(_ reader: inout ByteReader, limit: Int) -> [UInt8]? {
        reader.remaining <= limit ? reader.readRemaining() : nil
    }

    private static func readFamily(_ reader: inout ByteReader) throws(WireError) -> STUNAddressFamily? {
        let family = STUNAddressFamily(rawValue: try reader.readUInt8())
        try reader.skip(3)
        return family
    }

    private static func readErrorCode(_ reader: inout ByteReader) throws(WireError) -> STUNErrorCode? {
        try reader.skip(2)
        let hundreds = Int(try reader.readUInt8() & 7)
        let rest = Int(try reader.readUInt8())
        let reason = String(decoding: reader.readRemaining(), as: UTF8.self)
        guard (3...6).contains(hundreds), rest < 100, reason.utf8.count <= 763 else { return nil }
        return STUNErrorCode(hundreds * 100 + rest, reason)
    }

    private static func readNumbers(_ type: UInt16, _ reader: inout ByteReader) throws(WireError) -> STUNAttribute {
        var numbers: [UInt16] = []
        if type == 0x000A {
            while !reader.isAtEnd { numbers.append(try reader.readUInt16()) }
            return .unknownAttributes(numbers)
        }
        while !reader.isAtEnd {
            numbers.append(try reader.readUInt16())
            let length = Int(try reader.readUInt16())
            try reader.skip((length + 3) & ~3)
        }
        return .passwordAlgorithms(numbers)
    }

    /// `key` is the transaction for the XOR form, nil for the plain one.
    private static func readAddress(
        _ reader: inout ByteReader, _ key: STUNTransactionID?
    ) throws(WireError) -> SocketAddress? {
        try reader.skip(1)
        let family = try reader.readUInt8()
        let port = try reader.readUInt16() ^ (key == nil ? 0 : UInt16(STUNMessage.magicCookie >> 16))
        switch family {
        case 1:
            let value = try reader.readUInt32() ^ (key == nil ? 0 : STUNMessage.magicCookie)
            return SocketAddress(.v4(value), port: port)
        case 2:
            let mask = xorMask(key)
            let high = try reader.readUInt64() ^ mask.high
            let low = try reader.readUInt64() ^ mask.low
            return SocketAddress(.v6(high: high, low: low, scope: 0), port: port)
        default: return nil
        }
    }

    private static func xorMask(_ key: STUNTransactionID?) -> (high: UInt64, low: UInt64) {
        guard let key else { return (0, 0) }
        return (UInt64(STUNMessage.magicCookie) << 32 | UInt64(key.high), key.low)
    }
}

// MARK: Writing

extension STUNAttribute {
    /// Appends type, length, value and zero padding.
    func write(to writer: inout ByteWriter, transactionID: STUNTransactionID) {
        writer.write(type)
        let lengthOffset = writer.count
        writer.write(UInt16(0))
        writeValue(to: &writer, transactionID)
        writer.patchUInt16(UInt16(truncatingIfNeeded: writer.count - lengthOffset - 2), at: lengthOffset)
        writer.pad(toMultipleOf: 4)
    }

    private func writeValue(to writer: inout ByteWriter, _ id: STUNTransactionID) {
        switch self {
        case .mappedAddress(let address), .alternateServer(let address):
            STUNAttribute.write(address, nil, to: &writer)
        case .xorMappedAddress(let address), .xorPeerAddress(let address), .xorRelayedAddress(let address):
            STUNAttribute.write(address, id, to: &writer)
        case .username(let bytes), .realm(let bytes), .nonce(let bytes), .software(let bytes),
            .alternateDomain(let bytes), .userHash(let bytes), .data(let bytes), .unknown(_, let bytes):
            writer.write(bytes)
        case .errorCode(let error):
            writer.write(UInt16(0))
            writer.write(UInt8(truncatingIfNeeded: error.code / 100))
            writer.write(UInt8(truncatingIfNeeded: error.code % 100))
            writer.write(Array(error.reason.utf8))
        case .unknownAttributes(let numbers):
            for number in numbers { writer.write(number) }
        case .passwordAlgorithms(let numbers):
            for number in numbers { writer.write(UInt32(number) << 16) }
        case .passwordAlgorithm(let number): writer.write(UInt32(number) << 16)
        case .priority(let value), .lifetime(let value): writer.write(value)
        case .useCandidate, .dontFragment: break
        case .iceControlled(let tieBreaker), .iceControlling(let tieBreaker): writer.write(tieBreaker)
        case .reservationToken(let token): writer.write(token)
        case .channelNumber(let number): writer.write(UInt32(number) << 16)
        case .requestedAddressFamily(let family), .additionalAddressFamily(let family):
            writer.write(UInt32(family.rawValue) << 24)
        case .evenPort(let reserveNext): writer.write(UInt8(reserveNext ? 0x80 : 0))
        case .requestedTransport(let number): writer.write(UInt32(number) << 24)
        }
    }

    private static func write(_ address: SocketAddress, _ key: STUNTransactionID?, to writer: inout ByteWriter) {
        writer.write(UInt8(0))
        writer.write(UInt8(address.ip.isV4 ? 1 : 2))
        writer.write(address.port ^ (key == nil ? 0 : UInt16(STUNMessage.magicCookie >> 16)))
        switch address.ip {
        case .v4(let value): writer.write(value ^ (key == nil ? 0 : STUNMessage.magicCookie))
        case .v6(let high, let low, _):
            let mask = xorMask(key)
            writer.write(high ^ mask.high)
            writer.write(low ^ mask.low)
        }
    }
}
