import Foundation
internal import SoraFrames
internal import SoraLocking

/// The cameras of the process and the one order of everything that is done with them.
///
/// Invariant: at most one capturer runs; it is ``current``. All changes happen on the camera queue, each operation as
/// a whole together with its callbacks.
final class CameraSystem: Sendable {
    static let shared = CameraSystem(backend: DeviceBackends.cameras)

    typealias Completion = ((any Error)?) -> Void

    private struct State {
        var backend: any CameraBackend
        var current: CameraVideoCapturer?
        var positioned: [AVCaptureDevice.Position: CameraVideoCapturer] = [:]
        var isQuarantined = false
        var runningFlips = 0
        var nextRun = 1
    }
    private let state: Locked<State>
    private let handlersSlot = Locked(CameraVideoCapturerHandlers())
    private let queue: DispatchQueue
    /// Taken by a hard mute for the time of its call: there is one at a time.
    let hardMuteLease = Locked<ObjectIdentifier?>(nil)

    /// - Parameter queue: the queue of the process; tests of a private system bring their own.
    init(backend: any CameraBackend, queue: DispatchQueue = SoraDispatcher.camera.dispatchQueue) {
        state = Locked(State(backend: backend))
        self.queue = queue
    }

    var handlers: CameraVideoCapturerHandlers {
        get { handlersSlot.read() }
        set { handlersSlot.write(newValue) }
    }
    /// Where the cameras are. With another one the capturers of the positions are others, too.
    var backend: any CameraBackend {
        get { state.withLock { $0.backend } }
        set {
            let former = state.withLockUnchecked { state in
                defer {
                    state.backend = newValue
                    state.positioned = [:]
                }
                return (state.backend, state.positioned)
            }
            withExtendedLifetime(former) {}
        }
    }
    var current: CameraVideoCapturer? { state.withLock { $0.current } }
    var devices: [AVCaptureDevice] { backend.devices().map(AVCaptureDevice.init) }

    static func device(
        for position: AVCaptureDevice.Position, among devices: [AVCaptureDevice]
    ) -> AVCaptureDevice? {
        position == .unspecified ? nil : devices.first { $0.position == position }
    }

    /// The permanent capturer of a position. Its device is looked up again if it vanished.
    func capturer(at position: AVCaptureDevice.Position) -> CameraVideoCapturer? {
        let devices = self.devices
        let found = Self.device(for: position, among: devices)
        return state.withLock { state in
            if let known = state.positioned[position] {
                if let found, !known.isRunning, !devices.contains(known.device) { known.device = found }
                return known
            }
            guard let found else { return nil }
            let capturer = CameraVideoCapturer(device: found)
            state.positioned[position] = capturer
            return capturer
        }
    }

    // MARK: Operations of the application

    func start(
        _ capturer: CameraVideoCapturer, format: AVCaptureDevice.Format, frameRate: Int,
        _ completion: @escaping Completion
    ) {
        perform(completion) { [self] in
            try checkStart(of: capturer)
            if current != nil { throw Self.error("another camera is already running") }
            if capturer.isRunning { throw Self.error("isRunning should be false") }
            try open(capturer, format: format, frameRate: frameRate, isRequest: true)
            return { [self] in handlers.onStart?(capturer) }
        }
    }

    func stop(_ capturer: CameraVideoCapturer, _ completion: @escaping Completion) {
        perform(completion) { [self] in
            guard current === capturer else { throw Self.error("capturer is not the current camera") }
            guard capturer.isRunning else { throw Self.error("isRunning should be true") }
            try close(capturer)
            return { [self] in handlers.onStop?(capturer) }
        }
    }

