import SoraCrypto
import SoraWire
import Testing

@testable import SoraICE

@Suite struct STUNMessageTests {
    static let key = HMACKey(.sha1, key: Array("q7Rt2LmN8pVc4KsD1yHb6JfG".utf8))
    static let key256 = HMACKey(.sha256, key: Array("secret".utf8))

    /// Every attribute that exists.
    static let attributes: [STUNAttribute] = [
        .mappedAddress(SocketAddress(.v4(0xC000_0201), port: 1)),
        .xorMappedAddress(SocketAddress(.v6(high: 0x2001_0DB8_0000_0000, low: 7, scope: 0), port: 65_535)),
        .username(Array("a:b".utf8)), .errorCode(STUNErrorCode(487, "Role Conflict")),
        .unknownAttributes([0x1234, 0x7FFF, 0x11]), .realm(Array("example.org".utf8)), .nonce([1, 2, 3, 0xFF]),
        .software(Array("sora".utf8)), .alternateServer(SocketAddress(.v4(0x0A00_0001), port: 3478)),
        .alternateDomain(Array("relay.example".utf8)), .userHash(Array(repeating: 7, count: 32)),
        .passwordAlgorithms([2, 1]), .passwordAlgorithm(2), .priority(0xFFFF_FFFF), .useCandidate,
        .iceControlled(tieBreaker: 1), .iceControlling(tieBreaker: .max), .channelNumber(0x4001), .lifetime(600),
        .xorPeerAddress(SocketAddress(.v4(0xC000_0202), port: 5)), .data([9]),
        .xorRelayedAddress(SocketAddress(.v4(0xC000_0203), port: 6)), .requestedAddressFamily(.ipv6),
        .additionalAddressFamily(.ipv4), .evenPort(reserveNext: true), .requestedTransport(17), .dontFragment,
        .reservationToken(0x0102_0304_0506_0708), .unknown(type: 0x4321, value: [1, 2, 3]),
        .unknown(type: 0xC001, value: []),
    ]

    static func sample(_ messageClass: STUNClass = .request, _ method: STUNMethod = .allocate) -> STUNMessage {
        STUNMessage(
            messageClass, method, transactionID: STUNTransactionID(high: 1, low: 2), attributes: attributes)
    }

    @Test func everyAttributeSurvivesWritingAndParsing() throws {
        let message = Self.sample()
        let parsed = try STUNMessage(parsing: message.serialized())
        #expect(parsed == message)
        #expect(!parsed.isSigned)
        #expect(!parsed.hasFingerprint)
        #expect(parsed.unknownRequired == [0x4321])
    }

    @Test(arguments: [STUNClass.request, .indication, .success, .error])
    func everyClassAndMethodSurvives(_ messageClass: STUNClass) throws {
        for number in [UInt16](stride(from: 0, through: 0xFF, by: 5)) {
            let message = STUNMessage(
                messageClass, STUNMethod(number), transactionID: STUNTransactionID(high: 5, low: 6))
            let parsed = try STUNMessage(parsing: message.serialized(fingerprint: true))
            #expect(parsed == message)
        }
    }

    @Test func bothIntegrityAttributesVerify() throws {
        let sha1 = try STUNMessage(parsing: Self.sample().serialized(integrity: .sha1(Self.key), fingerprint: true))
        #expect(sha1.isAuthentic(.sha1(Self.key)))
        #expect(!sha1.isAuthentic(.sha1(HMACKey(.sha1, key: [1]))))
        #expect(!sha1.isAuthentic(.sha256(Self.key256)))
        let sha256 = try STUNMessage(parsing: Self.sample().serialized(integrity: .sha256(Self.key256)))
        #expect(sha256.isAuthentic(.sha256(Self.key256)))
        #expect(!sha256.isAuthentic(.sha1(Self.key)))
    }

    // ICE3
    @Test func cutAtEveryLengthIsAnError() {
        let packet = Self.sample().serialized(integrity: .sha1(Self.key), fingerprint: true)
        for length in 0..<packet.count {
            #expect(throws: STUNError.self) { try STUNMessage(parsing: Array(packet[..<length])) }
        }
        #expect(throws: STUNError.self) { try STUNMessage(parsing: packet + [0]) }
        #expect(throws: STUNError.self) { try STUNMessage(parsing: packet + [0, 0, 0, 0]) }
    }

