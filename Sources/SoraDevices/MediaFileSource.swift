#if Media
import CGStreamer
import Glibc
import SoraFrames
import SoraLocking

/// Any media file as a camera and a microphone, at real pace.
///
/// Sound comes in pieces of 10 ms at 48 kHz. Pictures come upright, with square pixels. With `loops` the file begins
/// anew at its end, and timestamps go on rising; otherwise `.ended` closes the stream.
package final class MediaFileSource: MediaSource {
    package struct Options: Sendable {
        package var loops = false
        package var usesVideo = true
        package var usesAudio = true
        /// 1 or 2.
        package var audioChannels = 2
        /// Pictures are scaled down (never up) to fit this, keeping their shape.
        package var maximumSize: (width: Int, height: Int)?
        /// Frames per second at most; nil: as in the file.
        package var maximumFramerate: Int?
        package init() {}
    }

    package let path: String
    package let options: Options
    package let hasVideo: Bool
    package let hasAudio: Bool
    /// Size of the file's pictures as they come out; nil without video.
    package let videoSize: (width: Int, height: Int)?
    /// Length of the material; nil if the file does not say.
    package let duration: Duration?
    /// Nothing takes longer than this to be found out.
    private static let patience: Int64 = 10

    private struct State {
        /// Opened and waiting in PAUSED, or running.
        var graph: Graph?
        var isRunning = false
    }
    private let state: Locked<State>

    /// Opens the file and finds out what is in it. Takes as long as decoding the first frames, at most ten seconds.
    package init(path: String, options: Options = Options()) throws(DeviceError) {
        self.path = path
        self.options = options
        let graph = try Graph(path: path, options: options, patience: Self.patience)
        hasVideo = graph.hasVideo
        hasAudio = graph.hasAudio
        videoSize = graph.videoSize
        duration = graph.duration
        state = Locked(State(graph: graph))
    }

    deinit { stop() }

    package func start(_ sink: @escaping @Sendable (MediaSourceEvent) -> Void) throws(DeviceError) {
        let prepared: (graph: Graph?, isRunning: Bool) = state.withLock { state in
            if state.isRunning { return (nil, true) }
            state.isRunning = true
            defer { state.graph = nil }
            return (state.graph, false)
        }
        if prepared.isRunning { throw .alreadyRunning }
        do throws(DeviceError) {
            let graph: Graph
            if let ready = prepared.graph {
                graph = ready
            } else {
                graph = try Graph(path: path, options: options, patience: Self.patience)
            }
            let isStopped = state.withLock { state in
                if state.isRunning { state.graph = graph }
                return !state.isRunning
            }
            if isStopped { return graph.close() }
            try graph.play(loops: options.loops, sink)
        } catch {
            stop()
            throw error
        }
    }

    package func stop() {
        let graph = state.withLock { state in
            defer { state = State() }
            return state.graph
        }
        graph?.close()
    }
}

/// One pipeline for one file: uridecodebin, and a branch per kind of stream, made when the stream shows up.
private final class Graph: Sendable {
    private let path: String
    private let pipeline: GStreamerPipeline
    private let branches: BranchBuilder
    let hasVideo: Bool
    let hasAudio: Bool
    let videoSize: (width: Int, height: Int)?
    let duration: Duration?

