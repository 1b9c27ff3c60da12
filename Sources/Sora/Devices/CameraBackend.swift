import Foundation

/// Where cameras come from. Called only on the camera queue, except for ``devices()``.
protocol CameraBackend: Sendable {
    /// The cameras that are plugged in now.
    func devices() -> [AVCaptureDevice]
    /// Opens a camera. Blocks until it runs or has failed.
    ///
    /// - Parameters:
    ///   - onFrame: gets each frame, on a thread of the backend.
    ///   - onFailure: told once when the running camera fails or is unplugged.
    func start(
        device: AVCaptureDevice, format: AVCaptureDevice.Format, frameRate: Int,
        onFrame: @escaping @Sendable (RTCVideoFrame) -> Void, onFailure: @escaping @Sendable (any Error) -> Void
    ) throws -> any CameraCapture
}

/// An open camera.
protocol CameraCapture: AnyObject, Sendable {
    /// Closes the camera. Blocks until no frame comes any more.
    func stop() throws
}

/// A system without cameras.
struct NoCameras: CameraBackend {
    func devices() -> [AVCaptureDevice] { [] }
    func start(
        device: AVCaptureDevice, format: AVCaptureDevice.Format, frameRate: Int,
        onFrame: @escaping @Sendable (RTCVideoFrame) -> Void, onFailure: @escaping @Sendable (any Error) -> Void
    ) throws -> any CameraCapture {
        throw SoraError.cameraError(reason: "no camera support in this build")
    }
}
