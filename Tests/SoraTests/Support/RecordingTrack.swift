import SoraFrames

@testable import Sora

/// A track port that writes down what it is told.
final class RecordingTrack: VideoTrackPort, AudioTrackPort {
    let journal = Journal()
    func setEnabled(_ isEnabled: Bool) { journal.add("enabled \(isEnabled)") }
    func send(_ frame: SoraFrames.VideoFrame) { journal.add("frame \(frame.timestamp)") }
    func setVolume(_ volume: Double) { journal.add("volume \(volume)") }
    func send(_ chunk: AudioChunk) { journal.add("sound \(chunk.samples.count)") }
    func setVideoReceiver(_ receiver: (@Sendable (SoraFrames.VideoFrame) -> Void)?) {
        journal.add("watched \(receiver != nil)")
    }
    func addEncodedSink(_ sink: any EncodedSink) { journal.add("encoded") }
    func setAudioReceiver(_ receiver: (@Sendable (AudioChunk) -> Void)?) { journal.add("tapped \(receiver != nil)") }
}
