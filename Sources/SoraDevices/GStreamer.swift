#if Media
import CGStreamer
import Glibc
import SoraFrames
import SoraLocking

/// GStreamer, started once per process.
enum GStreamer {
    /// Nil when it runs, else what is wrong.
    static let failure: String? = {
        // Its crash catcher would take over the application's signals.
        gst_segtrap_set_enabled(0)
        var error: UnsafeMutablePointer<GError>?
        guard gst_init_check(nil, nil, &error) != 0 else { return text(error) }
        return nil
    }()

    static func requireRunning() throws(DeviceError) {
        if let failure {
            throw .unavailable(what: "GStreamer (\(failure))", remedy: "install libgstreamer1.0-0 and its plug-ins")
        }
    }

    /// Takes the error's text and frees it.
    static func text(_ error: UnsafeMutablePointer<GError>?) -> String {
        guard let error else { return "unknown error" }
        defer { g_error_free(error) }
        guard let message = error.pointee.message else { return "unknown error" }
        return String(cString: message)
    }

    /// Which of these elements are not installed.
    static func missing(_ elements: [String]) -> [String] {
        elements.filter { name in
            guard let factory = gst_element_factory_find(name) else { return true }
            sora_gst_unref(UnsafeMutableRawPointer(factory))
            return false
        }
    }

    static func require(_ elements: [String], package: String) throws(DeviceError) {
        try requireRunning()
        let missing = missing(elements)
        guard missing.isEmpty else {
            throw .unavailable(
                what: "the GStreamer element \(missing.joined(separator: ", "))", remedy: "install \(package)")
        }
    }

    /// For values inside pipeline descriptions.
    static func quoted(_ value: String) -> String {
        var output = "\""
        for character in value {
            if character == "\"" || character == "\\" { output.append("\\") }
            output.append(character)
        }
        return output + "\""
    }
}

/// A running pipeline with a thread that waits on its bus.
///
/// Invariant: after `close` no handler runs any more, the thread is gone and the elements are freed.
final class GStreamerPipeline: @unchecked Sendable {
    // Sendable is proven: GStreamer's elements and buses may be used from any thread; the two pointers never change,
    // and are freed only when the last user of this object is gone.
    enum Event: Sendable {
        case failed(String)
        case ended
    }

    let element: UnsafeMutablePointer<GstElement>
    private let bus: UnsafeMutablePointer<GstBus>
    private let thread = Locked<DeviceThread?>(nil)
    private let isClosed = Flag()

    /// From a description in gst-launch syntax.
    convenience init(_ description: String, device: String) throws(DeviceError) {
        try GStreamer.requireRunning()
        var error: UnsafeMutablePointer<GError>?
        guard let element = sora_gst_parse(description, &error) else {
            throw .deviceFailed(device: device, reason: GStreamer.text(error))
        }
        try self.init(element: element, device: device)
    }

    /// Takes over the reference, floating or owned.
    init(element: UnsafeMutablePointer<GstElement>, device: String) throws(DeviceError) {
        if g_object_is_floating(element) != 0 { g_object_ref_sink(element) }
        self.element = element
        guard let bus = gst_element_get_bus(element) else {
            sora_gst_unref(element)
            throw .deviceFailed(device: device, reason: "its pipeline has no bus")
        }
        self.bus = bus
        sora_gst_use_system_clock(element)
    }

    deinit {
        close()
        sora_gst_unref(bus)
        sora_gst_unref(element)
    }

    func child(_ name: String) -> GStreamerElement? {
        sora_gst_child(element, name).map { GStreamerElement(owned: $0) }
    }

    @discardableResult
    func setState(_ state: GstState) -> Bool {
        gst_element_set_state(element, state) != GST_STATE_CHANGE_FAILURE
    }

    /// Goes to PAUSED and waits until every sink has its first buffer. The bound holds whatever the pipeline does.
    /// Live sources have none: they succeed at once.
    func prepare(seconds: Int64) -> Result<Void, PreparationFailure> {
        let result = gst_element_set_state(element, GST_STATE_PAUSED)
        if result == GST_STATE_CHANGE_SUCCESS || result == GST_STATE_CHANGE_NO_PREROLL { return .success(()) }
        let deadline = MonotonicClock.now + seconds * 1_000_000_000
        while true {
            let left = deadline - MonotonicClock.now
            let wait = result == GST_STATE_CHANGE_FAILURE ? 0 : max(0, left)
            guard let message = gst_bus_timed_pop(bus, GstClockTime(wait)) else {
                return .failure(result == GST_STATE_CHANGE_FAILURE ? .failed("it did not start") : .timedOut)
            }
            defer { sora_gst_message_unref(message) }
            switch sora_gst_kind(message) {
            case SORA_GST_ERROR: return .failure(.failed(Self.errorText(message)))
            case SORA_GST_END: return .failure(.failed("it ended before the first frame"))
            case SORA_GST_READY: return .success(())
            default: break
            }
        }
    }

    enum PreparationFailure: Error {
        case failed(String)
        case timedOut
    }

    /// Plays, and reports what comes over the bus until `close`. Returns false when the start fails at once.
    func run(_ handler: @escaping @Sendable (Event) -> Void) -> Bool {
        let started = DeviceThread { [weak self] in
            while let self, !self.isClosed.isRaised {
                // Bounded, so that a forgotten pipeline can be freed.
                guard let message = gst_bus_timed_pop(self.bus, 250_000_000) else { continue }
                defer { sora_gst_message_unref(message) }
                if self.isClosed.isRaised { return }
                switch sora_gst_kind(message) {
                case SORA_GST_ERROR: handler(.failed(Self.errorText(message)))
                case SORA_GST_END: handler(.ended)
                default: break
                }
            }
        }
        guard let started else { return false }
        thread.withLock { $0 = started }
        return setState(GST_STATE_PLAYING)
    }

