internal import SoraLocking

/// Callbacks for all cameras.
public class CameraVideoCapturerHandlers {
    private let captureSlot = Locked<((CameraVideoCapturer, VideoFrame) -> VideoFrame)?>(nil)
    private let startSlot = Locked<((CameraVideoCapturer) -> Void)?>(nil)
    private let stopSlot = Locked<((CameraVideoCapturer) -> Void)?>(nil)

    public init() {}

    /// Gets every frame and returns the one to send.
    public var onCapture: ((CameraVideoCapturer, VideoFrame) -> VideoFrame)? {
        get { captureSlot.read() }
        set { captureSlot.write(newValue) }
    }
    /// A camera started.
    public var onStart: ((CameraVideoCapturer) -> Void)? {
        get { startSlot.read() }
        set { startSlot.write(newValue) }
    }
    /// A camera stopped.
    public var onStop: ((CameraVideoCapturer) -> Void)? {
        get { stopSlot.read() }
        set { stopSlot.write(newValue) }
    }
}
