#if Media
import CGStreamer
import SoraFrames
import SoraLocking

/// PulseAudio opens streams late, and then plays to nowhere: a missing server and a wrong name are found out before.
private func requireDevice(_ kind: MediaDevice.Kind, _ id: String?) throws(DeviceError) {
    guard let server = SoundServer.current() else {
        throw .unavailable(what: "a sound server", remedy: "start PipeWire (pipewire-pulse) or PulseAudio")
    }
    guard let id else { return }
    guard server.devices.contains(where: { $0.kind == kind && $0.id == id }) else { throw .noSuchDevice(id) }
}

/// What is done to a voice between microphone and encoder.
package struct VoiceProcessing: Sendable, Equatable {
    /// Takes out what the process's `SpeakerSink` plays. Needs one that was started with `feedsEchoCancellation`
    /// before the microphone.
    package var cancelsEcho = true
    package var suppressesNoise = true
    /// Brings speech to a common loudness.
    package var controlsGain = true
    package init() {}

    private static let elements = ["webrtcdsp", "webrtcechoprobe"]
    /// Whether the machine has what it takes.
    package static var isAvailable: Bool { GStreamer.failure == nil && GStreamer.missing(elements).isEmpty }

    /// The piece of a pipeline, with the exclamation mark behind it.
    ///
    /// - Parameter hasProbe: whether a speaker of the process feeds the cancellation of echo.
    package func description(hasProbe: Bool) throws(DeviceError) -> String {
        try GStreamer.require(Self.elements, package: "gstreamer1.0-plugins-bad")
        return "webrtcdsp probe=\(SpeakerSink.probeName) echo-cancel=\(cancelsEcho && hasProbe) "
            + "noise-suppression=\(suppressesNoise) gain-control=\(controlsGain) high-pass-filter=true ! "
    }
}

/// A microphone, by the PulseAudio interface: 48 kHz, pieces of 10 ms.
package final class MicrophoneSource: MediaSource {
    /// Nil: the system's default source, also when that changes.
    package let deviceID: String?
    package let channels: Int
    /// Nil: the sound as it comes.
    package let processing: VoiceProcessing?
    private let live = LivePipeline()

    package var hasVideo: Bool { false }
    package var hasAudio: Bool { true }

    package init(deviceID: String? = nil, channels: Int = 1, processing: VoiceProcessing? = nil) {
        self.deviceID = deviceID
        self.channels = channels >= 2 ? 2 : 1
        self.processing = processing
    }

    deinit { stop() }

    package func start(_ sink: @escaping @Sendable (MediaSourceEvent) -> Void) throws(DeviceError) {
        try GStreamer.require(["pulsesrc"], package: "gstreamer1.0-plugins-good")
        try GStreamer.require(["audioconvert", "audioresample"], package: "gstreamer1.0-plugins-base")
        try requireDevice(.microphone, deviceID)
        let name = deviceID ?? "the default microphone"
        let device = deviceID.map { " device=\(GStreamer.quoted($0))" } ?? ""
        let hasProbe = SpeakerSink.probe.withLock { $0 > 0 }
        let voice = try processing?.description(hasProbe: hasProbe) ?? ""
        let channels = channels
        let packer = Locked(AudioPacker(samplesPerPacket: 480, sampleRate: 48_000, channels: channels))
        let whole: @Sendable (MediaSourceEvent) -> Void = { event in
            guard case .audio(let frame) = event else { return sink(event) }
            let packets = packer.withLock { packer in
                packer.append(frame)
                var output: [AudioFrame] = []
                while let packet = packer.next() { output.append(packet) }
                return output
            }
            for packet in packets { sink(.audio(packet)) }
        }
        try live.start(device: name, whole) { () throws(DeviceError) in
            try GStreamerPipeline(
                "pulsesrc\(device) client-name=Sora latency-time=10000 buffer-time=60000 do-timestamp=true ! "
                    + "audioconvert ! audioresample ! "
                    + "audio/x-raw,format=S16LE,rate=48000,channels=\(channels),layout=interleaved ! "
                    + "\(voice)appsink name=audio sync=false max-buffers=20 drop=true", device: name)
        }
    }

    package func stop() { live.stop() }
}

