import TestSupport
import Testing

@testable import Sora

extension Trait where Self == LeavesNoObjects {
    /// After each test, no object of the SDK and the stack that it made is alive, beside those that belong to the
    /// process: the first connection makes them, and all that come later share them.
    static var leavesNoObjects: Self {
        let lasting = [
            // The event loop of all connections, with its thread, and the watch over the machine's addresses.
            "SoraNetwork.EventLoop": 1, "SoraNetwork.LoopBuffers": 1, "SoraNetwork.Thread.Start": 1,
            "Sora.InterfaceWatch": 1, "SoraNetwork.Resolver": 1,
            // The identity of the process in DTLS.
            "SoraSecureTransport.DTLSCertificate": 1, "SoraSecureTransport.SharedContext": 1,
            // Codec threads, as many as cores.
            "SoraMedia.CodecThread": RealTime.cores,
            // The logger, which tests replace, and the present route of sound, which changes.
            "Sora.Logger": 2, "Sora.AVAudioSessionRouteDescription": 1,
            // The machine's devices.
            "SoraDevices.SpeakerMixer": 1, "SoraDevices.SpeakerSink": 1, "SoraDevices.Flag": 1,
            "SoraDevices.DeviceMonitor": 2, "SoraDevices.ChangeList": 2, "SoraDevices.SoundServer": 1,
            // The watch over cameras never stops (see `CameraServer`), nor does the owner of windows where there is a
            // display: each has a thread.
            "SoraDevices.CameraServer": 1, "SoraDevices.WindowThread": 1, "SoraDevices.DeviceThread.Body": 2,
        ]
        return .leavesNoObjects(but: lasting) {
            // What there is one of in a process, also where iOS has `shared`: made before anything counts, so that a second
            // one, or one more of what it is made of, is noticed.
            _ = (Sora.shared, MainQueue.shared, SecretRegistry.shared)
            _ = (CameraSystem.shared, ScreenCaptureOwner.shared, AudioRouteObserver.shared)
            _ = (RTCAudioSession.sharedInstance(), AVAudioSession.sharedInstance())
        }
    }
}
