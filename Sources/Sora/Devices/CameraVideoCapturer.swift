import Foundation
internal import SoraLocking

/// A camera as a source of frames. One camera runs per process.
///
/// Everything may be called from any thread and returns at once. Operations run one after the other for the whole
/// process; each calls its completion handler before ``CameraVideoCapturerHandlers/onStart``.
public final class CameraVideoCapturer: Sendable {
    struct Run {
        var capture: any CameraCapture
        var number: Int
    }
    struct State {
        var device: AVCaptureDevice
        weak var stream: (any MediaStream)?
        var format: AVCaptureDevice.Format?
        var frameRate: Int?
        /// What the application asked for, kept over flips to cameras that cannot do it.
        var requested: (size: CMVideoDimensions, frameRate: Int)?
        var run: Run?
    }

    let state: Locked<State>
    let session = AVCaptureSession()

    /// A capturer for a device of ``devices``.
    public init(device: AVCaptureDevice) { state = Locked(State(device: device)) }

    // MARK: Cameras of the system

    /// The cameras that are plugged in now.
    public static var devices: [AVCaptureDevice] { CameraSystem.shared.devices }
    /// The capturer of the front camera, always the same; nil without one.
    public static var front: CameraVideoCapturer? { CameraSystem.shared.capturer(at: .front) }
    /// The capturer of the back camera, always the same; nil without one.
    public static var back: CameraVideoCapturer? { CameraSystem.shared.capturer(at: .back) }
    /// The running capturer.
    public static var current: CameraVideoCapturer? { CameraSystem.shared.current }
    /// Callbacks for all cameras of the process.
    public static var handlers: CameraVideoCapturerHandlers {
        get { CameraSystem.shared.handlers }
        set { CameraSystem.shared.handlers = newValue }
    }

    /// The first device with that position.
    public static func device(for position: AVCaptureDevice.Position) -> AVCaptureDevice? {
        CameraSystem.device(for: position, among: devices)
    }

    /// Among the formats nearest in size the first that reaches `frameRate`, else the first.
    public static func format(
        width: Int32, height: Int32, for device: AVCaptureDevice, frameRate: Int? = nil
    ) -> AVCaptureDevice.Format? {
        func distance(_ format: AVCaptureDevice.Format) -> Int {
            let size = CMVideoFormatDescriptionGetDimensions(format.formatDescription)
            return abs(Int(size.width) - Int(width)) + abs(Int(size.height) - Int(height))
        }
        guard let smallest = device.formats.map(distance).min() else { return nil }
        let nearest = device.formats.filter { distance($0) == smallest }
        guard let frameRate else { return nearest.first }
        return nearest.first { $0.videoSupportedFrameRateRanges.contains { $0.contains(frameRate) } } ?? nearest.first
    }

    /// `frameRate` if the format reaches it, else the format's highest rate; nil if it has none.
    public static func maxFrameRate(_ frameRate: Int, for format: AVCaptureDevice.Format) -> Int? {
        let ranges = format.videoSupportedFrameRateRanges
        if ranges.contains(where: { $0.contains(frameRate) }) { return frameRate }
        return ranges.map { Int(clamping: $0.maxFrameRate) }.max()
    }

    /// Stops the running capturer and starts the one of the opposite position with its stream.
    public static func flip(_ capturer: CameraVideoCapturer, completionHandler: @escaping (((any Error)?) -> Void)) {
        CameraSystem.shared.flip(capturer, completionHandler)
    }

    // MARK: This capturer

    /// Tells whether frames come.
    public var captureSession: AVCaptureSession { session }
    /// Where frames go. Held weakly.
    public var stream: (any MediaStream)? {
        get { state.withLock { $0.stream } }
        set { state.withLockUnchecked { $0.stream = newValue } }
    }
    /// True between a successful start and the stop.
    public var isRunning: Bool { state.withLock { $0.run != nil } }
    /// The side of ``device``.
    public var position: AVCaptureDevice.Position { device.position }
    /// The camera that is opened.
    public var device: AVCaptureDevice {
        get { state.withLock { $0.device } }
        set { state.write(newValue, to: \.device) }
    }
    /// Of the last successful start.
    public var frameRate: Int? { state.withLock { $0.frameRate } }
    /// Of the last successful start.
    public var format: AVCaptureDevice.Format? { state.withLock { $0.format } }

    /// Opens the camera. Fails while another one runs.
    public func start(
        format: AVCaptureDevice.Format, frameRate: Int, completionHandler: @escaping (((any Error)?) -> Void)
    ) {
        CameraSystem.shared.start(self, format: format, frameRate: frameRate, completionHandler)
    }
    /// Closes the camera.
    public func stop(completionHandler: @escaping (((any Error)?) -> Void)) {
        CameraSystem.shared.stop(self, completionHandler)
    }
    /// Starts again with the format of the last start.
    public func restart(completionHandler: @escaping (((any Error)?) -> Void)) {
        CameraSystem.shared.restart(self, completionHandler)
    }
    /// Goes on with another format or frame rate.
    public func change(
        format: AVCaptureDevice.Format? = nil, frameRate: Int? = nil,
        completionHandler: @escaping (((any Error)?) -> Void)
    ) {
        CameraSystem.shared.change(self, format: format, frameRate: frameRate, completionHandler)
    }
}

extension AVFrameRateRange {
    /// The ends are cut to whole numbers for the comparison.
    func contains(_ rate: Int) -> Bool {
        rate >= Int(clamping: minFrameRate) && rate <= Int(clamping: maxFrameRate)
    }
}

extension Int {
    /// The number without its fraction; the nearest `Int` for what does not fit.
    fileprivate init(clamping value: Double) {
        self = value.isNaN ? 0 : value >= 9e18 ? .max : value <= -9e18 ? .min : Int(value)
    }
}

extension Locked {
    /// Replaces one member.
    func write<Member>(_ newValue: Member, to member: WritableKeyPath<Value, Member>) {
        let old = withLockUnchecked { value in
            let old = value[keyPath: member]
            value[keyPath: member] = newValue
            return old
        }
        withExtendedLifetime(old) {}
    }
}