    init(path: String, options: MediaFileSource.Options, patience: Int64) throws(DeviceError) {
        let uri = try Self.uri(of: path)
        try GStreamer.require(
            ["uridecodebin", "videoconvert", "videoscale", "videorate", "audioconvert", "audioresample", "appsink"],
            package: "gstreamer1.0-plugins-base")
        try GStreamer.require(["videoflip"], package: "gstreamer1.0-plugins-good")
        try GStreamer.require(["audiobuffersplit"], package: "gstreamer1.0-plugins-bad")
        guard let bin = sora_gst_pipeline_new(), let decoder = gst_element_factory_make("uridecodebin", nil) else {
            throw .unavailable(what: "uridecodebin", remedy: "install gstreamer1.0-plugins-base")
        }
        self.path = path
        pipeline = try GStreamerPipeline(element: bin, device: path)
        branches = BranchBuilder(pipeline: bin, options: options)
        sora_gst_set(decoder, "uri", uri)
        sora_gst_bin_add(bin, decoder)
        let handler = sora_gst_on_pad_added(
            decoder,
            { _, pad, raw in
                guard let pad, let raw else { return }
                Unmanaged<BranchBuilder>.fromOpaque(raw).takeUnretainedValue().add(pad)
            }, Unmanaged.passUnretained(branches).toOpaque())
        let result = pipeline.prepare(seconds: patience)
        // Streams that show up later have no place any more; and the builder may be freed before the element.
        sora_gst_disconnect(decoder, handler)
        let found = branches.found
        if case .failure(let failure) = result {
            pipeline.close()
            switch failure {
            case .failed(let reason): throw .undecodable(path: path, reason: found.problem ?? reason)
            case .timedOut: throw .undecodable(path: path, reason: "no frame came out within \(patience) s")
            }
        }
        hasVideo = found.video != nil
        hasAudio = found.audio != nil
        videoSize = found.video.flatMap { Self.size(of: $0) }
        var length: gint64 = 0
        duration =
            gst_element_query_duration(bin, GST_FORMAT_TIME, &length) != 0 && length > 0
            ? .nanoseconds(Int64(length)) : nil
        if found.video == nil && found.audio == nil {
            pipeline.close()
            throw .undecodable(path: path, reason: found.problem ?? "it has neither video nor audio of the kind wanted")
        }
    }

    deinit { close() }

    func play(loops: Bool, _ sink: @escaping @Sendable (MediaSourceEvent) -> Void) throws(DeviceError) {
        // Two streaming threads and the bus thread deliver; the lock keeps their calls apart.
        let gate = Gate(sink)
        let found = branches.found
        found.video?.onPicture { gate.deliver(.video($0)) }
        found.audio?.onSound { gate.deliver(.audio($0)) }
        let path = path
        let started = pipeline.run { [weak pipeline] event in
            switch event {
            case .ended:
                if loops, pipeline?.rewind() == true { return }
                gate.finish(.ended)
            case .failed(let reason):
                gate.finish(.failed(.undecodable(path: path, reason: reason)))
            }
        }
        if !started { throw .deviceFailed(device: path, reason: "its pipeline did not start") }
    }

    func close() { pipeline.close() }

    /// A file URI for what is a readable regular file.
    private static func uri(of path: String) throws(DeviceError) -> String {
        var information = stat()
        guard stat(path, &information) == 0 else {
            let code = errno
            if code == ENOENT || code == ENOTDIR { throw .fileNotFound(path: path) }
            throw .fileNotReadable(path: path, reason: String(cString: strerror(code)))
        }
        guard information.st_mode & S_IFMT == S_IFREG else {
            throw .fileNotReadable(path: path, reason: "it is not a regular file")
        }
        guard access(path, R_OK) == 0 else {
            throw .fileNotReadable(path: path, reason: String(cString: strerror(errno)))
        }
        guard let resolved = realpath(path, nil) else {
            throw .fileNotReadable(path: path, reason: String(cString: strerror(errno)))
        }
        defer { free(resolved) }
        try GStreamer.requireRunning()
        var error: UnsafeMutablePointer<GError>?
        guard let uri = gst_filename_to_uri(resolved, &error) else {
            throw .fileNotReadable(path: path, reason: GStreamer.text(error))
        }
        defer { g_free(uri) }
        return String(cString: uri)
    }

    private static func size(of sink: GStreamerElement) -> (width: Int, height: Int)? {
        guard let pad = gst_element_get_static_pad(sink.pointer, "sink") else { return nil }
        defer { sora_gst_unref(pad) }
        guard let caps = gst_pad_get_current_caps(pad) else { return nil }
        defer { sora_gst_caps_unref(caps) }
        guard let structure = gst_caps_get_structure(caps, 0) else { return nil }
        var width: gint = 0
        var height: gint = 0
        guard gst_structure_get_int(structure, "width", &width) != 0,
            gst_structure_get_int(structure, "height", &height) != 0
        else { return nil }
        return (Int(width), Int(height))
    }
}

/// Makes a branch for each stream that the decoder finds. Called on GStreamer's threads.
private final class BranchBuilder: @unchecked Sendable {
    // Sendable is proven: the pipeline's pointer never changes and outlives this object's use (the handler is
    // disconnected before the pipeline is freed); the rest stands behind a lock.
    struct Found {
        var video: GStreamerElement?
        var audio: GStreamerElement?
        /// A branch that could not be made, for the error text.
        var problem: String?
    }
    private let pipeline: UnsafeMutablePointer<GstElement>
    private let options: MediaFileSource.Options
    private let state = Locked(Found())

