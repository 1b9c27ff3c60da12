import SoraMessages
import SoraWire

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

extension RecordingRequest {
    /// No piece of a recording is shorter, in seconds: pieces without length would keep the loop busy with
    /// nothing but opening files.
    static let shortestSplit = 1.0

    /// Seconds, at least `least` and less than a year.
    /// - Returns: what `json` says, which is nil where it says nothing; nil itself if it is no such number.
    static func duration(_ json: JSONValue?, atLeast least: Double = 0.001) -> Duration?? {
        guard let json, !json.isNull else { return .some(nil) }
        guard let seconds = json.doubleValue, seconds >= least, seconds < 31_536_000 else { return nil }
        return .some(.milliseconds(Int64(seconds * 1000)))
    }

    /// From the answer of the session webhook (spec/signaling.md 9.4); nil if a value is wrong.
    init?(sessionAnswer answer: JSONObject) {
        guard let expire = Self.duration(answer["recording_expire_time"]),
            let split = Self.duration(answer["recording_split_duration"], atLeast: Self.shortestSplit)
        else { return nil }
        self.init(expireTime: expire, splitDuration: split, metadata: answer["recording_metadata"])
    }
}
