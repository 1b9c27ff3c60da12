import Sora
import TestSupport
import Testing

extension Trait where Self == LeavesNoObjects {
    /// After each test, no object of the SDK and the stack that it made is alive, beside those that belong to the
    /// process: the first connection makes them, and all that come later share them.
    static var leavesNoObjects: Self {
        let lasting = [
            // The event loop of all connections, with its thread, and the watch over the machine's addresses.
            "SoraNetwork.EventLoop": 1, "SoraNetwork.LoopBuffers": 1, "SoraNetwork.Thread.Start": 1,
            "Sora.InterfaceWatch": 1, "SoraNetwork.Resolver": 1,
            // The main queue, watched: one in a process.
            "Sora.MainQueue": 1,
            // The identity of the process in DTLS.
            "SoraSecureTransport.DTLSCertificate": 1, "SoraSecureTransport.SharedContext": 1,
            // Codec threads, as many as cores.
            "SoraMedia.CodecThread": RealTime.cores,
            // Loggers and what they mask.
            "Sora.Logger": 2, "Sora.SecretRegistry": 1,
            // Cameras, screen and sound: one of each in a process, also where iOS has `shared`.
            "Sora.CameraSystem": 1, "Sora.CameraVideoCapturerHandlers": 1, "Sora.ScreenCaptureOwner": 1,
            "Sora.RTCAudioSession": 1, "Sora.AVAudioSession": 1, "Sora.AVAudioSessionRouteDescription": 1,
            "Sora.AudioRouteObserver": 1,
            "Sora.DeliveryQueue": 1,
            "SoraDevices.SpeakerMixer": 1, "SoraDevices.SpeakerSink": 1, "SoraDevices.Flag": 1,
            "SoraDevices.DeviceMonitor": 2, "SoraDevices.ChangeList": 2, "SoraDevices.SoundServer": 1,
            // The watch over cameras never stops (see `CameraServer`), nor does the owner of windows where there is a
            // display: each has a thread.
            "SoraDevices.CameraServer": 1, "SoraDevices.WindowThread": 1, "SoraDevices.DeviceThread.Body": 2,
        ]
        return .leavesNoObjects(but: lasting) { _ = Sora.shared }
    }
}