    init(pipeline: UnsafeMutablePointer<GstElement>, options: MediaFileSource.Options) {
        self.pipeline = pipeline
        self.options = options
    }

    var found: Found { state.withLock { $0 } }

    func add(_ pad: UnsafeMutablePointer<GstPad>) {
        guard let caps = gst_pad_get_current_caps(pad) ?? gst_pad_query_caps(pad, nil) else { return }
        let structure = gst_caps_get_structure(caps, 0)
        let media = structure.flatMap { gst_structure_get_name($0) }.map { String(cString: $0) } ?? ""
        var width: gint = 0
        var height: gint = 0
        if let structure {
            _ = gst_structure_get_int(structure, "width", &width)
            _ = gst_structure_get_int(structure, "height", &height)
        }
        sora_gst_caps_unref(caps)
        let isVideo = media.hasPrefix("video/x-raw") && options.usesVideo && found.video == nil
        let isAudio = media.hasPrefix("audio/x-raw") && options.usesAudio && found.audio == nil
        let description =
            isVideo
            ? videoBranch(width: Int(width), height: Int(height))
            : isAudio ? audioBranch : "fakesink async=false sync=false"
        var error: UnsafeMutablePointer<GError>?
        guard let bin = sora_gst_bin(description, &error) else {
            let text = GStreamer.text(error)
            return state.withLock { $0.problem = text }
        }
        sora_gst_bin_add(pipeline, bin)
        if isVideo || isAudio, let sink = sora_gst_child(bin, "out") {
            let element = GStreamerElement(owned: sink)
            state.withLock { if isVideo { $0.video = element } else { $0.audio = element } }
        }
        gst_element_sync_state_with_parent(bin)
        guard let entry = gst_element_get_static_pad(bin, "sink") else { return }
        defer { sora_gst_unref(entry) }
        if gst_pad_link(pad, entry) != GST_PAD_LINK_OK {
            state.withLock { $0.problem = "its \(media) stream could not be connected" }
        }
    }

    /// Sinks keep the clock (`sync`), so decoding runs at real pace.
    private func videoBranch(width: Int, height: Int) -> String {
        var caps = "video/x-raw,format=I420,pixel-aspect-ratio=1/1"
        var rate = ""
        if let framerate = options.maximumFramerate {
            rate = "videorate drop-only=true max-rate=\(min(max(framerate, 1), 240)) ! "
        }
        if let maximum = options.maximumSize, width > 0, height > 0, maximum.width > 0, maximum.height > 0 {
            let scale = min(
                Double(maximum.width) / Double(width), Double(maximum.height) / Double(height))
            if scale < 1 {
                let w = max(2, Int(Double(width) * scale) & ~1)
                let h = max(2, Int(Double(height) * scale) & ~1)
                return "queue max-size-buffers=4 ! \(rate)videoconvert ! videoscale ! "
                    + "video/x-raw,format=I420,width=\(w),height=\(h),pixel-aspect-ratio=1/1 ! "
                    + "videoflip method=automatic ! video/x-raw,format=I420 ! appsink name=out sync=true max-buffers=2"
            }
        }
        caps += " ! videoflip method=automatic ! video/x-raw,format=I420"
        return "queue max-size-buffers=4 ! \(rate)videoconvert ! videoscale ! \(caps) ! "
            + "appsink name=out sync=true max-buffers=2"
    }

    private var audioBranch: String {
        let channels = options.audioChannels >= 2 ? 2 : 1
        return "queue ! audioconvert ! audioresample ! "
            + "audio/x-raw,format=S16LE,rate=48000,channels=\(channels),layout=interleaved ! "
            + "audiobuffersplit output-buffer-duration=1/100 ! appsink name=out sync=true max-buffers=8"
    }
}

/// Keeps the calls of several threads to one sink apart, and lets nothing through after the end.
final class Gate: Sendable {
    private let sink: Locked<(@Sendable (MediaSourceEvent) -> Void)?>

    init(_ sink: @escaping @Sendable (MediaSourceEvent) -> Void) { self.sink = Locked(sink) }

    func deliver(_ event: MediaSourceEvent) { sink.withLock { $0?(event) } }

    func finish(_ event: MediaSourceEvent) {
        sink.withLock { sink in
            sink?(event)
            sink = nil
        }
    }
}
#endif