    func restart(_ capturer: CameraVideoCapturer, _ completion: @escaping Completion) {
        perform(completion) { [self] in
            try checkStart(of: capturer)
            if let current, current !== capturer { throw Self.error("another camera is already running") }
            if capturer.isRunning, current !== capturer { throw Self.error("capturer is not the current camera") }
            guard let format = capturer.format else { throw Self.error("failed to access format") }
            guard let frameRate = capturer.frameRate else { throw Self.error("failed to access frame rate") }
            if capturer.isRunning {
                try close(capturer)
                handlers.onStop?(capturer)
            }
            try open(capturer, format: format, frameRate: frameRate, isRequest: false)
            return { [self] in handlers.onStart?(capturer) }
        }
    }

    func change(
        _ capturer: CameraVideoCapturer, format: AVCaptureDevice.Format?, frameRate: Int?,
        _ completion: @escaping Completion
    ) {
        perform(completion) { [self] in
            try checkStart(of: capturer)
            guard current === capturer else { throw Self.error("capturer is not the current camera") }
            guard capturer.isRunning else { throw Self.error("isRunning should be true") }
            guard let newFormat = format ?? capturer.format else { throw Self.error("failed to access format") }
            guard let newRate = frameRate ?? capturer.frameRate else {
                throw Self.error("failed to access frame rate")
            }
            try close(capturer)
            handlers.onStop?(capturer)
            try open(capturer, format: newFormat, frameRate: newRate, isRequest: true)
            return { [self] in handlers.onStart?(capturer) }
        }
    }

    func flip(_ capturer: CameraVideoCapturer, _ completion: @escaping Completion) {
        let isSecond = state.withLock { state in
            defer { state.runningFlips += 1 }
            return state.runningFlips > 0
        }
        let whole: Completion = { [self] error in
            state.withLock { $0.runningFlips -= 1 }
            completion(error)
        }
        perform(whole) { [self] in
            try checkStart(of: capturer)
            guard current === capturer else { throw Self.error("capturer is not the current camera") }
            guard !isSecond else { throw Self.error("camera flip is already in progress") }
            guard let format = capturer.format else { throw Self.error("format should not be nil") }
            guard let frameRate = capturer.frameRate else { throw Self.error("frameRate should not be nil") }
            let position: AVCaptureDevice.Position = capturer.position == .front ? .back : .front
            guard let target = self.capturer(at: position) else {
                throw Self.error("\(position == .back ? "back" : "front") camera is not found")
            }
            // What was asked for, not what this camera happened to deliver: flipping twice must lead back to it.
            let wanted: (size: CMVideoDimensions, frameRate: Int) =
                capturer.state.withLock { $0.requested }
                ?? (CMVideoFormatDescriptionGetDimensions(format.formatDescription), frameRate)
            guard
                let newFormat = CameraVideoCapturer.format(
                    width: wanted.size.width, height: wanted.size.height, for: target.device,
                    frameRate: wanted.frameRate)
            else { throw Self.error("CameraVideoCapturer.format failed: suitable format is not found") }
            guard let newRate = CameraVideoCapturer.maxFrameRate(wanted.frameRate, for: newFormat) else {
                throw Self.error("CameraVideoCapturer.maxFramerate failed: suitable frameRate is not found")
            }
            try close(capturer)
            handlers.onStop?(capturer)
            let stream = capturer.stream
            let formerStream = target.stream
            target.stream = stream
            capturer.stream = nil
            do {
                try open(target, format: newFormat, frameRate: newRate, isRequest: false)
            } catch {
                target.stream = formerStream
                capturer.stream = stream
                Logger.error(type: .cameraVideoCapturer, message: "flip failed: \(error.localizedDescription)")
                throw Self.error("CameraVideoCapturer.start failed")
            }
            target.state.withLock { $0.requested = wanted }
            return { [self] in handlers.onStart?(target) }
        }
    }

    // MARK: Operations of connections

    /// Runs `body` as one operation in the order of all camera operations. Inside, the `…Now` functions may be called.
    func perform(_ body: @escaping () -> Void) {
        let body = Transfer(body)
        queue.async { body.value() }
    }

