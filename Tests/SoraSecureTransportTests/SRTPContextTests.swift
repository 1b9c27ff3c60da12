import SoraWire
import Testing

@testable import SoraSecureTransport

@Suite struct SRTPContextTests {
    private func pair(
        _ profile: SRTPProfile, maximumReceivedStreams: Int = 1024
    ) throws -> (sender: SRTPContext, receiver: SRTPContext) {
        let key = (0..<profile.keyLength).map { UInt8($0) }
        let salt = (0..<profile.saltLength).map { UInt8(0xA0 + $0) }
        return (
            try SRTPContext(profile: profile, masterKey: key, masterSalt: salt),
            try SRTPContext(
                profile: profile, masterKey: key, masterSalt: salt, maximumReceivedStreams: maximumReceivedStreams)
        )
    }

    private func packet(_ sequence: Int, ssrc: UInt32 = 1, payload: [UInt8] = [1, 2, 3]) -> [UInt8] {
        var writer = ByteWriter()
        writer.write(UInt8(0x80))
        writer.write(UInt8(96))
        writer.write(UInt16(truncatingIfNeeded: sequence))
        writer.write(UInt32(1234))
        writer.write(ssrc)
        writer.write(payload)
        return writer.bytes
    }

    private func protected(_ sender: SRTPContext, _ sequence: Int, ssrc: UInt32 = 1) throws -> [UInt8] {
        var bytes = packet(sequence, ssrc: ssrc)
        try sender.protect(&bytes)
        return bytes
    }

