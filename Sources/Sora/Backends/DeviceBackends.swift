/// The devices that this build drives: with the trait `Media` those of SoraDevices, without it none.
enum DeviceBackends {
    static var cameras: any CameraBackend {
        #if Media
        return SystemCameras()
        #else
        return NoCameras()
        #endif
    }
    static var microphone: any MicrophoneBackend {
        #if Media
        return SystemMicrophone()
        #else
        return NoMicrophone()
        #endif
    }
    static var screen: any ScreenCaptureBackend {
        #if Media
        return SystemScreen()
        #else
        return NoScreen()
        #endif
    }
    static var speaker: any SpeakerBackend {
        #if Media
        return SystemSpeaker()
        #else
        return NoSpeaker()
        #endif
    }

    /// A window for a view; nil where there is no display.
    @MainActor static func makeSurface(_ view: VideoView) -> (any VideoSurface)? {
        #if Media
        return WindowSurface(view)
        #else
        return nil
        #endif
    }

    /// Begins to report changes of the audio route; once per process.
    static func watchAudioRoutes() {
        #if Media
        SystemAudioRoutes.start()
        #endif
    }
}
