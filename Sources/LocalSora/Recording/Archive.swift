import SoraWebM
import SoraWire

/// Bytes for one file of a recording. Paths are relative to the directory of recordings.
package struct FileOutput: Sendable, Equatable {
    package var path: String
    package var offset: Int
    package var bytes: [UInt8]
}

/// What becomes of one connection in a recording: one WebM file (Matroska for H.264), or a piece of it.
final class Archive {
    let id: String
    let path: String
    let startedAt: Instant
    /// Counted from 1 where the recording is split.
    let piece: Int?
    let tracks: [ArchiveTrack]
    private(set) var videoFrames = 0
    private(set) var audioFrames = 0
    private var writer = MatroskaWriter(application: "Local Sora")

    init(id: String, path: String, piece: Int?, tracks: [ArchiveTrack], now: Instant) {
        self.id = id
        self.path = path
        self.piece = piece
        self.tracks = tracks
        startedAt = now
    }

    func track(of track: SenderTrack) -> ArchiveTrack? { tracks.first { $0.track === track } }

    /// - Returns: what is to be written to the file.
    func write(_ frames: [ArchiveTrack.Frame]) -> [FileOutput] {
        for frame in frames {
            switch frame {
            case .video(let frame): if writer.write(frame) { videoFrames += 1 }
            case .audio(let frame): if writer.write(frame, channels: 2) { audioFrames += 1 }
            }
        }
        return takeOutputs()
    }

    func finish() -> [FileOutput] {
        writer.finish()
        return takeOutputs()
    }

    private func takeOutputs() -> [FileOutput] {
        writer.takeOutputs().map { FileOutput(path: path, offset: $0.offset, bytes: $0.bytes) }
    }

    var size: Int { writer.length }
    var milliseconds: Int64 { writer.duration }
    var isEmpty: Bool { videoFrames == 0 && audioFrames == 0 }
}
