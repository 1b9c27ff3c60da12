import Foundation
internal import SoraLocking

/// The camera side of `setVideoHardMute`: one call at a time in the whole process, and what each connection remembers.
final class VideoHardMute: Sendable {
    private struct State {
        /// The camera that this connection stopped.
        var stopped: CameraVideoCapturer?
        var isCancelled = false
        var isStarting = false
        var isMuted = false
    }
    private let state = Locked(State())
    private let cameras: CameraSystem

    init(cameras: CameraSystem = .shared) { self.cameras = cameras }

    /// The connection ends: a call in progress fails, and nothing is remembered.
    func cancel() {
        let old = state.withLock { state in
            state.isCancelled = true
            defer { state.stopped = nil }
            return state.stopped
        }
        withExtendedLifetime(old) {}
    }

    /// True while a call starts the camera.
    var isStarting: Bool { state.withLock { $0.isStarting } }
    var isCancelled: Bool { state.withLock { $0.isCancelled } }
    /// The application muted last: a stream that comes later, after a redirect, must not open the camera by itself.
    var isMuted: Bool { state.withLock { $0.isMuted } }

    /// Stops or starts the camera for `stream` and settles its `videoEnabled`.
    nonisolated(nonsending) func set(
        _ mute: Bool, stream: ConnectedStream, settings: CameraSettings, screen: ScreenCapture
    ) async throws {
        guard settings.isEnabled else { throw Self.error("cameraSettings.isEnabled is false") }
        guard takeLease() else { throw Self.error("video hard mute operation is in progress") }
        defer { returnLease() }
        let ticket = stream.beginVideoOperation()
        if mute {
            let before = stream.videoEnabled
            stream.setVideoEnabled(false, by: ticket)
            do {
                try await onCameraQueue { [self] in try stopCamera(of: stream) }
            } catch {
                if !isCancelled { stream.setVideoEnabled(before, by: ticket) }
                throw error
            }
            if isCancelled { throw Self.error("video hard mute operation was cancelled") }
            state.write(true, to: \.isMuted)
        } else {
            state.withLock { $0.isStarting = true }
            defer { state.withLock { $0.isStarting = false } }
            guard !screen.isActive else {
                throw Self.error("screen capture is active, stopScreenCapture before setVideoHardMute(false)")
            }
            try await onCameraQueue { [self] in try startCamera(for: stream, settings) }
            if isCancelled { throw Self.error("video hard mute operation was cancelled") }
            state.write(false, to: \.isMuted)
            stream.setVideoEnabled(true, by: ticket)
        }
    }

    private func takeLease() -> Bool {
        cameras.hardMuteLease.withLock { lease in
            guard lease == nil else { return false }
            lease = ObjectIdentifier(self)
            return true
        }
    }
    private func returnLease() {
        cameras.hardMuteLease.withLock { if $0 == ObjectIdentifier(self) { $0 = nil } }
    }

    nonisolated(nonsending) private func onCameraQueue(_ body: @escaping () throws -> Void) async throws {
        let outcome = OneShot<Void>()
        let body = Transfer(body)
        cameras.perform { outcome.settle(Result { try body.value() }) }
        try await withTaskCancellationHandler {
            try await outcome.value()
        } onCancel: {
            outcome.settle(.failure(CancellationError()))
        }
    }

    private func stopCamera(of stream: ConnectedStream) throws {
        guard let running = cameras.current, running.stream === stream else { return }
        try cameras.stopCurrentNow()
        state.withLock { if !$0.isCancelled { $0.stopped = running } }
    }

    private func startCamera(for stream: ConnectedStream, _ settings: CameraSettings) throws {
        if isCancelled { throw Self.error("video hard mute operation was cancelled") }
        // Once a camera runs for the stream, what was stopped before is of no interest any more.
        if let running = cameras.current, running.stream === stream { return state.write(nil, to: \.stopped) }
        if let remembered = state.withLock({ $0.stopped }), let format = remembered.format,
            let frameRate = remembered.frameRate
        {
            try cameras.stopCurrentNow()
            remembered.stream = stream
            try cameras.startNow(remembered, format: format, frameRate: frameRate)
            state.write(nil, to: \.stopped)
            return
        }
        let (capturer, format, frameRate) = try CameraChoice.resolve(settings, in: cameras)
        try cameras.stopCurrentNow()
        capturer.stream = stream
        try cameras.startNow(capturer, format: format, frameRate: frameRate)
    }

    private static func error(_ reason: String) -> SoraError { .mediaChannelError(reason: reason) }
}

/// The camera, format and rate for ``CameraSettings``.
enum CameraChoice {
    static func resolve(
        _ settings: CameraSettings, in cameras: CameraSystem
    ) throws -> (CameraVideoCapturer, AVCaptureDevice.Format, Int) {
        guard settings.position != .unspecified else {
            throw CameraSystem.error("CameraSettings.position should not be .unspecified")
        }
        guard let capturer = cameras.capturer(at: settings.position) else {
            throw CameraSystem.error("\(settings.position == .front ? "front" : "back") camera is not found")
        }
        guard cameras.devices.contains(capturer.device) else {
            throw CameraSystem.error("camera device is not found for position")
        }
        guard
            let format = CameraVideoCapturer.format(
                width: settings.resolution.width, height: settings.resolution.height, for: capturer.device,
                frameRate: settings.frameRate),
            let frameRate = CameraVideoCapturer.maxFrameRate(settings.frameRate, for: format)
        else { throw CameraSystem.error("failed to resolve camera settings") }
        return (capturer, format, frameRate)
    }
}
