#if Media
import CSDL2
import CYUV
import Dispatch
import Glibc
import SoraFrames
import SoraLocking

/// A window that shows pictures, on X11 or Wayland.
///
/// All windows of a process live on one thread, which exists while there is a window. Frames that come faster than
/// they can be drawn are skipped: the newest is shown.
package final class VideoWindow: VideoSink {
    package struct Options: Sendable {
        package var title = "Sora"
        package var width = 640
        package var height = 360
        /// Nil: the window manager decides.
        package var position: (x: Int, y: Int)?
        package var hasBorder = true
        package var contentMode = VideoContentMode.scaleAspectFit
        /// As in a mirror, for one's own picture.
        package var isMirrored = false
        /// Called on the window's thread when a frame has reached the screen.
        package var onDraw: (@Sendable () -> Void)?
        package init() {}
    }
    package enum Event: Sendable, Equatable {
        case resized(width: Int, height: Int)
        case visibilityChanged(Bool)
        /// The user closed the window; it is gone.
        case closed
    }

    struct State {
        var size: (width: Int, height: Int)
        var isVisible = true
        var isOpen = true
        var contentMode: VideoContentMode
        var isMirrored: Bool
        var title: String
        var frame: VideoFrame?
        var isDrawn = true
        var drawnFrames = 0
        var onEvent: (@Sendable (Event) -> Void)?
    }
    let state: Locked<State>
    let options: Options

    /// Whether a window can be opened: there is an X11 or Wayland display.
    package static var isDisplayAvailable: Bool { (try? WindowThread.require()) != nil }

    /// Opens a window. Throws where there is no display.
    package init(
        _ options: Options = Options(), onEvent: (@Sendable (Event) -> Void)? = nil
    ) throws(DeviceError) {
        self.options = options
        state = Locked(
            State(
                size: (min(max(options.width, 1), 16_384), min(max(options.height, 1), 16_384)),
                contentMode: options.contentMode, isMirrored: options.isMirrored, title: options.title,
                onEvent: onEvent))
        try WindowThread.require().open(self)
    }

    package var size: (width: Int, height: Int) { state.withLock { $0.size } }
    package var isVisible: Bool { state.withLock { $0.isVisible && $0.isOpen } }
    package var isOpen: Bool { state.withLock { $0.isOpen } }
    /// Frames that reached the screen.
    package var drawnFrames: Int { state.withLock { $0.drawnFrames } }

    package var contentMode: VideoContentMode {
        get { state.withLock { $0.contentMode } }
        set { redraw { $0.contentMode = newValue } }
    }
    package var isMirrored: Bool {
        get { state.withLock { $0.isMirrored } }
        set { redraw { $0.isMirrored = newValue } }
    }
    package var title: String {
        get { state.withLock { $0.title } }
        set { redraw { $0.title = newValue } }
    }

    package func consume(_ frame: VideoFrame) { redraw { $0.frame = frame } }

    /// Fills the window with black.
    package func clear() { redraw { $0.frame = nil } }

    /// Closes the window; no event follows.
    package func close() {
        let wasOpen = state.withLock { state in
            defer {
                state.isOpen = false
                state.onEvent = nil
                state.frame = nil
            }
            return state.isOpen
        }
        if wasOpen { WindowThread.wake() }
    }

    private func redraw(_ change: (inout State) -> Void) {
        let wakes = state.withLock { state in
            guard state.isOpen else { return false }
            change(&state)
            defer { state.isDrawn = false }
            return state.isDrawn
        }
        if wakes { WindowThread.wake() }
    }
}

/// The thread that owns SDL.
final class WindowThread: Sendable {
    private struct State {
        var isRunning = false
        var failure: String?
        var opening: [VideoWindow] = []
    }
    private static let shared = WindowThread()
    private let state = Locked(State())

    /// Starts the thread if it does not run. Throws when there is no display.
    static func require() throws(DeviceError) -> WindowThread {
        // Without either, SDL's drivers complain on standard error.
        func isSet(_ name: String) -> Bool { getenv(name).map { $0.pointee != 0 } ?? false }
        let hasDisplay = isSet("DISPLAY") || isSet("WAYLAND_DISPLAY")
        guard hasDisplay else {
            throw .unavailable(what: "a window", remedy: "set DISPLAY or WAYLAND_DISPLAY to a display")
        }
        if let failure = shared.start() {
            throw .unavailable(what: "a window (\(failure))", remedy: "set DISPLAY or WAYLAND_DISPLAY to a display")
        }
        return shared
    }

