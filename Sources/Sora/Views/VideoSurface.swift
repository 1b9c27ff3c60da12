internal import SoraFrames

/// A window, or a part of one, that pictures can be drawn into.
@MainActor protocol VideoSurface: AnyObject {
    /// False when the window is closed, hidden or absent.
    var isVisible: Bool { get }
    func draw(_ picture: SoraFrames.VideoFrame, _ placement: VideoLayout.Placement, overlay: String?)
    /// Fills everything with black.
    func clear()
    func close()
}

/// Makes the window of a view; nil where there is no display.
@MainActor enum VideoSurfaces {
    static var make: (VideoView) -> (any VideoSurface)? = { DeviceBackends.makeSurface($0) }
}
