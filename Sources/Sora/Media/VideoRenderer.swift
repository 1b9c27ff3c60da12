import Foundation

/// Shows the video of a stream. Every member is called on the main queue.
public protocol VideoRenderer: AnyObject {
    /// The size of the frames that follow.
    func onChange(size: CGSize)
    /// A frame to show. At most four wait for the main queue; newer ones are dropped.
    func render(videoFrame: VideoFrame?)
    /// The stream ended with its connection.
    func onDisconnect(from: MediaChannel?)
    /// The renderer was given to a stream. Comes before the first size and frame.
    func onAdded(from: any MediaStream)
    /// The renderer was taken from a stream.
    func onRemoved(from: any MediaStream)
    /// The stream's video was switched on or off.
    func onSwitch(video: Bool)
    /// The stream's audio was switched on or off.
    func onSwitch(audio: Bool)
}