    /// The next error on the bus, for explaining a state change that failed. Not while `run` reads the bus.
    func nextError(seconds: Int64) -> String? {
        let deadline = MonotonicClock.now + seconds * 1_000_000_000
        while let message = gst_bus_timed_pop(bus, GstClockTime(max(0, deadline - MonotonicClock.now))) {
            defer { sora_gst_message_unref(message) }
            if sora_gst_kind(message) == SORA_GST_ERROR { return Self.errorText(message) }
        }
        return nil
    }

    /// Starts again from the beginning, after the end.
    func rewind() -> Bool { sora_gst_seek_to_start(element) != 0 }

    func close() {
        isClosed.raise()
        gst_element_set_state(element, GST_STATE_NULL)
        let running = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        guard let running else { return }
        sora_gst_wake(bus)
        running.join()
    }

    private static func errorText(_ message: UnsafeMutablePointer<GstMessage>) -> String {
        guard let text = sora_gst_error_text(message) else { return "unknown error" }
        defer { g_free(text) }
        return String(cString: text)
    }
}

/// A counted reference to an element.
final class GStreamerElement: @unchecked Sendable {
    // Sendable is proven: the pointer never changes, elements may be used from any thread.
    let pointer: UnsafeMutablePointer<GstElement>

    init(owned pointer: UnsafeMutablePointer<GstElement>) { self.pointer = pointer }
    deinit { sora_gst_unref(pointer) }

    /// For an appsink with I420 caps: each picture, on the streaming thread.
    func onPicture(_ handler: @escaping @Sendable (VideoFrame) -> Void) {
        let context = PictureContext(handler: handler)
        sora_gst_on_sample(
            pointer,
            { sink, raw in
                guard let sink, let raw, let sample = gst_app_sink_pull_sample(sink) else { return GST_FLOW_EOS }
                defer { sora_gst_sample_unref(sample) }
                let context = Unmanaged<PictureContext>.fromOpaque(raw).takeUnretainedValue()
                let element = UnsafeMutableRawPointer(sink).assumingMemoryBound(to: GstElement.self)
                context.deliver(sample, from: element)
                return GST_FLOW_OK
            }, Unmanaged.passRetained(context).toOpaque(),
            { raw in if let raw { Unmanaged<PictureContext>.fromOpaque(raw).release() } })
    }

    /// For an appsink with S16LE caps: sound in the pieces it comes in, on the streaming thread.
    func onSound(_ handler: @escaping @Sendable (AudioFrame) -> Void) {
        let context = SoundContext(handler: handler)
        sora_gst_on_sample(
            pointer,
            { sink, raw in
                guard let sink, let raw, let sample = gst_app_sink_pull_sample(sink) else { return GST_FLOW_EOS }
                defer { sora_gst_sample_unref(sample) }
                let context = Unmanaged<SoundContext>.fromOpaque(raw).takeUnretainedValue()
                let element = UnsafeMutableRawPointer(sink).assumingMemoryBound(to: GstElement.self)
                context.deliver(sample, from: element)
                return GST_FLOW_OK
            }, Unmanaged.passRetained(context).toOpaque(),
            { raw in if let raw { Unmanaged<SoundContext>.fromOpaque(raw).release() } })
    }

    private final class PictureContext: Sendable {
        let handler: @Sendable (VideoFrame) -> Void
        let pool = VideoFrameBufferPool(capacity: 10)
        init(handler: @escaping @Sendable (VideoFrame) -> Void) { self.handler = handler }

        func deliver(_ sample: OpaquePointer, from sink: UnsafeMutablePointer<GstElement>) {
            var picture = sora_gst_picture()
            guard sora_gst_map_picture(sample, &picture) != 0 else { return }
            defer { sora_gst_unmap_picture(&picture) }
            let (width, height) = (Int(picture.width), Int(picture.height))
            guard VideoFrameBuffer.isValid(width: width, height: height), let y = picture.y, let u = picture.u,
                let v = picture.v
            else { return }  // DEV5
            let planes = I420Planes(
                width: width, height: height, y: y, strideY: Int(picture.stride_y), u: u,
                strideU: Int(picture.stride_u), v: v, strideV: Int(picture.stride_v))
            let time = sora_gst_sample_time(sink, sample)
            handler(
                VideoFrame(
                    buffer: VideoFrameBuffer(copying: planes, pool: pool),
                    timestamp: time == sora_gst_none() ? MonotonicClock.now : Int64(clamping: time)))
        }
    }

    private final class SoundContext: Sendable {
        let handler: @Sendable (AudioFrame) -> Void
        init(handler: @escaping @Sendable (AudioFrame) -> Void) { self.handler = handler }

        func deliver(_ sample: OpaquePointer, from sink: UnsafeMutablePointer<GstElement>) {
            var rate: Int32 = 0
            var channels: Int32 = 0
            guard sora_gst_sound_format(sample, &rate, &channels) != 0, let buffer = gst_sample_get_buffer(sample)
            else { return }
            let size = gst_buffer_get_size(buffer)
            let samples = [Int16](unsafeUninitializedCapacity: Int(size) / 2) { output, count in
                count = Int(gst_buffer_extract(buffer, 0, output.baseAddress, size & ~1)) / 2
            }
            let time = sora_gst_sample_time(sink, sample)
            handler(
                AudioFrame(
                    samples: samples, sampleRate: Int(rate), channels: Int(channels),
                    timestamp: time == sora_gst_none() ? MonotonicClock.now : Int64(clamping: time)))
        }
    }
}
#endif
