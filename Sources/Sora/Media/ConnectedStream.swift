import Foundation
internal import SoraFrames
internal import SoraLocking

/// The stream of a connection, local or remote.
///
/// `@unchecked Sendable` is not needed: all state is in locked parts, but the public protocol's values are
/// non-Sendable, so the type stays so too and travels inside the SDK in `Transfer`.
final class ConnectedStream: MediaStream {
    private struct State {
        var filter: (any VideoFilter)?
        var renderer: RendererBinding?
        var sinks: [ObjectIdentifier: any RTCAudioTrackSink] = [:]
        var volume = 1.0
        var taps: [Int: FrameTap] = [:]
        var nextTap = 0
        var isTerminated = false

        /// Whether anybody wants to see the stream's frames.
        var isWatched: Bool { !isTerminated && (renderer?.renderer != nil || !taps.isEmpty) }
    }

    /// Gets each frame beside the renderer, on the thread on which it comes up, until the stream ends.
    struct FrameTap: Sendable {
        var receive: @Sendable (VideoFrame) -> Void
        var finish: @Sendable () -> Void
    }

    let handlers = MediaStreamHandlers()
    let streamId: String
    let creationTime = Date()
    let isLocal: Bool

    private weak let core: ChannelCore?
    private let videoSlot: Locked<(any VideoTrackPort)?>
    private let audioSlot: Locked<(any AudioTrackPort)?>
    private var video: (any VideoTrackPort)? { videoSlot.read() }
    private var audio: (any AudioTrackPort)? { audioSlot.read() }
    private let state = Locked(State())
    private let videoSwitch = TrackSwitch()
    private let audioSwitch = TrackSwitch()
    private let isWatching = Locked(false)
    private let ingress = Locked<SendQueue?>(nil)
    private let encodedSinks = Locked<[any EncodedSink]>([])

    init(
        streamId: String, isLocal: Bool, core: ChannelCore?, video: (any VideoTrackPort)? = nil,
        audio: (any AudioTrackPort)? = nil
    ) {
        self.streamId = streamId
        self.isLocal = isLocal
        self.core = core
        videoSlot = Locked(video)
        audioSlot = Locked(audio)
        guard isLocal else { return }
        let stream = weakSelf
        ingress.write(SendQueue { frame in stream.value.stream?.filterAndSend(frame.value) })
    }

    /// Gives the stream its tracks, as far as it lacks them.
    func attach(video: (any VideoTrackPort)?, audio: (any AudioTrackPort)?) {
        if let video, self.video == nil {
            videoSlot.write(video)
            for sink in encodedSinks.read() { video.addEncodedSink(sink) }
            watchNewTrack()
        }
        if let audio, self.audio == nil {
            audioSlot.write(audio)
            for sink in encodedSinks.read() { audio.addEncodedSink(sink) }
            if state.withLock({ !$0.sinks.isEmpty }) { listen(true) }
        }
    }

    /// Takes a track away that the other side no longer sends.
    func detach(video: Bool, audio: Bool) {
        if video { videoSlot.exchange(nil)?.setVideoReceiver(nil) }
        if audio { audioSlot.exchange(nil)?.setAudioReceiver(nil) }
    }

    /// Hands the coded frames of present and later tracks to a recorder.
    func addEncodedSink(_ sink: any EncodedSink) {
        encodedSinks.withLock { $0.append(sink) }
        video?.addEncodedSink(sink)
        audio?.addEncodedSink(sink)
    }

    private var weakSelf: Transfer<WeakStream> { Transfer(WeakStream(self)) }

    /// Makes the track decode exactly while somebody watches. Decided and done in one step, so that a watcher who comes
    /// while another leaves is not forgotten.
    private func updateWatch() {
        isWatching.withLock { isWatching in
            let isWanted = state.withLock { $0.isWatched }
            guard isWanted != isWatching else { return }
            isWatching = isWanted
            watch(isWanted)
        }
    }

    /// A track that has come decodes from the start if somebody waits for it.
    private func watchNewTrack() {
        isWatching.withLock { isWatching in
            isWatching = state.withLock { $0.isWatched }
            if isWatching { watch(true) }
        }
    }

