internal import SoraFrames

/// Where cameras come from. Called only on the camera queue, except for ``devices()``.
protocol CameraBackend: Sendable {
    /// The cameras that are plugged in now.
    func devices() -> [CameraDescription]
    /// Opens a camera. Blocks until it runs or has failed.
    ///
    /// - Parameters:
    ///   - camera: the ``CameraDescription/id``.
    ///   - size: in pixels, one of the camera's formats.
    ///   - onFrame: gets each frame, on a thread of the backend.
    ///   - onFailure: told once when the running camera fails or is unplugged.
    func start(
        camera: String, size: CameraDescription.Size, frameRate: Int,
        onFrame: @escaping @Sendable (SoraFrames.VideoFrame) -> Void,
        onFailure: @escaping @Sendable (any Error) -> Void
    ) throws -> any CameraCapture
}

/// A camera as its backend describes it.
struct CameraDescription: Sendable {
    /// Where the camera looks.
    enum Position: Sendable {
        case unspecified
        case back
        case front
    }
    struct Size: Sendable, Equatable {
        var width: Int
        var height: Int
    }
    struct Format: Sendable, Equatable {
        var size: Size
        /// Pictures a second. Discrete rates are ranges of no width.
        var frameRates: [ClosedRange<Double>]
    }

    /// Stays the same while the camera is plugged in.
    var id: String
    /// For people.
    var name: String
    var position: Position
    var formats: [Format]
}

/// An open camera.
protocol CameraCapture: AnyObject, Sendable {
    /// Closes the camera. Blocks until no frame comes any more.
    func stop() throws
}

/// A system without cameras.
struct NoCameras: CameraBackend {
    func devices() -> [CameraDescription] { [] }
    func start(
        camera: String, size: CameraDescription.Size, frameRate: Int,
        onFrame: @escaping @Sendable (SoraFrames.VideoFrame) -> Void,
        onFailure: @escaping @Sendable (any Error) -> Void
    ) throws -> any CameraCapture {
        throw SoraError.cameraError(reason: "no camera support in this build")
    }
}
