import Foundation
internal import SoraLocking

/// What a connection does with cameras and the screen by itself: it opens the camera when the local stream appears
/// and lets go of everything when it ends.
final class ConnectionCamera: Sendable {
    let screen: ScreenCapture
    let hardMute: VideoHardMute
    private let cameras: CameraSystem
    private let isEnded = Locked(false)
    private let opening = Locked(0)
    /// True while the camera is about to run for this connection.
    var isOpening: Bool { opening.read() > 0 || hardMute.isStarting }
    /// For which streams a camera was opened: the application may not know of them yet.
    private let opened = Locked<[WeakStream]>([])

    private struct WeakStream {
        weak var stream: ConnectedStream?
    }

    init(cameras: CameraSystem = .shared, screenOwner: ScreenCaptureOwner = .shared) {
        self.cameras = cameras
        screen = ScreenCapture(owner: screenOwner)
        hardMute = VideoHardMute(cameras: cameras)
    }

    /// Takes the camera of `settings` over for `stream`, or keeps it closed if the application muted it before a
    /// redirect. Failures are logged and do not concern the connection.
    func open(_ settings: CameraSettings, for stream: ConnectedStream) {
        if hardMute.isMuted { return stream.setVideoEnabled(false, by: stream.beginVideoOperation()) }
        opened.withLockUnchecked { opened in
            opened.removeAll { $0.stream == nil }
            opened.append(WeakStream(stream: stream))
        }
        let stream = Transfer(stream)
        opening.withLock { $0 += 1 }
        cameras.perform { [self] in
            defer { opening.withLock { $0 -= 1 } }
            guard !isEnded.read() else { return }
            do {
                let (capturer, format, frameRate) = try CameraChoice.resolve(settings, in: cameras)
                try cameras.stopCurrentNow()
                capturer.stream = stream.value
                try cameras.startNow(capturer, format: format, frameRate: frameRate)
            } catch {
                Logger.error(
                    type: .cameraVideoCapturer, message: "cannot open the camera: \(error.localizedDescription)")
            }
        }
    }

    /// Stops the screen capture, and the camera if it still feeds a stream of this connection, then calls `done`.
    func close(streams: [ConnectedStream], done: @escaping @Sendable () -> Void) {
        isEnded.write(true)
        hardMute.cancel()
        let streams = Transfer(streams + opened.exchange([]).compactMap(\.stream))
        Task { [self] in
            await screen.stop()
            cameras.perform { [self] in
                if let running = cameras.current, streams.value.contains(where: { $0 === running.stream }) {
                    do { try cameras.stopCurrentNow() } catch {
                        Logger.error(
                            type: .cameraVideoCapturer,
                            message: "cannot close the camera: \(error.localizedDescription)")
                    }
                }
                done()
            }
        }
    }
}
