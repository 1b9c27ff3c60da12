#if Media
import Glibc
import SoraFrames

/// The screen of an X11 display, or a part of it.
package final class ScreenSource: MediaSource {
    package struct Options: Sendable {
        /// Such as `:0`; nil: from the environment.
        package var display: String?
        /// 1...120.
        package var framerate = 15
        /// In pixels; nil: the whole screen.
        package var region: (x: Int, y: Int, width: Int, height: Int)?
        /// Only this window, by its X id.
        package var windowID: UInt64?
        package var showsPointer = true
        package init() {}
    }
    package let options: Options
    private let live = LivePipeline()

    package var hasVideo: Bool { true }
    package var hasAudio: Bool { false }

    package init(options: Options = Options()) { self.options = options }

    deinit { stop() }

    package func start(_ sink: @escaping @Sendable (MediaSourceEvent) -> Void) throws(DeviceError) {
        guard let display = options.display ?? getenv("DISPLAY").map({ String(cString: $0) }), !display.isEmpty else {
            throw .unavailable(
                what: "screen capture", remedy: "set DISPLAY to an X11 display (Wayland screens cannot be captured)")
        }
        try GStreamer.require(["ximagesrc"], package: "gstreamer1.0-plugins-good")
        let rate = min(max(options.framerate, 1), 120)
        var source = "ximagesrc display-name=\(GStreamer.quoted(display)) use-damage=false"
        source += " show-pointer=\(options.showsPointer)"
        if let id = options.windowID { source += " xid=\(id)" }
        if let region = options.region {
            let (x, y) = (max(region.x, 0), max(region.y, 0))
            source += " startx=\(x) starty=\(y)"
            source += " endx=\(x + max(region.width, 2) - 1) endy=\(y + max(region.height, 2) - 1)"
        }
        let description =
            source + " ! video/x-raw,framerate=\(rate)/1 ! videoconvert ! video/x-raw,format=I420 ! "
            + "appsink name=video sync=false max-buffers=2 drop=true"
        try live.start(device: "screen \(display)", sink) { () throws(DeviceError) in
            try GStreamerPipeline(description, device: "screen \(display)")
        }
    }

    package func stop() { live.stop() }
}
#endif
