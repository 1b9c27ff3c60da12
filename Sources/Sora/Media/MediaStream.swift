import Foundation

/// The range of ``MediaStream/remoteAudioVolume``.
public enum MediaStreamAudioVolume {
    /// Silence.
    public static let min: Double = 0
    /// Ten times as loud as sent.
    public static let max: Double = 10
}

/// A video and an audio track that belong together: the local one that is sent, or one of a remote member.
public protocol MediaStream: AnyObject {
    /// Callbacks for switches of this stream.
    var handlers: MediaStreamHandlers { get }
    /// `Configuration.publisherStreamId` for the local stream, the sender's connection id for a remote one.
    var streamId: String { get }
    /// When the stream object was made.
    var creationTime: Date { get }
    /// The connection; nil once it was released.
    var mediaChannel: MediaChannel? { get }
    /// Off: a local track sends black, a remote one is not shown.
    var videoEnabled: Bool { get set }
    /// Off: a local track sends silence, a remote one is not played.
    var audioEnabled: Bool { get set }
    /// Whether the stream has video at all, enabled or not.
    var hasVideoTrack: Bool { get }
    /// Whether the stream has audio at all, enabled or not.
    var hasAudioTrack: Bool { get }
    /// Gain of a remote stream, clamped to ``MediaStreamAudioVolume``; initially 1. Nil without an audio track.
    var remoteAudioVolume: Double? { get set }
    /// Hands the stream's sound to `sink` until it is removed or the stream ends. Adding twice adds once.
    func addAudioTrackSink(_ sink: any RTCAudioTrackSink)
    /// Ends what ``addAudioTrackSink(_:)`` began.
    func removeAudioTrackSink(_ sink: any RTCAudioTrackSink)
    /// Changes frames before they are sent.
    var videoFilter: (any VideoFilter)? { get set }
    /// Shows the stream's video. Held weakly.
    var videoRenderer: (any VideoRenderer)? { get set }
    /// Sends a frame, which must not be changed afterwards. Returns at once; a frame is dropped when four wait.
    func send(videoFrame: VideoFrame?)
    /// Ends the stream. Applications normally leave that to the connection.
    func terminate()
}
