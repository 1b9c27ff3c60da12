import SoraSCTP
import SoraWire

/// Throughput of two SCTP ends in one thread, without DTLS and sockets: what both ends cost together.
enum SCTPBenchmark {
    struct Result {
        var megabitsPerSecond: Double
        var packets: Int
    }

    /// Sends for `duration` with at most 1 MiB buffered and returns what arrived.
    static func run(
        messageSize: Int, ordered: Bool, zeroChecksum: Bool = true, duration: Duration = .seconds(1)
    ) -> Result {
        var configuration = SCTPConfiguration()
        configuration.remoteMaximumMessageSize = 262_144
        configuration.zeroChecksum = zeroChecksum
        let sender = DataChannelTransport(
            configuration: configuration, isDTLSClient: true, random: RandomSource(seed: 1))
        let receiver = DataChannelTransport(
            configuration: configuration, isDTLSClient: false, random: RandomSource(seed: 2))
        let clock = ContinuousClock()
        let begin = clock.now
        var now: Instant { Instant(nanoseconds: 1 + (clock.now - begin).wholeNanoseconds) }
        sender.start(now: now)
        receiver.start(now: now)
        guard let id = try? sender.open(label: "benchmark", ordered: ordered, now: now) else {
            return Result(megabitsPerSecond: 0, packets: 0)
        }
        let message = [UInt8](repeating: 0x5A, count: messageSize)
        var receivedBytes = 0
        var isOpen = false
        var batch: [[UInt8]] = []
        let start = now
        while now - start < duration {
            let instant = now
            if isOpen {
                while sender.bufferedAmount(of: id) < 1_048_576 - messageSize {
                    guard (try? sender.send(message, isBinary: true, on: id, now: instant)) != nil else { break }
                }
            }
            batch.removeAll(keepingCapacity: true)
            while let output = sender.poll() {
                switch output {
                case .transmit(let packet): batch.append(packet)
                case .channelOpened: isOpen = true
                default: break
                }
            }
            for packet in batch { receiver.handle(packet, now: instant) }
            batch.removeAll(keepingCapacity: true)
            while let output = receiver.poll() {
                switch output {
                case .transmit(let packet): batch.append(packet)
                case .message(_, let payload, _): receivedBytes += payload.count
                default: break
                }
            }
            for packet in batch { sender.handle(packet, now: instant) }
            if let due = sender.nextTimeout, due <= instant { sender.handleTimeout(now: instant) }
            if let due = receiver.nextTimeout, due <= instant { receiver.handleTimeout(now: instant) }
        }
        return Result(
            megabitsPerSecond: Double(receivedBytes) * 8 / (now - start).inSeconds / 1e6,
            packets: receiver.associationStatistics.packetsReceived)
    }

    /// Prints a table: message sizes by order, with and without checksums.
    static func report() {
        print("SCTP, both ends on one core, no DTLS (Mbit/s)")
        for (name, zeroChecksum) in [("no checksum (RFC 9653)", true), ("CRC32c", false)] {
            for ordered in [true, false] {
                let figures = [1, 16, 64, 256].map { kibibytes in
                    let result = run(
                        messageSize: kibibytes * 1_024, ordered: ordered, zeroChecksum: zeroChecksum)
                    return "\(kibibytes) KiB: \(Int(result.megabitsPerSecond))"
                }
                print("  \(ordered ? "ordered  " : "unordered"), \(name): \(figures.joined(separator: ", "))")
            }
        }
    }
}
