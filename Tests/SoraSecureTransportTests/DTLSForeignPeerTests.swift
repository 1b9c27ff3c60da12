import COpenSSL
import SoraWire
import Testing

@testable import SoraSecureTransport

/// DTL15 and what else a peer may want that WebRTC forbids.
@Suite struct DTLSForeignPeerTests {
    /// Runs a handshake without loss and gives our outputs.
    private func outputs(
        with peer: RawDTLSPeer, profiles: [SRTPProfile] = SRTPProfile.allCases, isClient: Bool = true,
        afterwards: (RawDTLSPeer, DTLSEndpoint) throws -> [[UInt8]] = { _, _ in [] }
    ) throws -> [DTLSEndpoint.Output] {
        let ours = try DTLSEndpoint(
            certificate: TestCertificates.first, role: isClient ? .server : .client,
            remoteFingerprints: [peer.fingerprint], srtpProfiles: profiles)
        var results: [DTLSEndpoint.Output] = []
        var toUs: [[UInt8]] = []
        func move() {
            var isMoving = true
            while isMoving {
                isMoving = false
                for datagram in toUs {
                    isMoving = true
                    ours.handle(datagram, now: .zero)
                }
                toUs = []
                while let output = ours.poll() {
                    isMoving = true
                    if case .transmit(let bytes) = output { toUs += peer.handle(bytes) } else { results.append(output) }
                }
            }
        }
        ours.start(now: .zero)
        if isClient { toUs = peer.handle(nil) }
        move()
        toUs = try afterwards(peer, ours)
        move()
        return results
    }

    private func isConnected(_ outputs: [DTLSEndpoint.Output]) -> Bool {
        outputs.contains { if case .connected = $0 { true } else { false } }
    }

    @Test(arguments: [true, false])
    func plainOpenSSLPeerConnects(isClient: Bool) throws {
        var options = RawDTLSPeer.Options()
        options.isClient = isClient
        let peer = try #require(RawDTLSPeer(options))
        let results = try outputs(with: peer, isClient: isClient)
        #expect(isConnected(results) && peer.isConnected)
    }

    @Test(arguments: ["", "SRTP_AES128_CM_SHA1_32"], [true, false])
    func peerWithoutAnAcceptableProfileIsRefused(_ offered: String, isClient: Bool) throws {
        var options = RawDTLSPeer.Options()
        options.srtpProfiles = offered
        options.isClient = isClient
        let peer = try #require(RawDTLSPeer(options))
        let results = try outputs(with: peer, isClient: isClient)
        #expect(results == [.failed(.noCommonSRTPProfile(offered: SRTPProfile.allCases))])
        #expect(!peer.isConnected)
        #expect(peer.failure != nil)
    }

    @Test func clientWithoutCertificateIsRefused() throws {
        var options = RawDTLSPeer.Options()
        options.showsCertificate = false
        let peer = try #require(RawDTLSPeer(options))
        let results = try outputs(with: peer)
        guard case .failed(.handshakeFailed) = results.first else {
            Issue.record("\(results)")
            return
        }
        #expect(results.count == 1 && peer.failure != nil)
    }

    @Test(arguments: [true, false])
    func dtls10IsRefused(isClient: Bool) throws {
        var options = RawDTLSPeer.Options()
        options.version = DTLS1_VERSION
        options.maximumVersion = DTLS1_VERSION
        options.isClient = isClient
        let peer = try #require(RawDTLSPeer(options))
        let results = try outputs(with: peer, isClient: isClient)
        #expect(!isConnected(results) && !peer.isConnected)
    }

    @Test(arguments: [
        "AES128-SHA@SECLEVEL=0", "ECDHE-ECDSA-AES128-SHA@SECLEVEL=0", "ADH-AES128-SHA@SECLEVEL=0",
        "ECDHE-ECDSA-NULL-SHA@SECLEVEL=0",
    ])
    func weakCipherIsRefused(_ ciphers: String) throws {
        var options = RawDTLSPeer.Options()
        options.ciphers = ciphers
        let peer = try #require(RawDTLSPeer(options))
        let results = try outputs(with: peer)
        guard case .failed(.handshakeFailed) = results.first else {
            Issue.record("\(results)")
            return
        }
        #expect(!peer.isConnected)
    }

