import Foundation

/// Gets the sound of a stream as 16-bit little-endian interleaved samples in pieces of 10 ms, on a thread for sound.
public protocol RTCAudioTrackSink: AnyObject {
    /// - Parameter numberOfFrames: samples per channel.
    func onData(
        _ audioData: Data, bitsPerSample: Int, sampleRate: Int, numberOfChannels: Int, numberOfFrames: Int)
    /// The number of channels to mix to; -1 takes them as they are.
    func preferredNumberOfChannels() -> Int
}

extension RTCAudioTrackSink {
    public func preferredNumberOfChannels() -> Int { -1 }
}
