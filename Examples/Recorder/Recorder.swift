// Records the first stream of a channel: pictures to FILE.y4m, sound to FILE.pcm, until the sender leaves or after a
// number of seconds.
//
//     sora serve --port 5000                                              a local server, in another terminal
//     sora publish --channel room                                         somebody to record
//     swift run ExampleRecorder ws://127.0.0.1:5000/signaling room /tmp/take 10
//     ffplay /tmp/take.y4m; ffplay -f s16le -ar 48000 -ac 1 /tmp/take.pcm
//
// The files hold pictures and sound as they are, without codec; `sora watch --record` writes WebM.
import Foundation
import Sora

@main
struct Recorder {
    static func main() async throws {
        let words = CommandLine.arguments
        guard words.count == 5, let url = URL(string: words[1]), let seconds = Double(words[4]) else {
            print("usage: ExampleRecorder SIGNALING-URL CHANNEL FILE SECONDS")
            exit(64)
        }
        Sora.logLevel = .warn

        let configuration = Configuration(url: url, channelId: words[2], role: .recvonly)
        let channel = try await Sora.shared.connect(configuration: configuration)
        // Ends the loops below by ending the connection.
        let timer = Task {
            try await Task.sleep(for: .seconds(seconds))
            for channel in Sora.shared.mediaChannels { channel.disconnect(error: nil) }
        }

        for await stream in channel.remoteStreams() {
            print("recording \(stream.streamId)")
            let sound = try SoundFile(path: words[3] + ".pcm")
            stream.addAudioTrackSink(sound)
            let picture = try PictureFile(path: words[3] + ".y4m")
            for await frame in stream.frames(bufferingNewest: 60) { try picture.append(frame) }
            print("recorded \(picture.count) pictures")
            break
        }
        timer.cancel()
        await channel.disconnect()
        Sora.finish()
    }
}

/// Makes an empty file and opens it for writing.
private func newFile(_ path: String) throws -> FileHandle {
    try Data().write(to: URL(fileURLWithPath: path))
    return try FileHandle(forWritingTo: URL(fileURLWithPath: path))
}

/// Samples as they come, 16 bit, mixed to one channel. Called on one thread of the SDK.
final class SoundFile: RTCAudioTrackSink {
    private let file: FileHandle
    init(path: String) throws { file = try newFile(path) }
    func preferredNumberOfChannels() -> Int { 1 }
    func onData(
        _ audioData: Data, bitsPerSample: Int, sampleRate: Int, numberOfChannels: Int, numberOfFrames: Int
    ) {
        try? file.write(contentsOf: audioData)
    }
}

/// A YUV4MPEG2 file. A picture whose size is not the first one's is left out.
final class PictureFile {
    private let file: FileHandle
    private var size: (width: Int, height: Int)?
    private(set) var count = 0
    init(path: String) throws { file = try newFile(path) }

    func append(_ frame: VideoFrame) throws {
        guard case .native(_, let native) = frame else { return }
        let picture = native.buffer.toI420()
        let (width, height) = (frame.width, frame.height)
        if size == nil {
            size = (width, height)
            try file.write(contentsOf: Data("YUV4MPEG2 W\(width) H\(height) F30:1 Ip A1:1 C420\n".utf8))
        }
        guard let size, size == (width, height) else { return }
        var data = Data("FRAME\n".utf8)
        func add(_ plane: UnsafeMutablePointer<UInt8>, _ stride: Int32, _ columns: Int, _ rows: Int) {
            for row in 0..<rows { data.append(plane + row * Int(stride), count: columns) }
        }
        add(picture.dataY, picture.strideY, width, height)
        add(picture.dataU, picture.strideU, (width + 1) / 2, (height + 1) / 2)
        add(picture.dataV, picture.strideV, (width + 1) / 2, (height + 1) / 2)
        try file.write(contentsOf: data)
        count += 1
    }
}
