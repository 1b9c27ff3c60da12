import SoraSecureTransport
import SoraWire

/// Cost of SRTP per packet, on one core.
///
/// The fastest of several rounds is reported: the machine's other work only ever adds.
enum SRTPBenchmark {
    struct Result: Sendable {
        var profile: SRTPProfile
        /// Bytes of payload behind a 12-byte header and an extension of 8.
        var payloadLength: Int
        /// Nanoseconds for one packet.
        var protect: Double
        var unprotect: Double
        /// Nanoseconds to refuse one packet that was seen before.
        var replay: Double
    }

    /// Protects and opens `packets` packets in each of `rounds` rounds.
    static func run(
        profile: SRTPProfile, payloadLength: Int = 1200, packets: Int = 20_000, rounds: Int = 5
    ) throws -> Result {
        let key = [UInt8](repeating: 7, count: profile.keyLength)
        let salt = [UInt8](repeating: 9, count: profile.saltLength)
        var result = Result(
            profile: profile, payloadLength: payloadLength, protect: .infinity, unprotect: .infinity,
            replay: .infinity)
        let clock = ContinuousClock()
        for _ in 0..<rounds {
            let sender = try SRTPContext(profile: profile, masterKey: key, masterSalt: salt)
            let receiver = try SRTPContext(profile: profile, masterKey: key, masterSalt: salt)
            var batch = (0..<packets).map { packet(sequence: $0, payloadLength: payloadLength, profile: profile) }
            let protect = try clock.measure {
                for index in batch.indices { try sender.protect(&batch[index]) }
            }
            var replayed = batch[packets - 1]
            let unprotect = try clock.measure {
                for index in batch.indices { try receiver.unprotect(&batch[index]) }
            }
            let replay = clock.measure {
                for _ in 0..<packets { try? receiver.unprotect(&replayed) }
            }
            result.protect = min(result.protect, Double(protect.wholeNanoseconds) / Double(packets))
            result.unprotect = min(result.unprotect, Double(unprotect.wholeNanoseconds) / Double(packets))
            result.replay = min(result.replay, Double(replay.wholeNanoseconds) / Double(packets))
        }
        return result
    }

    private static func packet(sequence: Int, payloadLength: Int, profile: SRTPProfile) -> [UInt8] {
        var writer = ByteWriter(capacity: 20 + payloadLength + profile.overhead)
        writer.write(UInt8(0x90))
        writer.write(UInt8(96))
        writer.write(UInt16(truncatingIfNeeded: sequence))
        writer.write(UInt32(truncatingIfNeeded: sequence &* 90))
        writer.write(UInt32(0x1234_5678))
        writer.write([0xBE, 0xDE, 0, 1, 0x10, 1, 2, 3])
        writer.write([UInt8](repeating: UInt8(truncatingIfNeeded: sequence), count: payloadLength))
        return writer.bytes
    }
}
