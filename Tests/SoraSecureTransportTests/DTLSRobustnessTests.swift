import CDtlsTestClock
import COpenSSL
import SoraWire
import Testing

@testable import SoraSecureTransport

@Suite struct DTLSRobustnessTests {
    /// DTL1: records of a flight are packed up to the limit, and none goes past it.
    @Test func datagramsAreFullAndNeverAboveTheLimit() throws {
        for certificate in [TestCertificates.first, TestCertificates.rsa, try longChain()] {
            for limit in [256, 300, 548, 1200, 1400] {
                let pair = try DTLSPair.make(
                    clientCertificate: certificate, serverCertificate: certificate, maximumDatagramSize: limit)
                pair.start()
                pair.run()
                #expect(pair.agrees, "limit \(limit)")
                #expect(pair.sent.allSatisfy { $0.bytes.count <= limit }, "limit \(limit)")
                // A flight is sent at one instant; only its last datagram may have much room left.
                for direction in [DTLSPair.Direction.toServer, .toClient] {
                    let flights = Dictionary(grouping: pair.sent.filter { $0.direction == direction }) { $0.time }
                    for flight in flights.values {
                        let bytes = flight.reduce(0) { $0 + $1.bytes.count }
                        let fewest = (bytes + limit - 1) / limit
                        #expect(
                            flight.count <= fewest + bytes / limit / 4 + 1,
                            "limit \(limit): \(flight.map(\.bytes.count))")
                    }
                }
            }
        }
    }

    @Test func lostDatagramOfALongFlightIsRepairedWithinTheLimit() throws {
        let certificate = try longChain()
        for lost in 0..<6 {
            let pair = try DTLSPair.make(clientCertificate: certificate, serverCertificate: certificate)
            pair.network = { way, index, bytes in
                way == .toClient && index == lost ? [] : [DTLSPair.Delivery(bytes: bytes)]
            }
            pair.start()
            pair.run()
            #expect(pair.agrees, "lost \(lost)")
            #expect(pair.sent.allSatisfy { $0.bytes.count <= 1200 })
        }
    }

    /// DTL3: the server has finished, its last flight is lost, and the client's repetition brings it again.
    @Test func finishedServerRepeatsItsLastFlight() throws {
        let pair = try DTLSPair.make()
        pair.network = { way, index, bytes in
            way == .toClient && (1...3).contains(index) ? [] : [DTLSPair.Delivery(bytes: bytes)]
        }
        pair.start()
        pair.run()
        #expect(pair.agrees)
        #expect(pair.sentTimes(.toServer).contains(60))  // 10 ms of round trip, then 50 ms
    }

    /// SAF2
    @Test func tenThousandGarbageDatagramsChangeNothing() throws {
        var random = RandomSource(seed: 21)
        let pair = try DTLSPair.make()
        func garbage() -> [UInt8] {
            var bytes = TestPackets.bytes(Int.random(in: 1...200, using: &random), &random)
            bytes[0] = UInt8.random(in: 20...63, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0 where bytes.count > 20:  // a record header that fits
                bytes[1] = 0xFE
                bytes[2] = 0xFD
                bytes[3] = 0
                bytes[4] = UInt8.random(in: 1...3, using: &random)
                bytes[11] = 0
                bytes[12] = UInt8(truncatingIfNeeded: bytes.count - 13)
            case 1 where bytes.count > 20:  // plain records of types that have no business here
                bytes[0] = [21, 23, 24, 25, 63].randomElement(using: &random) ?? 21
                bytes[1] = 0xFE
                bytes[2] = 0xFD
                bytes[3] = 0
                bytes[4] = 0
                bytes[11] = 0
                bytes[12] = UInt8(truncatingIfNeeded: bytes.count - 13)
            default: break
            }
            return bytes
        }
        for _ in 0..<2000 { pair.inject(garbage(), .toServer) }
        pair.start()
        for _ in 0..<3000 {
            pair.inject(garbage(), .toServer)
            pair.inject(garbage(), .toClient)
        }
        pair.run()
        #expect(pair.agrees)
        for _ in 0..<3000 {
            pair.inject(garbage(), .toServer)
            pair.inject(garbage(), .toClient)
        }
        #expect(pair.sent.count < 12)
        try pair.turn { try pair.client.send([1]) }
        try pair.turn { try pair.server.send([2]) }
        pair.run()
        #expect(pair.serverData == [[1]] && pair.clientData == [[2]])
        #expect(pair.clientOutputs.count == 2 && pair.serverOutputs.count == 2)
    }

    /// DTL6
    @Test func oversizedDatagramIsDropped() throws {
        let pair = try DTLSPair.make()
        pair.start()
        for size in [20_000, 65_507] {
            var large = [UInt8](repeating: 0, count: size)
            large.replaceSubrange(0..<13, with: [22, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0x4E, 0x13])
            pair.inject(large, .toServer)
            pair.inject(large, .toClient)
        }
        pair.run()
        #expect(pair.agrees)
    }

    @Test func replayedRecordsAreDeliveredOnce() throws {
        let pair = try DTLSPair.make()
        pair.start()
        pair.run()
        let handshake = pair.sent
        try pair.turn { try pair.client.send([1, 2, 3]) }
        let record = try #require(pair.sent.last?.bytes)
        pair.run()
        for _ in 0..<100 { pair.inject(record, .toServer) }
        for datagram in handshake { pair.inject(datagram.bytes, datagram.direction) }
        pair.run()
        #expect(pair.serverData == [[1, 2, 3]])
        #expect(pair.clientOutputs.count == 1 && pair.serverOutputs.count == 2)
    }

    @Test func damagedAndCutRecordsAreDropped() throws {
        let pair = try DTLSPair.make()
        pair.start()
        pair.run()
        pair.network = { _, _, _ in [] }
        try pair.turn { try pair.client.send([1, 2, 3]) }
        let record = try #require(pair.sent.last?.bytes)
        for position in record.indices {
            var damaged = record
            damaged[position] ^= 0x01
            pair.inject(damaged, .toServer)
            pair.inject(Array(record.prefix(position)), .toServer)
        }
        #expect(pair.serverData.isEmpty)
        pair.inject(record + [9, 9, 9], .toServer)
        #expect(pair.serverData == [[1, 2, 3]])
        #expect(pair.serverOutputs.count == 2)
    }

    /// SAF2: a plain alert may be anyone's, and must not end a handshake that goes on or a session.
    @Test func forgedPlainAlertsEndNothing() throws {
        let alert: [UInt8] = [21, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 5, 0, 2, 2, 40]
        let pair = try DTLSPair.make()
        pair.inject(alert, .toServer)
        pair.start()
        pair.inject(alert, .toServer)
        pair.inject(alert, .toClient)
        pair.run()
        #expect(pair.agrees)
        pair.inject(alert, .toServer)
        pair.inject(alert, .toClient)
        pair.run()
        try pair.turn { try pair.client.send([1]) }
        pair.run()
        #expect(pair.serverData == [[1]])
    }

    @Test func plainAlertWithoutProgressFailsAfterASecond() throws {
        let pair = try DTLSPair.make()
        pair.network = { _, _, _ in [] }
        pair.start()
        pair.inject([21, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 5, 0, 2, 2, 40], .toClient)
        pair.run(for: .milliseconds(998))
        #expect(pair.clientOutputs.isEmpty)
        pair.run(for: .seconds(1))
        #expect(pair.now == .zero + .seconds(1))
        guard case .failed(.peerAlert(code: 40, _)) = pair.clientOutputs.first else {
            Issue.record("\(pair.clientOutputs)")
            return
        }
        #expect(pair.client.nextTimeout == nil)
    }

    /// DTL5 below the pair check: another ClientHello does not disturb an association.
    @Test func laterClientHelloIsIgnored() throws {
        let pair = try DTLSPair.make()
        pair.start()
        pair.run()
        let other = try DTLSPair.make(clientCertificate: TestCertificates.third)
        other.start()
        let hello = try #require(other.sent.first?.bytes)
        let before = pair.sent.count
        pair.inject(hello, .toServer)
        pair.run()
        #expect(pair.sent.count == before)
        try pair.turn { try pair.client.send([1]) }
        pair.run()
        #expect(pair.serverData == [[1]])
    }

    /// Records of the handshake in one byte more or less, cut at each length: dropped, then the real one comes.
    @Test func cutHandshakeDatagramsAreDropped() throws {
        let pair = try DTLSPair.make()
        var cut = 0
        pair.network = { _, _, bytes in
            (0..<bytes.count).filter { $0 < 14 || $0 % 7 == 0 }.map { length in
                cut += 1
                return DTLSPair.Delivery(bytes: Array(bytes.prefix(length)))
            } + [DTLSPair.Delivery(delay: .milliseconds(1), bytes: bytes)]
        }
        pair.start()
        pair.run()
        #expect(pair.agrees)
        #expect(cut > 100)
    }

    @Test func thousandConnectionsLeaveNoMemoryBehind() throws {
        func cycle(_ count: Int) throws {
            for _ in 0..<count {
                let pair = try DTLSPair.make()
                pair.start()
                pair.run()
                try pair.turn { try pair.client.send([1]) }
                pair.turn { pair.client.close() }
                pair.run()
                guard pair.serverOutputs.last == .closed else {
                    Issue.record("not closed: \(pair.serverOutputs)")
                    return
                }
            }
        }
        try cycle(50)
        let before = Int(dtls_test_heap_bytes_in_use())
        try cycle(1000)
        let grown = Int(dtls_test_heap_bytes_in_use()) - before
        // A leak of one endpoint's structures (over 20 KiB) would show as 20 MiB or more.
        #expect(grown < 12 << 20, "\(grown) bytes")
    }

    /// A leaf with two large certificates above it, about 4 KB together.
    private func longChain() throws -> DTLSCertificate {
        let key = try #require(sora_EVP_EC_gen("P-256"))
        defer { EVP_PKEY_free(key) }
        let signer = try #require(sora_EVP_RSA_gen(2048))
        defer { EVP_PKEY_free(signer) }
        func certificate(_ name: String, _ subjectKey: OpaquePointer) throws -> OpaquePointer {
            let made = try #require(X509_new())
            X509_set_version(made, 2)
            ASN1_INTEGER_set_uint64(X509_get_serialNumber(made), 7)
            X509_gmtime_adj(X509_getm_notBefore(made), -100)
            X509_gmtime_adj(X509_getm_notAfter(made), 100_000)
            X509_set_pubkey(made, subjectKey)
            let subject = X509_get_subject_name(made)
            X509_NAME_add_entry_by_txt(subject, "CN", V_ASN1_UTF8STRING, name, -1, -1, 0)
            for part in 0..<12 {
                X509_NAME_add_entry_by_txt(
                    subject, "OU", V_ASN1_UTF8STRING, "unit \(part) with a name of some length to fill the certificate",
                    -1, -1, 0)
            }
            X509_set_issuer_name(made, subject)
            try #require(X509_sign(made, signer, EVP_sha256()) > 0)
            return made
        }
        let leaf = try certificate("leaf", key)
        let above = [try certificate("above", signer), try certificate("root", signer)]
        defer { for one in above + [leaf] { X509_free(one) } }
        return try DTLSCertificate(certificate: leaf, key: key, chain: above)
    }
}
