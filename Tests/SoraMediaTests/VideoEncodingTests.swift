import SoraFrames
import SoraLocking
import Testing

@testable import SoraMedia

@Suite struct VideoEncodingTests {
    /// Codes nothing, and says which pictures were to be key frames.
    private final class ScriptedEncoder: VideoEncoder {
        let codec = VideoCodecKind.vp8
        func encode(_ frame: VideoFrame, forceKeyFrame: Bool) -> [EncodedVideoFrame] {
            [
                EncodedVideoFrame(
                    codec: codec, isKeyFrame: forceKeyFrame, width: frame.width, height: frame.height,
                    timestamp: frame.timestamp, payload: [1])
            ]
        }
        func setBitrate(_ bitsPerSecond: Int, framerate: Double) {}
    }
    private struct ScriptedCodecs: CodecFactory {
        var videoEncoders: [VideoCodecKind] { [.vp8] }
        var videoDecoders: [VideoCodecKind] { [] }
        var audioCodecs: [AudioCodecKind] { [] }
        func makeVideoEncoder(_ settings: VideoEncoderSettings) -> sending any VideoEncoder { ScriptedEncoder() }
        func makeVideoDecoder(_ codec: VideoCodecKind) throws(CodecError) -> sending any VideoDecoder {
            throw .unavailable(codec.rawValue)
        }
        func makeAudioEncoder(_ settings: AudioEncoderSettings) throws(CodecError) -> sending any AudioEncoder {
            throw .unavailable(settings.codec.rawValue)
        }
        func makeAudioDecoder(
            _ codec: AudioCodecKind, channels: Int
        ) throws(CodecError) -> sending any AudioDecoder { throw .unavailable(codec.rawValue) }
        func scale(
            _ buffer: VideoFrameBuffer, width: Int, height: Int, pool: VideoFrameBufferPool?
        ) -> VideoFrameBuffer { buffer }
        func rotate(_ buffer: VideoFrameBuffer, by rotation: VideoRotation) -> VideoFrameBuffer { buffer }
    }

    /// Whether the picture that comes in at this time, in nanoseconds, becomes a key frame.
    private func isKeyFrame(
        at time: Int64, timestamp: Int64, _ encoding: VideoEncoding, _ arrivals: inout AsyncStream<Void>.Iterator
    ) async throws -> Bool {
        encoding.put(VideoFrame(buffer: VideoFrameBuffer(width: 16, height: 16), timestamp: timestamp), now: time)
        await arrivals.next()
        return try #require(encoding.output.takeAll().first).frame.isKeyFrame
    }

    // RTP9: wishes just behind a key frame are served together, and none is lost.
    @Test(.timeLimit(.minutes(1))) func wishesBehindAKeyFrameAreServedByOne() async throws {
        let (wakes, wake) = AsyncStream.makeStream(of: Void.self)
        let encoding = VideoEncoding(
            .init(codec: .vp8, layers: [VideoLayerSettings()], turnsUpright: false), codecs: ScriptedCodecs(),
            wake: { wake.yield() })
        defer { encoding.close() }
        var arrivals = wakes.makeAsyncIterator()
        var keyFrames: [Int64] = []
        for number in Int64(0)..<20 {
            if [1, 2, 12].contains(number) { encoding.requestKeyFrame(layer: 0) }
            if try await isKeyFrame(at: number * 33_000_000, timestamp: 0, encoding, &arrivals) {
                keyFrames.append(number)
            }
        }
        // The first of all; 100 ms after it for both who asked behind it; at once for who asked late.
        #expect(keyFrames == [0, 4, 12])
        // The source's own times do not matter: its clock stood still above, and goes wild here.
        for (number, timestamp) in [Int64.min, .max, 0].enumerated() {
            encoding.requestKeyFrame(layer: 0)
            #expect(
                try await isKeyFrame(
                    at: 1_000_000_000 * Int64(number + 1), timestamp: timestamp, encoding, &arrivals))
        }
        encoding.requestKeyFrame(layer: 7)
    }
}