    static func wake() { sora_sdl_wake() }

    private func start() -> String? {
        let ready = DispatchSemaphore(value: 0)
        let isNew = state.withLock { state in
            defer { state.isRunning = true }
            state.failure = nil
            return !state.isRunning
        }
        guard isNew else { return nil }
        let thread = DeviceThread {
            if sora_sdl_start() != 0 {
                let reason = SDL_GetError().map { String(cString: $0) } ?? "no display"
                self.state.withLock {
                    $0.isRunning = false
                    $0.failure = reason
                }
                ready.signal()
                return
            }
            ready.signal()
            self.run()
        }
        guard thread != nil else { return "no thread" }
        ready.wait()
        return state.withLock { $0.failure }
    }

    func open(_ window: VideoWindow) throws(DeviceError) {
        state.withLock { $0.opening.append(window) }
        Self.wake()
    }

    private func run() {
        var surfaces: [UInt32: Surface] = [:]
        var idleTurns = 0
        while true {
            let opening = state.withLock { state in
                defer { state.opening = [] }
                return state.opening
            }
            for window in opening {
                if let surface = Surface(window) { surfaces[surface.number] = surface } else { window.vanish() }
            }
            for (number, surface) in surfaces {
                if surface.window.isOpen {
                    surface.draw()
                } else {
                    surface.free()
                    surfaces[number] = nil
                }
            }
            // Without windows the thread stays for two seconds, because one is often followed by another.
            idleTurns = surfaces.isEmpty ? idleTurns + 1 : 0
            if idleTurns > 20 {
                let isDone = state.withLock { state in
                    guard state.opening.isEmpty else { return false }
                    sora_sdl_stop()
                    state.isRunning = false
                    return true
                }
                if isDone { return }
            }
            var kind = SORA_SDL_OTHER
            var number: UInt32 = 0
            var a: Int32 = 0
            var b: Int32 = 0
            var wait: Int32 = 100
            while sora_sdl_wait(wait, &kind, &number, &a, &b) != 0 {
                wait = 0
                guard let surface = surfaces[number] else { continue }
                switch kind {
                case SORA_SDL_CLOSE: surface.window.vanish()
                case SORA_SDL_RESIZED: surface.window.resize(Int(a), Int(b))
                case SORA_SDL_SHOWN: surface.window.setVisible(true)
                case SORA_SDL_HIDDEN: surface.window.setVisible(false)
                case SORA_SDL_EXPOSED: surface.window.expose()
                default: break
                }
            }
        }
    }
}

extension VideoWindow {
    fileprivate func tell(_ event: Event, _ change: (inout State) -> Void) {
        let handler = state.withLock { state in
            change(&state)
            return state.onEvent
        }
        handler?(event)
    }
    fileprivate func vanish() {
        tell(.closed) {
            $0.isOpen = false
            $0.frame = nil
        }
    }
    fileprivate func resize(_ width: Int, _ height: Int) {
        tell(.resized(width: width, height: height)) {
            $0.size = (width, height)
            $0.isDrawn = false
        }
    }
    fileprivate func setVisible(_ isVisible: Bool) {
        tell(.visibilityChanged(isVisible)) {
            $0.isVisible = isVisible
            $0.isDrawn = false
        }
    }
    fileprivate func expose() { state.withLock { $0.isDrawn = false } }
}

/// SDL's side of one window. Used on the window thread only.
private final class Surface {
    let window: VideoWindow
    let number: UInt32
    private let pointer: OpaquePointer
    private let renderer: OpaquePointer
    private var texture: (pointer: OpaquePointer, width: Int, height: Int)?
    private var title: String
    private let pool = VideoFrameBufferPool(capacity: 3)

    init?(_ window: VideoWindow) {
        let options = window.options
        let size = window.size
        guard
            let pointer = sora_sdl_window(
                options.title, Int32(clamping: options.position?.x ?? -1), Int32(clamping: options.position?.y ?? -1),
                Int32(size.width), Int32(size.height), options.hasBorder ? 1 : 0)
        else { return nil }
        guard let renderer = sora_sdl_renderer(pointer) else {
            SDL_DestroyWindow(pointer)
            return nil
        }
        self.window = window
        self.pointer = pointer
        self.renderer = renderer
        number = SDL_GetWindowID(pointer)
        title = options.title
        window.expose()
    }