    private func watch(_ isWatched: Bool) {
        guard !isLocal, let video else { return }
        let stream = weakSelf
        let receiver: @Sendable (SoraFrames.VideoFrame) -> Void = { frame in
            stream.value.stream?.receive(video: VideoFrame(frame))
        }
        video.setVideoReceiver(isWatched ? receiver : nil)
    }

    private func listen(_ isHeard: Bool) {
        let stream = weakSelf
        let receiver: @Sendable (AudioChunk) -> Void = { stream.value.stream?.receive(audio: $0) }
        audio?.setAudioReceiver(isHeard ? receiver : nil)
    }

    /// Sends sound of the microphone.
    func send(audio chunk: AudioChunk) {
        guard isLocal, !state.withLock({ $0.isTerminated }) else { return }
        audio?.send(chunk)
    }

    private final class WeakStream {
        weak var stream: ConnectedStream?
        init(_ stream: ConnectedStream) { self.stream = stream }
    }

    var mediaChannel: MediaChannel? { core?.channel }
    var hasVideoTrack: Bool { video != nil }
    var hasAudioTrack: Bool { audio != nil }

    // MARK: Switches

    var videoEnabled: Bool {
        get { video != nil && videoSwitch.isOn }
        set { setVideoEnabled(newValue, by: videoSwitch.begin()) }
    }

    var audioEnabled: Bool {
        get { audio != nil && audioSwitch.isOn }
        set { setAudioEnabled(newValue, by: audioSwitch.begin()) }
    }

    /// Takes a place in the order of operations that decide `videoEnabled`.
    func beginVideoOperation() -> TrackSwitch.Ticket { videoSwitch.begin() }
    func beginAudioOperation() -> TrackSwitch.Ticket { audioSwitch.begin() }

    func setVideoEnabled(_ isEnabled: Bool, by ticket: TrackSwitch.Ticket) {
        guard let video, videoSwitch.set(isEnabled, by: ticket, apply: video.setEnabled) else { return }
        handlers.onSwitchVideo?(isEnabled)
        core?.publish(.videoEnabledChanged, streamId: streamId, isEnabled: isEnabled)
        state.withLock { $0.renderer }?.sendWhileActive { $0.onSwitch(video: isEnabled) }
    }

    func setAudioEnabled(_ isEnabled: Bool, by ticket: TrackSwitch.Ticket) {
        guard let audio, audioSwitch.set(isEnabled, by: ticket, apply: audio.setEnabled) else { return }
        handlers.onSwitchAudio?(isEnabled)
        core?.publish(.audioEnabledChanged, streamId: streamId, isEnabled: isEnabled)
        state.withLock { $0.renderer }?.sendWhileActive { $0.onSwitch(audio: isEnabled) }
    }

    // MARK: Audio

    var remoteAudioVolume: Double? {
        get { audio == nil ? nil : state.withLock { $0.volume } }
        set {
            guard let audio, let newValue, !newValue.isNaN else { return }
            let volume = Swift.min(Swift.max(newValue, MediaStreamAudioVolume.min), MediaStreamAudioVolume.max)
            state.withLock { state in
                state.volume = volume
                audio.setVolume(volume)
            }
        }
    }

    func addAudioTrackSink(_ sink: any RTCAudioTrackSink) {
        guard audio != nil else { return }
        let isFirst = state.withLockUnchecked { state in
            guard !state.isTerminated else { return false }
            defer { state.sinks[ObjectIdentifier(sink)] = sink }
            return state.sinks.isEmpty
        }
        if isFirst { listen(true) }
    }

    func removeAudioTrackSink(_ sink: any RTCAudioTrackSink) {
        let (removed, isLast) = state.withLockUnchecked { state in
            let removed = state.sinks.removeValue(forKey: ObjectIdentifier(sink))
            return (removed, removed != nil && state.sinks.isEmpty)
        }
        if isLast { listen(false) }
        withExtendedLifetime(removed) {}
    }

