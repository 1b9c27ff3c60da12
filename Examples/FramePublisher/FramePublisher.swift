// Publishes generated frames: a bright bar that moves over a dark picture, 30 times a second.
//
//     sora serve --port 5000                                              a local server, in another terminal
//     swift run ExampleFramePublisher ws://127.0.0.1:5000/signaling room 10
//     sora watch --channel room                                           to see it
//
// The last word is how many seconds it sends. Whatever makes pictures can stand in the place of `picture(_:)`.
import Foundation
import Sora

@main
struct FramePublisher {
    static let width = 320
    static let height = 180
    static let framesPerSecond = 30

    static func main() async throws {
        let words = CommandLine.arguments
        guard words.count == 4, let url = URL(string: words[1]), let seconds = Int(words[3]) else {
            print("usage: ExampleFramePublisher SIGNALING-URL CHANNEL SECONDS")
            exit(64)
        }
        Sora.logLevel = .warn

        var configuration = Configuration(url: url, channelId: words[2], role: .sendonly)
        configuration.audioEnabled = false
        configuration.videoCodec = .vp8
        configuration.videoBitRate = 500
        configuration.initialCameraEnabled = false  // The application is the camera.

        let channel = try await Sora.shared.connect(configuration: configuration)
        guard let stream = channel.senderStream else { throw SoraError.mediaChannelError(reason: "no stream to send") }

        let clock = ContinuousClock()
        let start = clock.now
        for number in 0..<(seconds * framesPerSecond) {
            guard channel.isAvailable else { break }
            let time = Int64(number) * 1_000_000_000 / Int64(framesPerSecond)
            let frame = RTCVideoFrame(buffer: picture(number), rotation: ._0, timeStampNs: time)
            stream.send(videoFrame: .native(capturer: nil, frame: frame))
            try await clock.sleep(until: start + .nanoseconds(time))
        }

        let sent = try await channel.getStatsSnapshot().entries.first { $0.type == "outbound-rtp" }
        if case .decimal(let packets)? = sent?.values["packetsSent"] { print("sent \(packets) packets") }
        await channel.disconnect()
        Sora.finish()
    }

    /// One picture: luma is drawn, chroma stays grey.
    static func picture(_ number: Int) -> RTCI420Buffer {
        let buffer = RTCI420Buffer(width: Int32(width), height: Int32(height))
        let bar = number * 4 % width
        for row in 0..<height {
            let line = buffer.dataY + row * Int(buffer.strideY)
            for column in 0..<width { line[column] = abs(column - bar) < 16 ? 220 : 40 }
        }
        for row in 0..<(height + 1) / 2 {
            (buffer.dataU + row * Int(buffer.strideU)).update(repeating: 128, count: Int(buffer.chromaWidth))
            (buffer.dataV + row * Int(buffer.strideV)).update(repeating: 128, count: Int(buffer.chromaWidth))
        }
        return buffer
    }
}