    @Test func refusesKeysOfTheWrongLength() {
        for profile in SRTPProfile.allCases {
            let key = [UInt8](repeating: 1, count: profile.keyLength)
            let salt = [UInt8](repeating: 1, count: profile.saltLength)
            #expect(throws: SRTPError.invalidKeyLength(key: key.count - 1, salt: salt.count)) {
                try SRTPContext(profile: profile, masterKey: Array(key.dropLast()), masterSalt: salt)
            }
            #expect(throws: SRTPError.invalidKeyLength(key: key.count, salt: 0)) {
                try SRTPContext(profile: profile, masterKey: key, masterSalt: [])
            }
        }
    }

    @Test(arguments: SRTPProfile.allCases)
    func overheadIsWhatTheProfileSays(_ profile: SRTPProfile) throws {
        let (sender, _) = try pair(profile)
        #expect(try protected(sender, 1).count == packet(1).count + profile.overhead)
        var report: [UInt8] = [0x80, 200, 0, 1, 0, 0, 0, 1]
        try sender.protectRTCP(&report)
        #expect(report.count == 8 + profile.rtcpOverhead)
    }

    @Test(arguments: SRTPProfile.allCases)
    func replayedPacketIsRefusedBeforeDecryption(_ profile: SRTPProfile) throws {
        let (sender, receiver) = try pair(profile)
        let first = try protected(sender, 10)
        var copy = first
        try receiver.unprotect(&copy)
        // DTL13: the bytes are untouched, so nothing was decrypted.
        copy = first
        #expect(throws: SRTPError.replayed(ssrc: 1, index: 10)) { try receiver.unprotect(&copy) }
        #expect(copy == first)

        var report: [UInt8] = [0x80, 200, 0, 1, 0, 0, 0, 1]
        try sender.protectRTCP(&report)
        copy = report
        try receiver.unprotectRTCP(&copy)
        copy = report
        #expect(throws: SRTPError.replayed(ssrc: 1, index: 1)) { try receiver.unprotectRTCP(&copy) }
        #expect(copy == report)
    }

    @Test func senderRefusesToUseAnIndexTwice() throws {
        let (sender, _) = try pair(.aeadAES128GCM)
        _ = try protected(sender, 10)
        var again = packet(10, payload: [9, 9, 9])
        #expect(throws: SRTPError.replayed(ssrc: 1, index: 10)) { try sender.protect(&again) }
        #expect(again == packet(10, payload: [9, 9, 9]))
        _ = try protected(sender, 9)  // late but new
    }

    @Test(arguments: SRTPProfile.allCases)
    func reorderingInsideTheWindowPassesAndBehindItIsTooOld(_ profile: SRTPProfile) throws {
        let (sender, receiver) = try pair(profile)
        let all = try (0..<2000).map { try protected(sender, $0) }
        var copy = all[1999]
        try receiver.unprotect(&copy)
        for sequence in (1999 - 959)..<1999 {
            copy = all[sequence]
            try receiver.unprotect(&copy)
        }
        copy = all[1999 - 960]
        #expect(throws: SRTPError.tooOld(ssrc: 1, index: 1999 - 960)) { try receiver.unprotect(&copy) }
    }

    /// DTL11
    @Test(arguments: SRTPProfile.allCases)
    func followsAWrapRightAfterTheFirstPacketWithLossAndALatecomer(_ profile: SRTPProfile) throws {
        let (sender, receiver) = try pair(profile)
        let all = try (0..<200).map { try protected(sender, 65_530 + $0) }
        var copy = all[0]
        try receiver.unprotect(&copy)
        for position in 61..<200 {
            copy = all[position]
            try receiver.unprotect(&copy)
            #expect(copy == packet(65_530 + position))
        }
        copy = all[3]  // 65,533, from before the wrap
        try receiver.unprotect(&copy)
        #expect(copy == packet(65_533))
        #expect(throws: SRTPError.replayed(ssrc: 1, index: 65_533)) {
            copy = all[3]
            try receiver.unprotect(&copy)
        }
    }

    /// DTL11
    @Test(arguments: SRTPProfile.allCases)
    func seventyThousandPacketsPassWithTwoRollOvers(_ profile: SRTPProfile) throws {
        let (sender, receiver) = try pair(profile)
        for sequence in 60_000..<(60_000 + 72_000) {
            var bytes = packet(sequence)
            try sender.protect(&bytes)
            try receiver.unprotect(&bytes)
            guard bytes == packet(sequence) else {
                Issue.record("packet \(sequence) differs")
                return
            }
        }
    }

    @Test(arguments: SRTPProfile.allCases)
    func changeOfEachByteIsNoticed(_ profile: SRTPProfile) throws {
        let (sender, receiver) = try pair(profile)
        let genuine = try protected(sender, 10)
        for position in genuine.indices {
            for bit in [UInt8(1), 0x80] {
                var forged = genuine
                forged[position] ^= bit
                #expect(throws: SRTPError.self, "byte \(position)") { try receiver.unprotect(&forged) }
            }
        }
        var report: [UInt8] = [0x80, 200, 0, 2, 0, 0, 0, 1, 5, 6, 7, 8]
        try sender.protectRTCP(&report)
        for position in report.indices {
            for bit in [UInt8(1), 0x80] {
                var forged = report
                forged[position] ^= bit
                #expect(throws: SRTPError.self, "byte \(position)") { try receiver.unprotectRTCP(&forged) }
            }
        }
        // DTL10, DTL12: forgeries left nothing behind, and the genuine ones still pass.
        #expect(receiver.streamCount == 0)
        var copy = genuine
        try receiver.unprotect(&copy)
        try receiver.unprotectRTCP(&report)
        #expect(receiver.streamCount == 2)
    }

    /// DTL9
    @Test(arguments: SRTPProfile.allCases)
    func everyLengthIsCheckedBeforeUse(_ profile: SRTPProfile) throws {
        let (sender, receiver) = try pair(profile)
        var random = RandomSource(seed: 5)
        for _ in 0..<20 {
            var genuine = TestPackets.rtp(ssrc: 5, sequence: .random(in: 0..<500, using: &random), &random)
            do { try sender.protect(&genuine) } catch { continue }
            for length in 0..<genuine.count {
                var cut = Array(genuine.prefix(length))
                #expect(throws: SRTPError.self) { try receiver.unprotect(&cut) }
            }
        }
        // Shaped like RTP with all CSRCs and an extension that claims to be longest.
        for length in 0..<120 {
            var shaped = [UInt8](repeating: 0xFF, count: length)
            if length > 0 { shaped[0] = 0xBF }
            #expect(throws: SRTPError.self) { try receiver.unprotect(&shaped) }
            #expect(throws: SRTPError.self) { try receiver.unprotectRTCP(&shaped) }
            #expect(throws: SRTPError.self) { try sender.protect(&shaped) }
        }
        var report: [UInt8] = [0x80, 200, 0, 1, 0, 0, 0, 1]
        try sender.protectRTCP(&report)
        for length in 0..<report.count {
            var cut = Array(report.prefix(length))
            #expect(throws: SRTPError.self) { try receiver.unprotectRTCP(&cut) }
        }
        for length in 0..<8 {
            var short = [UInt8](repeating: 0x80, count: length)
            #expect(throws: SRTPError.truncated(length: length, minimum: 8)) { try sender.protectRTCP(&short) }
        }
    }

    @Test func smallestPacketsAreHeadersAlone() throws {
        for profile in SRTPProfile.allCases {
            let (sender, receiver) = try pair(profile)
            var bytes = packet(1, payload: [])
            try sender.protect(&bytes)
            #expect(bytes.count == 12 + profile.tagLength)
            try receiver.unprotect(&bytes)
            #expect(bytes == packet(1, payload: []))
        }
    }

    /// DTL12
    @Test func forgedSSRCsLeaveNothingAndGenuineOnesAreBounded() throws {
        let (sender, receiver) = try pair(.aeadAES128GCM, maximumReceivedStreams: 64)
        let genuine = try protected(sender, 1, ssrc: 0xFFFF_FFFF)
        for ssrc in UInt32(0)..<20_000 {
            var forged = genuine
            for position in 0..<4 {
                forged[8 + position] = UInt8(truncatingIfNeeded: ssrc >> UInt32(24 - 8 * position))
            }
            #expect(throws: SRTPError.authenticationFailed(ssrc: ssrc)) { try receiver.unprotect(&forged) }
        }
        #expect(receiver.streamCount == 0)
        for ssrc in UInt32(1)...5000 {
            var bytes = try protected(sender, 7, ssrc: ssrc)
            try receiver.unprotect(&bytes)
            #expect(receiver.streamCount <= 64)
            // The stream in use is not the one that is forgotten.
            bytes = try protected(sender, Int(ssrc) + 8, ssrc: 0)
            try receiver.unprotect(&bytes)
        }
        var replay = try protected(sender, 5010, ssrc: 0)
        var copy = replay
        try receiver.unprotect(&replay)
        #expect(throws: SRTPError.replayed(ssrc: 0, index: 5010)) { try receiver.unprotect(&copy) }
    }

    @Test func senderNeverForgetsAStream() throws {
        let (sender, _) = try pair(.aeadAES128GCM)
        for ssrc in 0..<UInt32(SRTPContext.maximumSentStreams) { _ = try protected(sender, 1, ssrc: ssrc) }
        var further = packet(1, ssrc: .max)
        #expect(throws: SRTPError.tooManyStreams(limit: SRTPContext.maximumSentStreams)) {
            try sender.protect(&further)
        }
        var again = packet(1, ssrc: 0)
        #expect(throws: SRTPError.replayed(ssrc: 0, index: 1)) { try sender.protect(&again) }
    }

    /// DTL15: media in the clear is refused even with a right tag.
    @Test func unencryptedRTCPIsRefused() throws {
        let (sender, receiver) = try pair(.aesCM128HMACSHA1_80)
        var report: [UInt8] = [0x80, 200, 0, 1, 0, 0, 0, 1]
        try sender.protectRTCP(&report)
        report[8] &= 0x7F
        #expect(throws: SRTPError.unencryptedRTCP(ssrc: 1)) { try receiver.unprotectRTCP(&report) }
    }

    @Test func packetsAreChangedInPlaceWhenThereIsRoom() throws {
        let (sender, _) = try pair(.aeadAES128GCM)
        var bytes = packet(1, payload: [UInt8](repeating: 1, count: 500))
        bytes.reserveCapacity(bytes.count + SRTPProfile.aeadAES128GCM.overhead)
        let before = bytes.withUnsafeBytes { $0.baseAddress }
        try sender.protect(&bytes)
        #expect(bytes.withUnsafeBytes { $0.baseAddress } == before)
    }
}

@Suite struct ReplayWindowTests {
    /// The window against a set that remembers everything.
    @Test func agreesWithASetOfAllIndices() {
        var random = RandomSource(seed: 9)
        for _ in 0..<20 {
            var window = ReplayWindow()
            var seen = Set<UInt64>()
            var center: Int64 = 2000
            for _ in 0..<3000 {
                let jump = Int.random(in: 0..<100, using: &random)
                center += jump == 0 ? 5000 : jump < 5 ? 200 : 1
                let index = UInt64(max(0, center + Int64.random(in: -1100...40, using: &random)))
                let highest = seen.max() ?? 0
                let expected: ReplayWindow.Verdict =
                    seen.isEmpty || index > highest
                    ? .new : highest - index >= ReplayWindow.size ? .tooOld : seen.contains(index) ? .replayed : .new
                #expect(window.check(index) == expected)
                if expected == .new {
                    window.insert(index)
                    seen.insert(index)
                    if seen.count > 2500 { seen = seen.filter { $0 + 4000 > index } }
                }
            }
        }
    }
}