    func free() {
        if let texture { SDL_DestroyTexture(texture.pointer) }
        SDL_DestroyRenderer(renderer)
        SDL_DestroyWindow(pointer)
    }

    func draw() {
        typealias Job = (frame: VideoFrame?, size: (width: Int, height: Int), mode: VideoContentMode, mirrored: Bool)
        let job = window.state.withLock { state -> Job? in
            if state.title != title {
                title = state.title
                SDL_SetWindowTitle(pointer, title)
            }
            guard !state.isDrawn else { return nil }
            state.isDrawn = true
            return (state.frame, state.size, state.contentMode, state.isMirrored)
        }
        guard let job else { return }
        SDL_SetRenderDrawColor(renderer, 0, 0, 0, 255)
        SDL_RenderClear(renderer)
        if let frame = job.frame { draw(frame, job.size, job.mode, mirrored: job.mirrored) }
        SDL_RenderPresent(renderer)
        if job.frame != nil {
            window.state.withLock { $0.drawnFrames += 1 }
            window.options.onDraw?()
        }
    }

    private func draw(
        _ frame: VideoFrame, _ size: (width: Int, height: Int), _ mode: VideoContentMode, mirrored: Bool
    ) {
        let layout = VideoLayout.make(
            mode: mode, videoSize: (frame.width, frame.height), viewSize: (Double(size.width), Double(size.height)),
            rotation: frame.rotation)
        guard !layout.source.isEmpty, !layout.destination.isEmpty else { return }
        let shown = layout.destination
        // Before it is turned, the picture lies around the same centre.
        let isTurned = frame.rotation.isTransposing
        let width = isTurned ? shown.height : shown.width
        let height = isTurned ? shown.width : shown.height
        let scaled = cut(frame.buffer, layout.source, width: width, height: height)
        guard upload(scaled), let texture else { return }
        let x = shown.x + (shown.width - width) / 2
        let y = shown.y + (shown.height - height) / 2
        // Mirrored before turning: a flip of the turned picture turns the other way.
        let degrees = Double(mirrored ? 360 - frame.rotation.rawValue : frame.rotation.rawValue)
        _ = sora_sdl_draw(
            renderer, texture.pointer, Float(x), Float(y), Float(width), Float(height), degrees, mirrored ? 1 : 0)
    }

    /// The wanted part, no larger than it is shown: scaling here costs a fraction of SDL's software renderer.
    private func cut(
        _ buffer: VideoFrameBuffer, _ source: VideoLayout.Rectangle, width: Double, height: Double
    ) -> VideoFrameBuffer {
        let left = min(max(Int(source.x) & ~1, 0), buffer.width - 1)
        let top = min(max(Int(source.y) & ~1, 0), buffer.height - 1)
        let columns = min(max(Int(source.width), 1), buffer.width - left)
        let rows = min(max(Int(source.height), 1), buffer.height - top)
        let targetWidth = max(1, min(columns, Int(width)))
        let targetHeight = max(1, min(rows, Int(height)))
        if left == 0, top == 0, targetWidth == buffer.width, targetHeight == buffer.height { return buffer }
        return VideoFrameBuffer(width: targetWidth, height: targetHeight, pool: pool) { target in
            buffer.withPlanes { planes in
                _ = I420Scale(
                    planes.y + top * planes.strideY + left, Int32(planes.strideY),
                    planes.u + top / 2 * planes.strideU + left / 2, Int32(planes.strideU),
                    planes.v + top / 2 * planes.strideV + left / 2, Int32(planes.strideV), Int32(columns), Int32(rows),
                    target.y, Int32(target.strideY), target.u, Int32(target.strideU), target.v, Int32(target.strideV),
                    Int32(target.width), Int32(target.height), kFilterBilinear)
            }
        }
    }

    private func upload(_ buffer: VideoFrameBuffer) -> Bool {
        if texture?.width != buffer.width || texture?.height != buffer.height {
            if let texture { SDL_DestroyTexture(texture.pointer) }
            texture = sora_sdl_texture(renderer, Int32(buffer.width), Int32(buffer.height))
                .map { ($0, buffer.width, buffer.height) }
        }
        guard let texture else { return false }
        return buffer.withPlanes { planes in
            SDL_UpdateYUVTexture(
                texture.pointer, nil, planes.y, Int32(planes.strideY), planes.u, Int32(planes.strideU), planes.v,
                Int32(planes.strideV)) == 0
        }
    }
}
#endif
