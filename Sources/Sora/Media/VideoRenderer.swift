import Foundation

/// Shows the video of a stream. Every member is called on the main queue.
public protocol VideoRenderer: AnyObject {
    /// The size of the frames that follow.
    func onChange(size: CGSize)
    func render(videoFrame: VideoFrame?)
    /// The stream ended with its connection.
    func onDisconnect(from: MediaChannel?)
    func onAdded(from: any MediaStream)
    func onRemoved(from: any MediaStream)
    func onSwitch(video: Bool)
    func onSwitch(audio: Bool)
}