    @Test func noChangedByteIsAuthentic() {
        let packet = STUNMessage(
            .request, .binding, transactionID: STUNTransactionID(high: 3, low: 4),
            attributes: [.username(Array("ab:cd".utf8)), .priority(7), .iceControlling(tieBreaker: 9)]
        ).serialized(integrity: .sha1(Self.key))
        for index in packet.indices {
            for flip: UInt8 in [1, 0x80, 0xFF] {
                var changed = packet
                changed[index] ^= flip
                guard let message = try? STUNMessage(parsing: changed) else { continue }
                #expect(!message.isAuthentic(.sha1(Self.key)), "byte \(index)")
            }
        }
    }

    @Test func everyChangedByteBreaksTheFingerprint() {
        let packet = STUNMessage(
            .indication, .binding, transactionID: STUNTransactionID(high: 3, low: 4),
            attributes: [.software([1, 2, 3, 4])]
        ).serialized(fingerprint: true)
        for index in packet.indices {
            var changed = packet
            changed[index] ^= 0x10
            // A change of the FINGERPRINT's own type or length leaves a message without one, or none.
            if let message = try? STUNMessage(parsing: changed) { #expect(!message.hasFingerprint) }
        }
    }

    @Test func everyLengthFieldAtItsExtremesIsHandled() {
        let packet = Self.sample().serialized()
        var offset = 20
        while offset < packet.count {
            let length = Int(packet[offset + 2]) << 8 | Int(packet[offset + 3])
            for value in [0, 1, length + 1, packet.count - offset - 3, 0xFFFF] {
                var changed = packet
                changed[offset + 2] = UInt8(value >> 8 & 0xFF)
                changed[offset + 3] = UInt8(value & 0xFF)
                _ = try? STUNMessage(parsing: changed)
            }
            offset += 4 + (length + 3) & ~3
        }
        #expect(offset == packet.count)
    }

    @Test func randomBytesNeverTrap() throws {
        var random = RandomSource(seed: 1)
        let base = Self.sample().serialized(integrity: .sha1(Self.key), fingerprint: true)
        for _ in 0..<3_000 {
            var packet = base
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                packet[Int.random(in: 20..<packet.count, using: &random)] = UInt8(truncatingIfNeeded: random.next())
            }
            if let message = try? STUNMessage(parsing: packet) {
                #expect(try STUNMessage(parsing: message.serialized()) == message)
            }
            var noise = random.bytes(Int.random(in: 0...120, using: &random))
            if noise.count >= 20 {
                noise.replaceSubrange(0..<8, with: [0, 1, 0, UInt8(noise.count - 20), 0x21, 0x12, 0xA4, 0x42])
            }
            _ = try? STUNMessage(parsing: noise)
            _ = stunUsername(of: noise)
        }
    }

    @Test func moreAttributesThanAnyMessageHasAreRefused() {
        let message = STUNMessage(
            .request, .binding, transactionID: STUNTransactionID(high: 3, low: 4),
            attributes: Array(repeating: .useCandidate, count: 65))
        #expect(throws: STUNError.tooManyAttributes(limit: 64)) { try STUNMessage(parsing: message.serialized()) }
    }

    @Test func attributesBehindIntegrityAreIgnored() throws {
        // ICE14
        var packet = STUNMessage(.request, .binding, transactionID: STUNTransactionID(high: 3, low: 4))
            .serialized(integrity: .sha1(Self.key))
        packet += [0, 0x25, 0, 0, 0, 0x24, 0, 1, 0, 0, 0, 0]  // USE-CANDIDATE, and a PRIORITY of one byte
        packet[3] += 12
        let message = try STUNMessage(parsing: packet)
        #expect(message.attributes.isEmpty)
        #expect(message.isAuthentic(.sha1(Self.key)))
    }

    @Test func aShortenedSHA256IntegrityVerifiesAndATooShortOneIsRefused() throws {
        let full = STUNMessage(.request, .binding, transactionID: STUNTransactionID(high: 3, low: 4))
        // The sum covers the length with the shortened attribute.
        func shortened(to length: Int) -> [UInt8] {
            var covered = full.serialized()
            covered[3] = UInt8(4 + length)
            let sum = Self.key256.authenticate(covered)
            return covered + [0, 0x1C, 0, UInt8(length)] + sum.prefix(length)
        }
        for length in [16, 20, 24, 28, 32] {
            #expect(try STUNMessage(parsing: shortened(to: length)).isAuthentic(.sha256(Self.key256)))
        }
        #expect(throws: STUNError.self) { try STUNMessage(parsing: shortened(to: 12)) }
    }
}
