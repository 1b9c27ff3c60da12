import SoraCrypto
import SoraWire
import Testing

@testable import SoraSecureTransport

/// DTL4 and DTL15: who the peer is and which SRTP profile it takes is settled before anything passes.
@Suite struct DTLSVerificationTests {
    private func expectNothingPassed(_ pair: DTLSPair) {
        #expect(pair.clientKeys == nil && pair.serverKeys == nil)
        #expect(pair.clientData.isEmpty && pair.serverData.isEmpty)
        #expect(throws: DTLSError.notConnected) { try pair.client.send([1]) }
        #expect(throws: DTLSError.notConnected) { try pair.server.send([1]) }
        #expect(pair.client.nextTimeout == nil && pair.server.nextTimeout == nil)
    }

    @Test func clientRefusesACertificateThatWasNotNamed() throws {
        let pair = try DTLSPair.make(expectedByClient: [TestCertificates.third.fingerprint])
        pair.start()
        pair.run()
        #expect(
            pair.clientOutputs == [.failed(.fingerprintMismatch(received: TestCertificates.second.fingerprint))])
        guard case .failed(.peerAlert(code: 42, _)) = pair.serverOutputs.first else {
            Issue.record("server: \(pair.serverOutputs)")
            return
        }
        #expect(pair.serverOutputs.count == 1)
        expectNothingPassed(pair)
    }

    @Test func serverRefusesACertificateThatWasNotNamed() throws {
        let pair = try DTLSPair.make(expectedByServer: [TestCertificates.third.fingerprint])
        pair.start()
        pair.run()
        #expect(pair.serverOutputs == [.failed(.fingerprintMismatch(received: TestCertificates.first.fingerprint))])
        guard case .failed(.peerAlert(code: 42, _)) = pair.clientOutputs.first else {
            Issue.record("client: \(pair.clientOutputs)")
            return
        }
        #expect(pair.clientOutputs.count == 1)
        expectNothingPassed(pair)
        // Told by the alert, not by the end of all retransmissions.
        #expect(pair.now < .zero + .seconds(2))
    }

    @Test func oneRightLineAmongSeveralIsEnough() throws {
        let right = TestCertificates.second
        for expected in [
            [TestCertificates.third.fingerprint, right.fingerprint],
            [right.fingerprint(.sha384)],
            [right.fingerprint(.sha512), TestCertificates.third.fingerprint],
            [right.fingerprint(.sha1)],
            [DTLSFingerprint(algorithm: "sha-512/256", bytes: [1]), right.fingerprint],
        ] {
            let pair = try DTLSPair.make(expectedByClient: expected)
            pair.start()
            pair.run()
            #expect(pair.agrees, "\(expected)")
        }
    }

    @Test func noUsableFingerprintIsRefusedAtOnce() {
        let unknown = DTLSFingerprint(algorithm: "sha-999", bytes: [1, 2, 3])
        let md5 = TestCertificates.second.fingerprint(.md5)
        for given in [[], [unknown], [md5], [DTLSFingerprint(algorithm: "sha-256", bytes: [1])]] {
            #expect(throws: DTLSError.noUsableFingerprint(given)) {
                try DTLSPair.make(expectedByClient: given)
            }
        }
    }

    @Test func datagramLimitOutsideTheRangeIsRefused() {
        for size in [Int.min, 0, 255, 4097, Int.max] {
            #expect(throws: DTLSError.invalidDatagramSize(size, allowed: 256...4096)) {
                try DTLSPair.make(maximumDatagramSize: size)
            }
        }
    }

    @Test func serverPreferenceDecidesTheProfile() throws {
        let all = SRTPProfile.allCases
        for (clientProfiles, serverProfiles, expected) in [
            (all, all, SRTPProfile.aeadAES128GCM),
            (all.reversed(), all, .aeadAES128GCM),
            (all, all.reversed(), .aesCM128HMACSHA1_80),
            (all, [.aeadAES256GCM], .aeadAES256GCM),
            ([.aesCM128HMACSHA1_80], all, .aesCM128HMACSHA1_80),
            ([.aeadAES256GCM, .aesCM128HMACSHA1_80], [.aesCM128HMACSHA1_80, .aeadAES256GCM], .aesCM128HMACSHA1_80),
        ] {
            let pair = try DTLSPair.make(clientProfiles: clientProfiles, serverProfiles: serverProfiles)
            pair.start()
            pair.run()
            #expect(pair.agrees)
            #expect(pair.clientKeys?.profile == expected)
        }
    }

    @Test func noCommonProfileFailsTheHandshake() throws {
        for (clientProfiles, serverProfiles): ([SRTPProfile], [SRTPProfile]) in [
            ([.aeadAES128GCM], [.aeadAES256GCM, .aesCM128HMACSHA1_80]), ([], SRTPProfile.allCases),
            (SRTPProfile.allCases, []),
        ] {
            let pair = try DTLSPair.make(clientProfiles: clientProfiles, serverProfiles: serverProfiles)
            pair.start()
            pair.run()
            if !clientProfiles.isEmpty {
                #expect(pair.clientOutputs == [.failed(.noCommonSRTPProfile(offered: clientProfiles))])
            } else {
                #expect(pair.serverOutputs == [.failed(.noCommonSRTPProfile(offered: serverProfiles))])
            }
            expectNothingPassed(pair)
        }
    }

    @Test func sessionWithoutMediaNeedsNoProfile() throws {
        for profiles in [[], [SRTPProfile.aeadAES128GCM]] {
            let pair = try DTLSPair.make(clientProfiles: profiles, serverProfiles: [], requiresSRTP: false)
            pair.start()
            pair.run()
            #expect(pair.clientOutputs == [.connected(nil)])
            #expect(pair.serverOutputs == [.connected(nil)])
            try pair.turn { try pair.client.send([1, 2]) }
            pair.run()
            #expect(pair.serverData == [[1, 2]])
        }
    }

    /// The exported keys are the right way round: what one side protects the other opens.
    @Test(arguments: SRTPProfile.allCases)
    func exportedKeysProtectBothWays(_ profile: SRTPProfile) throws {
        let pair = try DTLSPair.make(clientProfiles: [profile])
        pair.start()
        pair.run()
        let client = try #require(pair.clientKeys)
        let server = try #require(pair.serverKeys)
        for (from, to) in [(client, server), (server, client)] {
            var packet: [UInt8] = [0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 1, 2, 3]
            let plain = packet
            try from.makeSendContext().protect(&packet)
            try to.makeReceiveContext().unprotect(&packet)
            #expect(packet == plain)
        }
    }
}
