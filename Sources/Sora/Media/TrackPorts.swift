import Foundation
internal import SoraFrames

/// The engine's end of a video track. Every member may be called from any thread and returns at once.
protocol VideoTrackPort: AnyObject, Sendable {
    /// Off: black is sent, or nothing decoded is handed on.
    func setEnabled(_ isEnabled: Bool)
    /// Takes a frame to encode. Remote tracks ignore it.
    func send(_ frame: SoraFrames.VideoFrame)
    /// Who gets the decoded frames, on a codec thread; nil: nobody, and nothing is decoded. Local tracks ignore it.
    func setVideoReceiver(_ receiver: (@Sendable (SoraFrames.VideoFrame) -> Void)?)
    /// Gets the coded frames as they come, until the track ends. Local tracks ignore it.
    func addEncodedSink(_ sink: any EncodedSink)
}

/// The engine's end of an audio track. Every member may be called from any thread and returns at once.
protocol AudioTrackPort: AnyObject, Sendable {
    /// Off: silence is sent, or nothing is played.
    func setEnabled(_ isEnabled: Bool)
    /// Linear gain of playout, 0...10. Local tracks ignore it.
    func setVolume(_ volume: Double)
    /// Takes sound to encode. Remote tracks ignore it.
    func send(_ chunk: AudioChunk)
    /// Who gets the sound in pieces of 10 ms, on a thread for sound; nil: nobody.
    func setAudioReceiver(_ receiver: (@Sendable (AudioChunk) -> Void)?)
    /// Gets the coded sound as it comes, until the track ends. Local tracks ignore it.
    func addEncodedSink(_ sink: any EncodedSink)
}

extension VideoTrackPort {
    func addEncodedSink(_ sink: any EncodedSink) {}
}

extension AudioTrackPort {
    func addEncodedSink(_ sink: any EncodedSink) {}
}

/// 10 ms of sound: interleaved 16-bit samples.
struct AudioChunk: Sendable {
    var samples: [Int16]
    /// Samples per second and channel.
    var sampleRate: Int
    var channels: Int
    /// Nanoseconds on the clock of the pictures that belong to the sound; nil: now.
    var timestamp: Int64?

    /// Samples per channel.
    var frameCount: Int { channels > 0 ? samples.count / channels : 0 }

    /// The same sound with another number of channels: down to one by the mean, up by repetition.
    func mixed(to wanted: Int) -> AudioChunk {
        guard wanted > 0, wanted != channels, channels > 0 else { return self }
        var mixed: [Int16] = []
        mixed.reserveCapacity(frameCount * wanted)
        for frame in 0..<frameCount {
            let first = frame * channels
            if wanted == 1 {
                let sum = samples[first..<(first + channels)].reduce(0) { $0 + Int($1) }
                mixed.append(Int16(clamping: sum / channels))
            } else {
                for channel in 0..<wanted { mixed.append(samples[first + channel % channels]) }
            }
        }
        return AudioChunk(samples: mixed, sampleRate: sampleRate, channels: wanted)
    }

    /// The samples as little-endian bytes.
    var data: Data {
        var data = Data(capacity: samples.count * 2)
        for sample in samples {
            let bits = UInt16(bitPattern: sample)
            data.append(UInt8(truncatingIfNeeded: bits))
            data.append(UInt8(truncatingIfNeeded: bits >> 8))
        }
        return data
    }
}