/// A speaker, by the PulseAudio interface. Each speaker sink is one stream; the sound server mixes them.
///
/// Sound is played as it comes; if more than `mostWaiting` has piled up (its clock is slower than the sender's), the
/// newest piece is dropped.
package final class SpeakerSink: AudioSink {
    package let deviceID: String?
    /// Whether microphones of the process can take out what this plays. One speaker at a time can.
    package let feedsEchoCancellation: Bool
    static let probeName = "sora-echo-probe"
    /// Running speakers that feed the cancellation: 0 or 1.
    static let probe = Locked(0)
    private struct State {
        var pipeline: GStreamerPipeline?
        var source: GStreamerElement?
        var isProbe = false
        var converter = AudioConverter(sampleRate: 48_000, channels: 2)
        var dropped = 0
        var played = 0
    }
    private let state = Locked(State())
    private let onFailure: (@Sendable (DeviceError) -> Void)?
    /// Bytes of 200 ms of stereo.
    private static let mostWaiting: UInt64 = 48_000 / 5 * 4

    /// Nil: the system's default sink, also when that changes.
    package init(
        deviceID: String? = nil, feedsEchoCancellation: Bool = false,
        onFailure: (@Sendable (DeviceError) -> Void)? = nil
    ) {
        self.deviceID = deviceID
        self.feedsEchoCancellation = feedsEchoCancellation
        self.onFailure = onFailure
    }

    deinit { stop() }

    /// Opens the speaker; returns when it accepts sound.
    package func start() throws(DeviceError) {
        try GStreamer.require(["pulsesink"], package: "gstreamer1.0-plugins-good")
        try GStreamer.require(["audioconvert", "audioresample", "appsrc"], package: "gstreamer1.0-plugins-base")
        if state.withLock({ $0.pipeline != nil }) { throw .alreadyRunning }
        try requireDevice(.speaker, deviceID)
        let name = deviceID ?? "the default speaker"
        let device = deviceID.map { " device=\(GStreamer.quoted($0))" } ?? ""
        var probe = ""
        // Where it is missing, no microphone of the process cancels echo either.
        if feedsEchoCancellation, GStreamer.missing(["webrtcechoprobe"]).isEmpty {
            let isFree = Self.probe.withLock { probe in
                guard probe == 0 else { return false }
                probe = 1
                return true
            }
            if isFree { probe = "webrtcechoprobe name=\(Self.probeName) ! " }
        }
        do throws(DeviceError) {
            try open(name: name, device: device, probe: probe)
        } catch {
            if !probe.isEmpty { Self.probe.withLock { $0 = 0 } }
            throw error
        }
    }

    private func open(name: String, device: String, probe: String) throws(DeviceError) {
        let pipeline = try GStreamerPipeline(
            "appsrc name=in is-live=true format=time do-timestamp=true block=false "
                + "caps=\"audio/x-raw,format=S16LE,rate=48000,channels=2,layout=interleaved\" ! "
                + "audioconvert ! audioresample ! \(probe)"
                + "pulsesink name=out\(device) client-name=Sora sync=false latency-time=10000 buffer-time=60000",
            device: name)
        guard let source = pipeline.child("in") else { throw .deviceFailed(device: name, reason: "no entry") }
        // READY opens the device: a missing one is known here and not later.
        guard pipeline.setState(GST_STATE_READY) else {
            let reason = pipeline.nextError(seconds: 1) ?? "it could not be opened; is a sound server running?"
            throw .deviceFailed(device: name, reason: reason)
        }
        let onFailure = onFailure
        let started = pipeline.run { event in
            if case .failed(let reason) = event { onFailure?(.deviceFailed(device: name, reason: reason)) }
        }
        guard started else { throw .deviceFailed(device: name, reason: "it did not start") }
        state.withLock {
            $0.pipeline = pipeline
            $0.source = source
            $0.isProbe = !probe.isEmpty
        }
    }

    package func consume(_ frame: AudioFrame) {
        state.withLock { state in
            guard let source = state.source, !frame.samples.isEmpty else { return }
            guard sora_gst_queued_bytes(source.pointer) < Self.mostWaiting else {
                state.dropped += 1
                return
            }
            let stereo = state.converter.convert(frame)
            stereo.samples.withUnsafeBytes { bytes in
                _ = sora_gst_push(
                    source.pointer, bytes.baseAddress, gsize(bytes.count), sora_gst_none(), sora_gst_none())
            }
            state.played += 1
        }
    }

    /// Pieces played and pieces dropped so far.
    package var counts: (played: Int, dropped: Int) { state.withLock { ($0.played, $0.dropped) } }

    package func stop() {
        let (pipeline, isProbe) = state.withLock { state in
            defer {
                state.pipeline = nil
                state.source = nil
                state.isProbe = false
            }
            return (state.pipeline, state.isProbe)
        }
        pipeline?.close()
        if isProbe { Self.probe.withLock { $0 = 0 } }
    }
}
#endif
