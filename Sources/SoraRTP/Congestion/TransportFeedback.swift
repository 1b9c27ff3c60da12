import SoraWire

/// Transport-wide congestion control feedback: which packets of a run arrived, and when
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01, 3.1).
///
/// Only arrived packets are stored, so that memory is bounded by the bytes received (each costs at least one),
/// however many statuses a short run-length chunk promises.
package struct TransportFeedback: Equatable, Sendable {
    /// One packet that arrived.
    package struct Arrival: Equatable, Sendable {
        /// Steps from ``TransportFeedback/baseSequence``, below ``TransportFeedback/statusCount``.
        package var offset: UInt16
        /// Since the arrival before it (the first: since the reference time), in units of 250 µs.
        package var delta: Int16
        package init(offset: UInt16, delta: Int16) {
            self.offset = offset
            self.delta = delta
        }
    }

    package var senderSSRC: SSRC
    package var mediaSSRC: SSRC
    package var baseSequence: SequenceNumber
    /// Packets that the feedback speaks of, lost ones included.
    package var statusCount: UInt16
    /// Signed 24 bits, in units of 64 ms; wraps.
    package var referenceTime: Int32
    /// Counts feedback packets, modulo 256.
    package var feedbackCount: UInt8
    /// Ascending by offset.
    package var arrivals: [Arrival]

    package init(
        senderSSRC: SSRC, mediaSSRC: SSRC, baseSequence: SequenceNumber, statusCount: UInt16, referenceTime: Int32,
        feedbackCount: UInt8, arrivals: [Arrival]
    ) {
        self.senderSSRC = senderSSRC
        self.mediaSSRC = mediaSSRC
        self.baseSequence = baseSequence
        self.statusCount = statusCount
        self.referenceTime = referenceTime
        self.feedbackCount = feedbackCount
        self.arrivals = arrivals
    }

    private enum Symbol {
        static let lost: UInt8 = 0
        static let smallDelta: UInt8 = 1
        static let largeDelta: UInt8 = 2
    }

    init(_ reader: inout ByteReader) throws(WireError) {
        senderSSRC = SSRC(try reader.readUInt32())
        mediaSSRC = SSRC(try reader.readUInt32())
        baseSequence = SequenceNumber(try reader.readUInt16())
        statusCount = try reader.readUInt16()
        referenceTime = Int32(bitPattern: try reader.readUInt24() << 8) >> 8
        feedbackCount = try reader.readUInt8()
        arrivals = []
        // First pass over the chunks: where the deltas begin, and whether all promised statuses are there.
        var chunks = reader
        var covered = 0
        let total = Int(statusCount)
        while covered < total {
            let chunk = try reader.readUInt16()
            if chunk & 0x8000 == 0 {
                let run = Int(chunk & 0x1FFF)
                guard run > 0 else { throw .invalid(field: "feedback run length", value: 0) }
                covered += run
            } else {
                covered += chunk & 0x4000 == 0 ? 14 : 7
            }
        }
        // Second pass: statuses and deltas side by side. Each arrival reads at least one byte, so a run longer than
        // the packet's bytes ends in an error and never in a large array; runs of lost packets are skipped whole.
        var index = 0
        while index < total {
            let chunk = try chunks.readUInt16()
            if chunk & 0x8000 == 0 {
                let run = min(Int(chunk & 0x1FFF), total - index)
                let symbol = UInt8(truncatingIfNeeded: chunk >> 13) & 0x3
                if symbol != Symbol.lost {
                    for step in 0..<run { try read(symbol, at: index + step, &reader) }
                }
                index += run
            } else if chunk & 0x4000 == 0 {
                for bit in 0..<min(14, total - index) where chunk & (0x2000 >> UInt16(bit)) != 0 {
                    try read(Symbol.smallDelta, at: index + bit, &reader)
                }
                index += 14
            } else {
                for pair in 0..<min(7, total - index) {
                    let symbol = UInt8(truncatingIfNeeded: chunk >> UInt16(12 - 2 * pair)) & 0x3
                    if symbol != Symbol.lost { try read(symbol, at: index + pair, &reader) }
                }
                index += 7
            }
        }
    }

    private mutating func read(_ symbol: UInt8, at offset: Int, _ reader: inout ByteReader) throws(WireError) {
        let delta: Int16
        switch symbol {
        case Symbol.smallDelta: delta = Int16(try reader.readUInt8())
        case Symbol.largeDelta: delta = Int16(bitPattern: try reader.readUInt16())
        default: throw .invalid(field: "feedback packet status", value: UInt64(symbol))
        }
        arrivals.append(Arrival(offset: UInt16(truncatingIfNeeded: offset), delta: delta))
    }

    /// Writes the body. Arrivals that are out of order or beyond the count are left out.
    func write(to writer: inout ByteWriter) {
        writer.write(senderSSRC.rawValue)
        writer.write(mediaSSRC.rawValue)
        writer.write(baseSequence.rawValue)
        writer.write(statusCount)
        writer.writeUInt24(UInt32(bitPattern: referenceTime) & 0xFF_FFFF)
        writer.write(feedbackCount)
        var symbols = [UInt8](repeating: Symbol.lost, count: Int(statusCount))
        var deltas = ByteWriter(capacity: arrivals.count * 2)
        var next = 0
        for arrival in arrivals where Int(arrival.offset) >= next && arrival.offset < statusCount {
            next = Int(arrival.offset) + 1
            if (0...255).contains(arrival.delta) {
                symbols[Int(arrival.offset)] = Symbol.smallDelta
                deltas.write(UInt8(arrival.delta))
            } else {
                symbols[Int(arrival.offset)] = Symbol.largeDelta
                deltas.write(UInt16(bitPattern: arrival.delta))
            }
        }
        var index = 0
        while index < symbols.count { index += TransportFeedback.writeChunk(symbols, from: index, to: &writer) }
        writer.write(deltas.bytes)
    }

    /// Writes the chunk that covers most statuses from `start`; returns how many.
    private static func writeChunk(_ symbols: [UInt8], from start: Int, to writer: inout ByteWriter) -> Int {
        let first = symbols[start]
        var run = 1
        while start + run < symbols.count, run < 0x1FFF, symbols[start + run] == first { run += 1 }
        let window = min(14, symbols.count - start)
        if run >= 14 || run == symbols.count - start {
            writer.write(UInt16(first) << 13 | UInt16(run))
            return run
        }
        if !symbols[start..<(start + window)].contains(Symbol.largeDelta) {
            var chunk: UInt16 = 0x8000
            for step in 0..<window { chunk |= UInt16(symbols[start + step]) << UInt16(13 - step) }
            writer.write(chunk)
            return window
        }
        if run >= 7 {
            writer.write(UInt16(first) << 13 | UInt16(run))
            return run
        }
        let pairs = min(7, symbols.count - start)
        var chunk: UInt16 = 0xC000
        for step in 0..<pairs { chunk |= UInt16(symbols[start + step]) << UInt16(12 - 2 * step) }
        writer.write(chunk)
        return pairs
    }
}
