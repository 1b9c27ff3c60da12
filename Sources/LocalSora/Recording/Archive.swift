import SoraMessages
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

/// A recording of a channel, from `StartRecording` to `StopRecording` or the end of the session.
struct Recording {
    let id: String
    let request: RecordingRequest
    let startedAt: Instant
    var expiresAt: Instant?
    var nextSplit: Instant?
    var piece = 1
    var archives: [ConnectionID: Archive] = [:]
    /// How many files it made.
    var files = 0
}

/// What a recording is to be (spec/signaling.md 9.4 gives the names).
package struct RecordingRequest: Sendable, Equatable {
    /// Ends by itself after this time.
    package var expireTime: Duration?
    /// A new file begins after this time.
    package var splitDuration: Duration?
    package var metadata: JSONValue?

    package init(expireTime: Duration? = nil, splitDuration: Duration? = nil, metadata: JSONValue? = nil) {
        self.expireTime = expireTime
        self.splitDuration = splitDuration
        self.metadata = metadata
    }
}

/// Something that happened to a recording, for event webhooks.
package struct RecordingEvent: Sendable {
    package enum Kind: Sendable, Equatable {
        case started
        /// Ended; every file is closed or about to be.
        case report(files: Int)
        case archiveStarted
        /// The file is whole once what was to be written has been.
        case archiveEnded
    }
    package var kind: Kind
    package var recordingID: String
    package var session: SessionRecord
    package var metadata: JSONValue?
    /// Seconds since 1970.
    package var startedTime: Double
    package var archive: ArchiveRecord?
}

/// One file of a recording.
package struct ArchiveRecord: Sendable {
    package var id: String
    package var path: String
    package var connection: ConnectionRecord
    /// Counted from 1 where the recording is split.
    package var piece: Int?
    /// The last piece of its connection.
    package var isLast: Bool
    /// Seconds since 1970.
    package var startedTime: Double
    package var endedTime: Double
    package var bytes: Int
    package var milliseconds: Int64
    package var videoFrames: Int
    package var audioFrames: Int
}
