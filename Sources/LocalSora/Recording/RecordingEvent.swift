import SoraMessages

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
