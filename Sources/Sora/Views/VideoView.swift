import Foundation

/// What a view does by itself when its stream comes, goes, or is switched.
public enum VideoViewConnectionMode: Sendable {
    /// Starts and stops.
    case auto
    /// Starts, stops and clears.
    case autoClear
    /// Nothing.
    case manual
}

/// Shows the video of a stream in a window. Without a display it still follows the stream and draws nothing.
@MainActor public class VideoView: UIView {
    public var connectionMode = VideoViewConnectionMode.autoClear
    /// True while frames are shown.
    public private(set) var isRendering = false
    /// Shown by ``clear()`` in place of black.
    public var backgroundView: UIView? {
        willSet { backgroundView?.removeFromSuperview() }
        didSet { if let backgroundView { addSubview(backgroundView) } }
    }
    /// Size of the last frame that was shown.
    public var currentVideoFrameSize: CGSize? { shownSize }
    /// Writes size and frame rate over the picture and to the log, each second.
    public var debugMode: Bool {
        get { debugTimer != nil }
        set { newValue ? startDebugging() : stopDebugging() }
    }

    /// A start waits for its turn on the main queue.
    private var isStarting = false
    private var surface: (any VideoSurface)?
    private var hasAskedForSurface = false
    private var shownSize: CGSize?
    private(set) var debugTimer: (any DispatchSourceTimer)?
    private var framesInSecond = 0
    private var overlay: String?

    /// A view whose window has the size of `frame` and fits pictures into it.
    public override init(frame: CGRect) {
        super.init(frame: frame)
        contentMode = .scaleAspectFit
    }

    /// Nil: there are no archives of views on Linux.
    public required init?(coder: NSCoder) {
        super.init(coder: coder)
    }

    isolated deinit {
        debugTimer?.cancel()
        surface?.close()
    }

    /// Begins to show frames.
    public func start() {
        guard !isRendering, !isStarting else { return }
        isStarting = true
        DispatchQueue.main.async { [weak self] in
            // A stop in between takes the start back.
            guard let self, isStarting else { return }
            isStarting = false
            if let surface = openSurface() { surface.clear() }
            isRendering = true
        }
    }

    /// Ignores further frames.
    public func stop() {
        isStarting = false
        isRendering = false
    }

    /// Shows ``backgroundView`` or black, unless frames are shown.
    public func clear() {
        guard !isRendering else { return }
        if let backgroundView { bringSubviewToFront(backgroundView) }
        surface?.clear()
    }

    private func openSurface() -> (any VideoSurface)? {
        if !hasAskedForSurface {
            hasAskedForSurface = true
            surface = VideoSurfaces.make(self)
            if surface == nil {
                // Written with the default settings, unlike what views say otherwise.
                Logger.warn(type: .mediaStream, message: "no display: VideoView follows its stream and draws nothing")
            }
        }
        return surface
    }

    // MARK: Debugging

    private func startDebugging() {
        guard debugTimer == nil else { return }
        framesInSecond = 0
        let timer = DispatchSource.makeTimerSource(queue: .main)
        timer.schedule(deadline: .now() + 1, repeating: 1)
        timer.setEventHandler { [weak self] in MainActor.assumeIsolated { self?.updateOverlay() } }
        debugTimer = timer
        timer.resume()
    }

    private func stopDebugging() {
        debugTimer?.cancel()
        debugTimer = nil
        overlay = nil
    }

    private func updateOverlay() {
        let size = shownSize ?? .zero
        let text = "\(Int(size.width))x\(Int(size.height)) / \(framesInSecond) fps"
        framesInSecond = 0
        overlay = text
        Logger.debug(type: .videoView, message: text)
    }
}

extension VideoView: @preconcurrency VideoRenderer {
    public func onChange(size: CGSize) {
        Logger.debug(type: .videoView, message: "frame size \(Int(size.width))x\(Int(size.height))")
    }

    public func render(videoFrame: VideoFrame?) {
        guard isRendering, let videoFrame else { return }
        shownSize = videoFrame.displaySize
        framesInSecond += 1
        guard let surface, surface.isVisible, !isHidden,
            let placement = VideoLayout.placement(of: videoFrame.displaySize, in: bounds.size, mode: contentMode),
            let picture = videoFrame.picture
        else { return }
        surface.draw(picture, placement, overlay: overlay)
    }

    public func onAdded(from: any MediaStream) { if connectionMode != .manual { start() } }
    public func onRemoved(from: any MediaStream) { end() }
    public func onDisconnect(from: MediaChannel?) { end() }
    public func onSwitch(video: Bool) {
        guard connectionMode != .manual else { return }
        video ? start() : end()
    }
    public func onSwitch(audio: Bool) {}

    private func end() {
        switch connectionMode {
        case .auto: stop()
        case .autoClear:
            stop()
            clear()
        case .manual: break
        }
    }
}
