import SoraWire
import Testing

@testable import SoraSecureTransport

/// DTL2: a peer may cut its handshake messages differently when it repeats them.
@Suite struct DTLSRefragmentationTests {
    @Test(arguments: [DTLSPair.Direction.toClient, .toServer])
    func certificateCutDifferentlyWhenRepeatedIsReassembled(_ direction: DTLSPair.Direction) throws {
        let pair = try DTLSPair.make()
        var cutter = FragmentCutter()
        var attempts = 0
        pair.network = { way, _, bytes in
            guard way == direction, let certificate = cutter.certificate(in: bytes) else {
                return [DTLSPair.Delivery(bytes: cutter.renumbered(bytes))]
            }
            attempts += 1
            let cuts = attempts == 1 ? [0..<108, 108..<certificate.count] : [0..<231, 150..<certificate.count]
            let pieces = cuts.map { cutter.fragment(of: certificate, $0) }
            // Of the first sending the second piece is lost, and with it what followed.
            return attempts == 1
                ? [DTLSPair.Delivery(bytes: cutter.before(bytes) + pieces[0])]
                : [DTLSPair.Delivery(bytes: cutter.before(bytes) + pieces[0] + pieces[1] + cutter.after(bytes))]
        }
        pair.start()
        pair.run()
        #expect(pair.agrees)
        #expect(attempts == 2)
    }

    /// Overlapping fragments of eleven bytes, each twice, in random order.
    @Test func certificateInManySmallFragmentsIsReassembled() throws {
        var random = RandomSource(seed: 4)
        let pair = try DTLSPair.make()
        var cutter = FragmentCutter()
        pair.network = { way, _, bytes in
            guard way == .toClient, let certificate = cutter.certificate(in: bytes) else {
                return [DTLSPair.Delivery(bytes: cutter.renumbered(bytes))]
            }
            let before = DTLSPair.Delivery(bytes: cutter.before(bytes))
            let cuts = stride(from: 0, to: certificate.count, by: 7).map { $0..<min($0 + 11, certificate.count) }
            let pieces = (cuts + cuts).shuffled(using: &random).map {
                DTLSPair.Delivery(bytes: cutter.fragment(of: certificate, $0))
            }
            return [before] + pieces
                + [DTLSPair.Delivery(bytes: cutter.after(bytes))]
        }
        pair.start()
        pair.run()
        #expect(pair.agrees)
        #expect(pair.now == .zero + .milliseconds(20))
    }
}

/// Cuts the plain Certificate message of a flight anew. Record numbers are given out afresh, since a
/// record may not be repeated.
private struct FragmentCutter {
    private static let certificateType: UInt8 = 11
    private var nextRecord = 0
    private var messageSequence: [UInt8] = [0, 0]

    /// The body of the unfragmented Certificate in `datagram`.
    mutating func certificate(in datagram: [UInt8]) -> [UInt8]? {
        for record in Self.records(of: datagram) where Self.isCertificate(datagram, record) {
            messageSequence = Array(datagram[(record.lowerBound + 17)..<(record.lowerBound + 19)])
            return Array(datagram[(record.lowerBound + 25)..<record.upperBound])
        }
        return nil
    }

    /// A record with one fragment of a Certificate.
    mutating func fragment(of body: [UInt8], _ range: Range<Int>) -> [UInt8] {
        var writer = ByteWriter()
        writer.write([22, 0xFE, 0xFD, 0, 0])
        writer.write(recordNumber())
        writer.write(UInt16(12 + range.count))
        writer.write(Self.certificateType)
        writer.writeUInt24(UInt32(body.count))
        writer.write(messageSequence)
        writer.writeUInt24(UInt32(range.lowerBound))
        writer.writeUInt24(UInt32(range.count))
        writer.write(body[range])
        return writer.bytes
    }

    mutating func renumbered(_ datagram: [UInt8]) -> [UInt8] { part(datagram) { _, _ in true } }

    /// The records before the Certificate, and those behind it.
    mutating func before(_ datagram: [UInt8]) -> [UInt8] {
        let place = Self.records(of: datagram).firstIndex { Self.isCertificate(datagram, $0) } ?? 0
        return part(datagram) { index, _ in index < place }
    }
    mutating func after(_ datagram: [UInt8]) -> [UInt8] {
        let place = Self.records(of: datagram).firstIndex { Self.isCertificate(datagram, $0) } ?? 0
        return part(datagram) { index, _ in index > place }
    }

    private mutating func part(_ datagram: [UInt8], _ isWanted: (Int, Range<Int>) -> Bool) -> [UInt8] {
        var out: [UInt8] = []
        for (index, range) in Self.records(of: datagram).enumerated() where isWanted(index, range) {
            var record = Array(datagram[range])
            // The number is part of what protects encrypted records, so only plain ones change.
            if record[3] == 0 && record[4] == 0 { record.replaceSubrange(5..<11, with: recordNumber()) }
            out += record
        }
        return out
    }

    private mutating func recordNumber() -> [UInt8] {
        nextRecord += 1
        return [0, 0, 0, 0, UInt8(nextRecord >> 8), UInt8(nextRecord & 0xFF)]
    }

    private static func isCertificate(_ datagram: [UInt8], _ record: Range<Int>) -> Bool {
        datagram[record.lowerBound] == 22 && datagram[record.lowerBound + 4] == 0
            && datagram[record.lowerBound + 13] == certificateType
    }

    private static func records(of datagram: [UInt8]) -> [Range<Int>] {
        var out: [Range<Int>] = []
        var offset = 0
        while offset + 13 <= datagram.count {
            let end = offset + 13 + (Int(datagram[offset + 11]) << 8 | Int(datagram[offset + 12]))
            out.append(offset..<min(end, datagram.count))
            offset = end
        }
        return out
    }
}
