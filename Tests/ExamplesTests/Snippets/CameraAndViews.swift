import Foundation
import Sora

func cameraConfiguration(_ url: URL) -> Configuration {
    var configuration = Configuration(url: url, channelId: "room", role: .sendrecv)
    configuration.videoCodec = .vp8
    configuration.videoBitRate = 1_000
    configuration.cameraSettings = CameraSettings(resolution: .hd720p, frameRate: 30, position: .front)
    return configuration
}

@MainActor
final class Stage {
    let view = VideoView(frame: CGRect(x: 0, y: 0, width: 640, height: 360))
    private var channel: MediaChannel?

    func run(_ configuration: Configuration) async throws {
        view.contentMode = .scaleAspectFill
        let channel = try await Sora.shared.connect(configuration: configuration)
        self.channel = channel
        for await stream in channel.remoteStreams() { stream.videoRenderer = view }
    }

    func lookAway() async throws { try await channel?.setVideoHardMute(true) }
    func lookBack() async throws { try await channel?.setVideoHardMute(false) }
    func blank(_ isBlank: Bool) { _ = channel?.setVideoSoftMute(isBlank) }
}

func flipCamera() {
    guard let camera = CameraVideoCapturer.current else { return }
    CameraVideoCapturer.flip(camera) { error in
        if let error { print(error.localizedDescription) }
    }
}

func sendPictures(of generator: (Int) -> RTCI420Buffer, over channel: MediaChannel) async throws {
    guard let stream = channel.senderStream else { return }
    for number in 0..<300 {
        let frame = RTCVideoFrame(
            buffer: generator(number), rotation: ._0, timeStampNs: Int64(number) * 33_333_333)
        stream.send(videoFrame: .native(capturer: nil, frame: frame))
        try await Task.sleep(for: .milliseconds(33))
    }
}

final class Darker: VideoFilter {
    func filter(videoFrame: VideoFrame) -> VideoFrame {
        guard case .native(let capturer, let frame) = videoFrame else { return videoFrame }
        let source = frame.buffer.toI420()
        let result = RTCI420Buffer(width: source.width, height: source.height)
        for row in 0..<Int(source.height) {
            let from = source.dataY + row * Int(source.strideY)
            let to = result.dataY + row * Int(result.strideY)
            for column in 0..<Int(source.width) { to[column] = from[column] / 2 }
        }
        for row in 0..<Int((source.height + 1) / 2) {
            let count = Int(source.chromaWidth)
            (result.dataU + row * Int(result.strideU)).update(
                from: source.dataU + row * Int(source.strideU), count: count)
            (result.dataV + row * Int(result.strideV)).update(
                from: source.dataV + row * Int(source.strideV), count: count)
        }
        return .native(
            capturer: capturer,
            frame: RTCVideoFrame(buffer: result, rotation: frame.rotation, timeStampNs: frame.timeStampNs))
    }
}

func firstPictureSize(over channel: MediaChannel) async -> (width: Int, height: Int)? {
    for await stream in channel.remoteStreams() {
        for await frame in stream.frames() { return (frame.width, frame.height) }
    }
    return nil
}
