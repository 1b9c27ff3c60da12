import Foundation

extension MediaChannel {
    /// Stops or starts the microphone itself.
    ///
    /// - Returns: nil, or why that is not possible.
    public func setAudioHardMute(_ mute: Bool) -> (any Error)? {
        if let error = core.obstacle(audio: true) { return error }
        guard let driver = core.liveDriver else { return core.obstacle(audio: true) ?? ChannelCore.unsupportedMute }
        return driver.setMicrophoneHardMute(mute)
    }

    /// Sends silence, or sound again; the microphone stays open.
    ///
    /// - Returns: nil, or why that is not possible.
    public func setAudioSoftMute(_ mute: Bool) -> (any Error)? {
        if let error = core.obstacle(audio: true) { return error }
        switch core.sendingStream(audio: true) {
        case .failure(let error): return error
        case .success(let stream):
            stream.value.audioEnabled = !mute
            return nil
        }
    }

    /// Sends black frames, or video again; the camera stays open.
    ///
    /// - Returns: nil, or why that is not possible.
    public func setVideoSoftMute(_ mute: Bool) -> (any Error)? {
        if let error = core.obstacle(audio: false) { return error }
        switch core.sendingStream(audio: false) {
        case .failure(let error): return error
        case .success(let stream):
            stream.value.videoEnabled = !mute
            return nil
        }
    }

    /// Stops or starts the camera itself.
    nonisolated(nonsending) public func setVideoHardMute(_ mute: Bool) async throws {
        if let error = core.obstacle(audio: false) { throw error }
        let stream = try core.sendingStream(audio: false).get().value
        try await core.camera.hardMute.set(
            mute, stream: stream, settings: core.settings.cameraSettings, screen: core.camera.screen)
    }

    /// Sends the screen in place of the camera.
    nonisolated(nonsending) public func startScreenCapture(settings: ScreenCaptureSettings = .init()) async throws {
        if let error = core.obstacle(audio: false) { throw error }
        let stream = try core.sendingStream(audio: false).get().value
        if CameraVideoCapturer.current?.stream === stream || core.camera.isOpening {
            throw SoraError.mediaChannelError(
                reason: "camera capture is running on senderStream, call setVideoHardMute(true) before "
                    + "startScreenCapture")
        }
        try await core.camera.screen.start(settings, on: stream)
    }

    /// Ends a screen capture; returns when it has stopped.
    nonisolated(nonsending) public func stopScreenCapture() async { await core.camera.screen.stop() }

    /// True while a screen capture starts, runs or stops.
    public func isScreenCaptureActive() -> Bool { core.camera.screen.isActive }
}

extension ChannelCore {
    static let unsupportedMute = SoraError.mediaChannelError(reason: "setAudioHardMute is not supported")

    /// The checks that all mute and capture operations share, up to the role.
    func obstacle(audio: Bool) -> SoraError? {
        let state = self.state
        guard state == .connected else { return fault("MediaChannel is not connected (state: \(state))") }
        if audio {
            guard settings.audioEnabled else { return fault("audioEnabled is false") }
        } else {
            guard settings.videoEnabled else { return fault("videoEnabled is false") }
        }
        guard settings.role.isSender else { return fault("role is not sender") }
        return nil
    }

    /// The local stream with the track that an operation needs.
    func sendingStream(audio: Bool) -> Result<Transfer<ConnectedStream>, SoraError> {
        guard let stream = senderStream else { return .failure(fault("senderStream is unavailable")) }
        if audio {
            guard stream.hasAudioTrack else { return .failure(fault("senderStream has no AudioTrack")) }
        } else {
            guard stream.hasVideoTrack else { return .failure(fault("senderStream has no VideoTrack")) }
        }
        return .success(Transfer(stream))
    }

    private func fault(_ reason: String) -> SoraError { .mediaChannelError(reason: reason) }
}