    @Test(arguments: [true, false])
    func renegotiationIsRefusedAndDataGoesOn(isClient: Bool) throws {
        var options = RawDTLSPeer.Options()
        options.isClient = isClient
        let peer = try #require(RawDTLSPeer(options))
        let results = try outputs(with: peer, isClient: isClient) { peer, ours in
            for datagram in peer.renegotiate() { ours.handle(datagram, now: .zero) }
            // Anything but a short refusal would be a new handshake.
            while case .transmit(let bytes)? = ours.poll() { #expect(bytes.count < 60) }
            try ours.send([4, 5, 6])
            return []
        }
        #expect(isConnected(results))
        #expect(!results.contains(.closed))
        #expect(results.count == 1)
    }

    /// SAF8: whatever a handshake's bytes are changed to, nothing traps, nobody connects with different
    /// keys, and every end is reached once.
    @Test func changedHandshakesEndInOrder() throws {
        var ends = (connected: 0, failed: 0)
        for seed in 0..<300 {
            var random = RandomSource(seed: UInt64(seed))
            let pair = try DTLSPair.make(maximumDatagramSize: seed % 3 == 0 ? 300 : 1200)
            let direction: DTLSPair.Direction = seed % 2 == 0 ? .toServer : .toClient
            pair.network = { way, index, bytes in
                guard way == direction, index < 8, Int.random(in: 0..<2, using: &random) == 0 else {
                    return [DTLSPair.Delivery(bytes: bytes)]
                }
                var changed = bytes
                switch Int.random(in: 0..<4, using: &random) {
                case 0:
                    changed[Int.random(in: 13..<changed.count, using: &random)] = UInt8.random(
                        in: 0...255, using: &random)
                case 1:
                    changed[Int.random(in: 0..<min(25, changed.count), using: &random)] ^=
                        1 << UInt8.random(in: 0..<8, using: &random)
                case 2: changed.append(contentsOf: bytes)
                default:
                    changed.insert(
                        UInt8.random(in: 0...255, using: &random), at: Int.random(in: 0..<changed.count, using: &random)
                    )
                }
                return [DTLSPair.Delivery(bytes: changed), DTLSPair.Delivery(delay: .milliseconds(1), bytes: bytes)]
            }
            pair.start()
            pair.run(for: .seconds(60))
            for outputs in [pair.clientOutputs, pair.serverOutputs] {
                let terminal = outputs.filter { if case .connected = $0 { false } else { true } }
                #expect(terminal.count <= 1, "seed \(seed): \(outputs)")
            }
            if pair.isConnected {
                #expect(pair.agrees, "seed \(seed)")
                ends.connected += 1
            } else {
                ends.failed += 1
            }
            #expect(pair.client.nextTimeout == nil, "seed \(seed)")
        }
        #expect(ends.connected > 30 && ends.failed > 30, "\(ends)")
    }

    @Test func recordFilterKeepsOnlyWholeRecordsOfTheDatagram() {
        var random = RandomSource(seed: 8)
        for _ in 0..<5000 {
            var datagram: [UInt8] = []
            for _ in 0..<Int.random(in: 0...4, using: &random) {
                let length = Int.random(in: 0...20, using: &random)
                datagram += [
                    UInt8.random(in: 19...25, using: &random), 0xFE, 0xFD, 0, UInt8.random(in: 0...2, using: &random),
                    0, 0, 0, 0, 0, 0, 0, UInt8(length),
                ]
                datagram += TestPackets.bytes(length, &random)
            }
            if let cut = (0...datagram.count).randomElement(using: &random), Bool.random(using: &random) {
                datagram.removeLast(datagram.count - cut)
            }
            for isConnected in [false, true] {
                let records = DTLSRecords(of: datagram, isConnected: isConnected)
                #expect(records.accepted.count + records.early.count <= datagram.count)
                // What was accepted is accepted again as it is.
                #expect(DTLSRecords(of: records.accepted, isConnected: isConnected).accepted == records.accepted)
                if isConnected { #expect(records.early.isEmpty && records.plainFatalAlert == nil) }
            }
        }
    }

    @Test func oneCertificateServesManyThreads() async throws {
        let results = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    (0..<10).allSatisfy { _ in
                        guard let pair = try? DTLSPair.make() else { return false }
                        pair.start()
                        pair.run()
                        return pair.agrees
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results == Array(repeating: true, count: 8))
    }
}
