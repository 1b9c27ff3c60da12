import Foundation

/// Gets the sound of a stream as 16-bit little-endian interleaved samples in pieces of 10 ms, on a thread for sound.
public protocol RTCAudioTrackSink: AnyObject {
    /// Takes 10 ms of sound. Must return quickly.
    ///
    /// - Parameters:
    ///   - audioData: the samples, those of one moment side by side.
    ///   - bitsPerSample: always 16.
    ///   - sampleRate: samples per second and channel.
    ///   - numberOfChannels: 1 or 2, or what ``preferredNumberOfChannels()`` asks for.
    ///   - numberOfFrames: samples per channel.
    func onData(
        _ audioData: Data, bitsPerSample: Int, sampleRate: Int, numberOfChannels: Int, numberOfFrames: Int)
    /// The number of channels to mix to; -1 takes them as they are.
    func preferredNumberOfChannels() -> Int
}

extension RTCAudioTrackSink {
    /// The number of channels to mix to; -1, which is the default, takes them as they are.
    public func preferredNumberOfChannels() -> Int { -1 }
}
