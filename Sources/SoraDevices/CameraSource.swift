#if Media
import CGStreamer
import Dispatch
import SoraFrames
import SoraLocking
import Synchronization

/// A camera, in one format.
///
/// `start` returns when the first picture is there. When the camera fails or is unplugged, `.failed` comes once.
package final class CameraSource: MediaSource {
    package let deviceID: String
    package let format: CameraFormat
    package let framerate: Double
    private let live: LivePipeline
    private let monitor = Locked<DeviceMonitor?>(nil)

    package var hasVideo: Bool { true }
    package var hasAudio: Bool { false }

    package init(deviceID: String, format: CameraFormat, framerate: Double) {
        self.deviceID = deviceID
        self.format = format
        self.framerate = framerate
        live = LivePipeline()
    }

    /// The camera's best format for a wish (`CameraFormat.best`).
    package convenience init(_ device: MediaDevice, width: Int, height: Int, framerate: Int) throws(DeviceError) {
        guard let best = CameraFormat.best(of: device.formats, width: width, height: height, framerate: framerate)
        else { throw .deviceFailed(device: device.name, reason: "it offers no format") }
        self.init(deviceID: device.id, format: best.format, framerate: best.framerate)
    }

    deinit { stop() }

    package func start(_ sink: @escaping @Sendable (MediaSourceEvent) -> Void) throws(DeviceError) {
        let id = deviceID
        let caps = self.caps
        let decoder = format.isCompressed ? " ! jpegdec" : ""
        try GStreamer.require(["capsfilter", "videoconvert", "appsink"], package: "gstreamer1.0-plugins-base")
        if format.isCompressed { try GStreamer.require(["jpegdec"], package: "gstreamer1.0-plugins-good") }
        try live.start(device: id, sink) { () throws(DeviceError) in
            let source = try CameraServer.makeElement(id: id)
            return try LivePipeline.link(
                source,
                "capsfilter caps=\(GStreamer.quoted(caps))\(decoder) ! videoconvert ! videoscale ! "
                    + "video/x-raw,format=I420,pixel-aspect-ratio=1/1 ! "
                    + "appsink name=video sync=false max-buffers=2 drop=true", device: id)
        }
        // Not every source element notices that its device is gone.
        let watch = try? DeviceMonitor(kinds: [.camera]) { [weak live] devices in
            if !devices.contains(where: { $0.id == id }) {
                live?.fail(.deviceFailed(device: id, reason: "it was unplugged"))
            }
        }
        monitor.withLock { $0 = watch }
    }

    package func stop() {
        let watch = monitor.withLock { monitor in
            defer { monitor = nil }
            return monitor
        }
        watch?.stop()
        live.stop()
    }

    private var caps: String {
        var caps = "\(format.mediaType),width=\(format.width),height=\(format.height)"
        if !format.pixelFormat.isEmpty { caps += ",format=\(format.pixelFormat)" }
        // Whole rates as they are, others as thousandths: 29.97 is 30000/1001 in most cameras.
        if framerate > 0 {
            let whole = framerate.rounded()
            if abs(whole - framerate) < 0.001 {
                caps += ",framerate=\(Int(whole))/1"
            } else {
                caps += ",framerate=\(Int(whole) * 1000)/1001"
            }
        }
        return caps
    }
}

/// A pipeline whose source is live, with pictures from an appsink `video` or sound from an appsink `audio`.
final class LivePipeline: Sendable {
    private struct State {
        var pipeline: GStreamerPipeline?
        var isBusy = false
        var gate: Gate?
    }
    private let state = Locked(State())
    /// A device that gives nothing for so long does not work.
    private static let patience = 5

    /// `make` builds the pipeline; it may take long (device discovery). Waits for the first frame.
    func start(
        device: String, waits: Bool = true, _ sink: @escaping @Sendable (MediaSourceEvent) -> Void,
        _ make: () throws(DeviceError) -> GStreamerPipeline
    ) throws(DeviceError) {
        let isBusy = state.withLock { state in
            defer { state.isBusy = true }
            return state.isBusy
        }
        if isBusy { throw .alreadyRunning }
        do throws(DeviceError) {
            let pipeline = try make()
            let gate = Gate(sink)
            let first = DispatchSemaphore(value: 0)
            let isFirst = Atomic<Bool>(true)
            let problem = Locked<String?>(nil)
            @Sendable func note() {
                if isFirst.exchange(false, ordering: .acquiringAndReleasing) { first.signal() }
            }
            let video = pipeline.child("video")
            let audio = pipeline.child("audio")
            video?.onPicture { frame in
                note()
                gate.deliver(.video(frame))
            }
            audio?.onSound { frame in
                note()
                gate.deliver(.audio(frame))
            }
            state.withLock {
                $0.pipeline = pipeline
                $0.gate = gate
            }
            let started = pipeline.run { event in
                switch event {
                case .ended: gate.finish(.ended)
                case .failed(let reason):
                    problem.withLock { $0 = $0 ?? reason }
                    // Before the first frame `start` throws instead.
                    if isFirst.exchange(false, ordering: .acquiringAndReleasing) {
                        first.signal()
                    } else {
                        gate.finish(.failed(.deviceFailed(device: device, reason: reason)))
                    }
                }
            }
            if waits || !started {
                let isLate = first.wait(timeout: .now() + .seconds(started ? Self.patience : 1)) == .timedOut
                if let reason = problem.withLock({ $0 }) { throw .deviceFailed(device: device, reason: reason) }
                if !started { throw .deviceFailed(device: device, reason: "it did not start") }
                if isLate {
                    throw .deviceFailed(device: device, reason: "nothing came within \(Self.patience) s")
                }
            }
        } catch {
            stop()
            throw error
        }
    }

    func fail(_ error: DeviceError) { state.withLock { $0.gate }?.finish(.failed(error)) }

    func stop() {
        let pipeline = state.withLock { state in
            defer { state = State() }
            return state.pipeline
        }
        pipeline?.close()
    }

    /// A device's element in front of a chain of others.
    static func link(
        _ source: UnsafeMutablePointer<GstElement>, _ chain: String, device: String
    ) throws(DeviceError) -> GStreamerPipeline {
        guard let bin = sora_gst_pipeline_new() else { throw .deviceFailed(device: device, reason: "no pipeline") }
        let pipeline = try GStreamerPipeline(element: bin, device: device)
        sora_gst_bin_add(bin, source)
        if sora_gst_has_property(source, "do-timestamp") != 0 { sora_gst_set(source, "do-timestamp", "true") }
        var error: UnsafeMutablePointer<GError>?
        guard let rest = sora_gst_bin(chain, &error) else {
            throw .deviceFailed(device: device, reason: GStreamer.text(error))
        }
        sora_gst_bin_add(bin, rest)
        guard gst_element_link(source, rest) != 0 else {
            throw .deviceFailed(device: device, reason: "its element does not fit: \(chain)")
        }
        return pipeline
    }
}
#endif
