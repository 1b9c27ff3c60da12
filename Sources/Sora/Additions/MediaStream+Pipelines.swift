import Foundation
package import SoraFrames

// The way into and out of a stream for this package's own programs, without the stand-in types:
// frames of sources, coded frames for recorders.

extension MediaStream {
    /// Sends a picture of a source. As ``send(videoFrame:)``.
    package func send(frame: SoraFrames.VideoFrame) {
        send(videoFrame: VideoFrame(frame))
    }

    /// Sends sound of a source, in place of a microphone. Its timestamps share a clock with the pictures'.
    package func send(audio frame: AudioFrame) {
        (self as? ConnectedStream)?.send(
            audio: AudioChunk(
                samples: frame.samples, sampleRate: frame.sampleRate, channels: frame.channels,
                timestamp: frame.timestamp))
    }

    /// Hands picture and sound to a recorder as they were coded by their sender.
    package func addEncodedSink(_ sink: any EncodedSink) {
        (self as? ConnectedStream)?.addEncodedSink(sink)
    }

    /// Hands each decoded picture to `handler`, on a thread of the SDK, while the stream lives. Takes the
    /// place of the renderer.
    package func addVideoSink(_ handler: @escaping @Sendable (SoraFrames.VideoFrame) -> Void) -> AnyObject {
        let renderer = FrameHandler(handler)
        videoRenderer = renderer
        return renderer
    }

    /// Tells `handler` the seconds of each piece of sound that comes, on a thread for sound, while the stream lives.
    package func addSoundMeter(_ handler: @escaping @Sendable (Double) -> Void) {
        addAudioTrackSink(SoundMeter(handler))
    }
}

/// A sink that only counts.
private final class SoundMeter: RTCAudioTrackSink {
    private let handler: @Sendable (Double) -> Void
    init(_ handler: @escaping @Sendable (Double) -> Void) { self.handler = handler }
    func onData(_ audioData: Data, bitsPerSample: Int, sampleRate: Int, numberOfChannels: Int, numberOfFrames: Int) {
        guard sampleRate > 0 else { return }
        handler(Double(numberOfFrames) / Double(sampleRate))
    }
}

/// A renderer that hands frames on. The stream holds it weakly; whoever asked for it keeps it.
private final class FrameHandler: VideoRenderer {
    private let handler: @Sendable (SoraFrames.VideoFrame) -> Void
    init(_ handler: @escaping @Sendable (SoraFrames.VideoFrame) -> Void) { self.handler = handler }
    func render(videoFrame: VideoFrame?) {
        guard let frame = videoFrame?.picture else { return }
        handler(frame)
    }
    func onChange(size: CGSize) {}
    func onDisconnect(from: MediaChannel?) {}
    func onAdded(from: any MediaStream) {}
    func onRemoved(from: any MediaStream) {}
    func onSwitch(video: Bool) {}
    func onSwitch(audio: Bool) {}
}