    /// Hands 10 ms of sound to the sinks. Called on a thread for sound.
    func receive(audio chunk: AudioChunk) {
        let sinks = state.withLock { Array($0.sinks.values) }
        for sink in sinks {
            let mixed = chunk.mixed(to: sink.preferredNumberOfChannels())
            sink.onData(
                mixed.data, bitsPerSample: 16, sampleRate: mixed.sampleRate, numberOfChannels: mixed.channels,
                numberOfFrames: mixed.frameCount)
        }
    }

    // MARK: Video

    var videoFilter: (any VideoFilter)? {
        get { state.withLock { $0.filter } }
        set {
            let old = state.withLockUnchecked { state in
                defer { state.filter = newValue }
                return state.filter
            }
            withExtendedLifetime(old) {}
        }
    }

    var videoRenderer: (any VideoRenderer)? {
        get { state.withLock { $0.renderer }?.renderer }
        set { assign(newValue) }
    }

    private func assign(_ renderer: (any VideoRenderer)?) {
        let (old, new) = state.withLock { state -> (RendererBinding?, RendererBinding?) in
            let old = state.renderer
            if let renderer, let old, old.renderer === renderer { return (nil, nil) }
            let new = state.isTerminated ? nil : renderer.map(RendererBinding.init)
            // After the end a renderer is remembered only so that the getter tells it.
            state.renderer = new ?? renderer.map(Self.inactiveBinding)
            return (old, new)
        }
        let stream = Transfer(self)
        if let old {
            old.deactivate()
            old.send { $0.onRemoved(from: stream.value) }
        }
        new?.send { $0.onAdded(from: stream.value) }
        updateWatch()
    }

    private static func inactiveBinding(_ renderer: any VideoRenderer) -> RendererBinding {
        let binding = RendererBinding(renderer)
        binding.deactivate()
        return binding
    }

    func send(videoFrame: VideoFrame?) {
        guard let videoFrame, isLocal, video != nil else { return }
        ingress.read()?.put(videoFrame)
    }

    private func filterAndSend(_ frame: VideoFrame) {
        let (filter, isTerminated) = state.withLock { ($0.filter, $0.isTerminated) }
        guard !isTerminated else { return }
        let filtered = filter?.filter(videoFrame: frame) ?? frame
        if let picture = filtered.picture { video?.send(picture) }
        show(filtered)
    }

    /// Hands a decoded frame to the renderer. Called on a codec thread.
    func receive(video frame: VideoFrame) { show(frame) }

    private func show(_ frame: VideoFrame) {
        guard videoSwitch.isOn else { return }
        let (renderer, taps) = state.withLock { ($0.renderer, $0.taps.isEmpty ? [] : Array($0.taps.values)) }
        renderer?.render(frame)
        for tap in taps { tap.receive(frame) }
    }

    /// - Returns: the number of the tap; nil if the stream has ended, which the tap was then told.
    func addTap(_ tap: FrameTap) -> Int? {
        let id = state.withLock { state -> Int? in
            guard !state.isTerminated else { return nil }
            let id = state.nextTap
            state.nextTap += 1
            state.taps[id] = tap
            return id
        }
        if id == nil { tap.finish() }
        updateWatch()
        return id
    }

    func removeTap(_ id: Int) {
        let removed = state.withLock { $0.taps.removeValue(forKey: id) }
        updateWatch()
        withExtendedLifetime(removed) {}
    }

    // MARK: End

    func terminate() {
        let (isFirst, renderer, sinks, taps) = state.withLock { state in
            defer {
                state.isTerminated = true
                state.sinks = [:]
                state.taps = [:]
            }
            return (!state.isTerminated, state.renderer, state.sinks, state.taps)
        }
        guard isFirst else { return }
        if !sinks.isEmpty { listen(false) }
        updateWatch()
        ingress.read()?.terminate()
        renderer?.deactivate()
        let channel = Transfer(mediaChannel)
        renderer?.send { $0.onDisconnect(from: channel.value) }
        for tap in taps.values { tap.finish() }
    }
}
