/// Brings sound to one sample rate and channel count. Keeps state between frames of one stream.
///
/// Rates are changed by linear interpolation: good enough for the rare source that does not deliver 48 kHz
/// (devices and files convert by GStreamer before).
package struct AudioConverter: Sendable {
    package let sampleRate: Int
    package let channels: Int
    private var inputRate = 0
    private var inputChannels = 0
    /// Position of the next output sample behind `last`, in units of 1/sampleRate input samples.
    private var phase = 0
    private var last: [Int16] = []

    package init(sampleRate: Int, channels: Int) {
        self.sampleRate = max(sampleRate, 1)
        self.channels = max(channels, 1)
    }

    package mutating func convert(_ frame: AudioFrame) -> AudioFrame {
        let mixed = frame.channels == channels ? frame.samples : mix(frame)
        guard frame.sampleRate != sampleRate else {
            last = []
            inputRate = frame.sampleRate
            return AudioFrame(
                samples: mixed, sampleRate: sampleRate, channels: channels, timestamp: frame.timestamp)
        }
        if frame.sampleRate != inputRate {
            inputRate = frame.sampleRate
            phase = 0
            last = []
        }
        return AudioFrame(
            samples: resample(mixed), sampleRate: sampleRate, channels: channels, timestamp: frame.timestamp)
    }

    private func mix(_ frame: AudioFrame) -> [Int16] {
        var output: [Int16] = []
        output.reserveCapacity(frame.samplesPerChannel * channels)
        for index in 0..<frame.samplesPerChannel {
            let start = index * frame.channels
            if channels == 1 {
                var sum = 0
                for channel in 0..<frame.channels { sum += Int(frame.samples[start + channel]) }
                output.append(Int16(clamping: sum / frame.channels))
            } else {
                for channel in 0..<channels {
                    output.append(frame.samples[start + min(channel, frame.channels - 1)])
                }
            }
        }
        return output
    }

    private mutating func resample(_ input: [Int16]) -> [Int16] {
        var samples = last
        samples += input
        let count = samples.count / channels
        guard count > 1 else {
            last = samples
            return []
        }
        var output: [Int16] = []
        output.reserveCapacity((count * sampleRate / inputRate + 1) * channels)
        while true {
            let position = phase / sampleRate
            guard position + 1 < count else { break }
            let fraction = phase % sampleRate
            for channel in 0..<channels {
                let a = Int(samples[position * channels + channel])
                let b = Int(samples[(position + 1) * channels + channel])
                output.append(Int16(clamping: a + (b - a) * fraction / sampleRate))
            }
            phase += inputRate
        }
        let consumed = min(phase / sampleRate, count - 1)
        phase -= consumed * sampleRate
        last = Array(samples[(consumed * channels)...])
        return output
    }
}

/// Cuts a stream of sound into packets of one length, and knows each packet's time.
package struct AudioPacker: Sendable {
    package let samplesPerPacket: Int
    package let sampleRate: Int
    package let channels: Int
    /// A jump of the source's clock beyond this starts anew at the source's time (a pause, a seek).
    private static let tolerance: Int64 = 60_000_000
    private var pending: [Int16] = []
    /// Samples of `pending` that are used up; removed lazily.
    private var start = 0
    private var time: Int64 = 0

    package init(samplesPerPacket: Int, sampleRate: Int, channels: Int) {
        self.samplesPerPacket = max(samplesPerPacket, 1)
        self.sampleRate = max(sampleRate, 1)
        self.channels = max(channels, 1)
    }

    /// Samples per channel that wait.
    package var waiting: Int { (pending.count - start) / channels }

    package mutating func append(_ frame: AudioFrame) {
        guard frame.channels == channels, !frame.samples.isEmpty else { return }
        let expected = time &+ Int64(waiting) * 1_000_000_000 / Int64(sampleRate)
        let (jump, overflow) = frame.timestamp.subtractingReportingOverflow(expected)
        if waiting == 0 {
            // A steady count of samples is smoother than the times of a capturing thread.
            if overflow || abs(jump) > Self.tolerance { time = frame.timestamp }
        } else if overflow || abs(jump) > Self.tolerance {
            pending = []
            start = 0
            time = frame.timestamp
        }
        if start > 0 {
            pending.removeFirst(start)
            start = 0
        }
        pending += frame.samples
    }

    /// The next full packet.
    package mutating func next() -> AudioFrame? {
        guard waiting >= samplesPerPacket else { return nil }
        let end = start + samplesPerPacket * channels
        let packet = AudioFrame(
            samples: Array(pending[start..<end]), sampleRate: sampleRate, channels: channels, timestamp: time)
        start = end
        time &+= Int64(samplesPerPacket) * 1_000_000_000 / Int64(sampleRate)
        return packet
    }
}
