#if Media
import Foundation
internal import SoraDevices
internal import SoraFrames

/// A toplevel window of its own for a view.
@MainActor final class WindowSurface: VideoSurface {
    private let window: VideoWindow
    private weak var view: VideoView?
    private let title = "Sora"

    /// Nil where no window can be opened. A view without a size gets one.
    init?(_ view: VideoView) {
        if view.bounds.isEmpty { view.frame.size = CGSize(width: 640, height: 360) }
        var options = VideoWindow.Options()
        options.title = title
        options.width = Int(view.bounds.width)
        options.height = Int(view.bounds.height)
        let weakView = WeakView(view)
        do {
            window = try VideoWindow(options) { event in
                guard case .resized(let width, let height) = event else { return }
                DispatchQueue.main.async {
                    MainActor.assumeIsolated { weakView.view?.frame.size = CGSize(width: width, height: height) }
                }
            }
        } catch {
            Logger.debug(type: .videoView, message: error.description)
            return nil
        }
        self.view = view
    }

    @MainActor private final class WeakView {
        weak var view: VideoView?
        init(_ view: VideoView) { self.view = view }
    }

    var isVisible: Bool { window.isVisible }

    /// The window lays the picture out by the view's content mode, which is what `placement` was made from.
    func draw(_ picture: SoraFrames.VideoFrame, _ placement: VideoLayout.Placement, overlay: String?) {
        window.contentMode =
            switch view?.contentMode {
            case .scaleToFill: .scaleToFill
            case .scaleAspectFill: .scaleAspectFill
            default: .scaleAspectFit
            }
        let wanted = overlay.map { "\(title) – \($0)" } ?? title
        if window.title != wanted { window.title = wanted }
        window.consume(picture)
    }

    func clear() { window.clear() }
    func close() { window.close() }
}
#endif
