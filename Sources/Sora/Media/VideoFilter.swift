/// Changes frames before they are sent.
public protocol VideoFilter: AnyObject {
    /// Called for one frame after the other of a stream, never on the thread that sent the frame.
    func filter(videoFrame: VideoFrame) -> VideoFrame
}