    /// Stops whatever camera runs. Inside ``perform(_:)`` only.
    func stopCurrentNow() throws {
        guard let running = current else { return }
        try close(running)
        handlers.onStop?(running)
    }

    /// Starts a stopped camera. Inside ``perform(_:)`` only.
    func startNow(_ capturer: CameraVideoCapturer, format: AVCaptureDevice.Format, frameRate: Int) throws {
        try checkStart(of: capturer)
        try open(capturer, format: format, frameRate: frameRate, isRequest: true)
        handlers.onStart?(capturer)
    }

    // MARK: Parts of operations, on the camera queue

    /// Runs an operation; what it returns is done after the completion handler.
    private func perform(_ completion: @escaping Completion, _ operation: @escaping () throws -> () -> Void) {
        perform {
            do {
                let afterwards = try operation()
                completion(nil)
                afterwards()
            } catch {
                completion(error)
            }
        }
    }

    private func checkStart(of capturer: CameraVideoCapturer) throws {
        if state.withLock({ $0.isQuarantined }) {
            throw Self.error("camera capture is quarantined after a cleanup failure")
        }
        if let stream = capturer.stream, ScreenCaptureOwner.shared.captures(stream) {
            throw Self.error("screen capture is active on the camera stream")
        }
    }

    private func open(
        _ capturer: CameraVideoCapturer, format: AVCaptureDevice.Format, frameRate: Int, isRequest: Bool
    ) throws {
        let number = state.withLock { state in
            defer { state.nextRun += 1 }
            return state.nextRun
        }
        let capture = try backend.start(
            camera: capturer.device.uniqueID, size: CameraDescription.Size(format), frameRate: frameRate,
            onFrame: { [weak self, weak capturer] frame in
                guard let self, let capturer else { return }
                forward(frame, from: capturer)
            },
            onFailure: { [weak self, weak capturer] error in
                guard let self, let capturer else { return }
                perform { self.captureFailed(capturer, number: number, error) }
            })
        capturer.state.withLock { state in
            state.run = CameraVideoCapturer.Run(capture: capture, number: number)
            state.format = format
            state.frameRate = frameRate
            if isRequest {
                state.requested = (CMVideoFormatDescriptionGetDimensions(format.formatDescription), frameRate)
            }
        }
        capturer.session.setRunning(true)
        state.write(capturer, to: \.current)
    }

    private func close(_ capturer: CameraVideoCapturer) throws {
        guard let run = capturer.state.withLock({ $0.run }) else { return }
        do {
            try run.capture.stop()
        } catch {
            state.write(true, to: \.isQuarantined)
            throw error
        }
        state.write(false, to: \.isQuarantined)
        markStopped(capturer)
    }

    private func markStopped(_ capturer: CameraVideoCapturer) {
        capturer.state.write(nil, to: \.run)
        capturer.session.setRunning(false)
        let released = state.withLock { state -> CameraVideoCapturer? in
            guard state.current === capturer else { return nil }
            defer { state.current = nil }
            return state.current
        }
        withExtendedLifetime(released) {}
    }

    private func captureFailed(_ capturer: CameraVideoCapturer, number: Int, _ error: any Error) {
        guard capturer.state.withLock({ $0.run?.number }) == number else { return }
        Logger.error(
            type: .cameraVideoCapturer,
            message: "camera \(capturer.device.localizedName) failed: \(error.localizedDescription)")
        markStopped(capturer)
        handlers.onStop?(capturer)
    }

    /// On a thread of the backend.
    private func forward(_ picture: SoraFrames.VideoFrame, from capturer: CameraVideoCapturer) {
        let frame = VideoFrame(picture)
        let filtered = handlers.onCapture?(capturer, frame) ?? frame
        capturer.stream?.send(videoFrame: filtered)
    }

    static func error(_ reason: String) -> SoraError { .cameraError(reason: reason) }
}
