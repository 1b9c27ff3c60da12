import Foundation
#if Media
internal import SoraDevices
internal import SoraFrames
#endif

/// Where the sound of remote streams is played.
protocol SpeakerBackend: Sendable {
    /// A new stream on the speaker; nil when there is none. May block while the speaker opens.
    func open() throws -> any SpeakerStream
}

/// One stream of sound. Ends when it is released.
protocol SpeakerStream: AnyObject, Sendable {
    /// Takes 10 ms of sound; returns at once.
    func play(_ chunk: AudioChunk)
}

/// A system without sound.
struct NoSpeaker: SpeakerBackend {
    func open() throws -> any SpeakerStream {
        throw SoraError.mediaChannelError(reason: "no speaker support in this build")
    }
}

#if Media
/// The microphone of the sound server: the system's default one, with voice processing if it is wanted and the machine
/// has it.
struct SystemMicrophone: MicrophoneBackend {
    var isControllable: Bool { true }

    func start(
        processesVoice: Bool, onSound: @escaping @Sendable (AudioChunk) -> Void
    ) throws -> any MicrophoneCapture {
        if processesVoice, !VoiceProcessing.isAvailable {
            Logger.info(
                type: .mediaStream,
                message: "the microphone is used without voice processing; install gstreamer1.0-plugins-bad for it")
        }
        let isProcessed = processesVoice && VoiceProcessing.isAvailable
        let source = MicrophoneSource(channels: 1, processing: isProcessed ? VoiceProcessing() : nil)
        do {
            try source.start { event in
                switch event {
                case .audio(let frame): onSound(AudioChunk(frame))
                case .video, .ended: break
                case .failed(let error):
                    Logger.error(type: .mediaStream, message: "the microphone failed: \(error.description)")
                }
            }
        } catch {
            throw SoraError.mediaChannelError(reason: error.description)
        }
        return Capture(source)
    }

    private final class Capture: MicrophoneCapture {
        private let source: MicrophoneSource
        init(_ source: MicrophoneSource) { self.source = source }
        func stop() { source.stop() }
    }
}

/// The speaker of the sound server, shared by all streams of the process, so that all of them can be taken out of
/// the microphone's echo.
struct SystemSpeaker: SpeakerBackend {
    private static let mixer = SpeakerMixer { error in
        Logger.error(type: .mediaStream, message: "the speaker failed: \(error.description)")
    }

    func open() throws -> any SpeakerStream {
        do {
            return Stream(try Self.mixer.addInput())
        } catch {
            throw SoraError.mediaChannelError(reason: error.description)
        }
    }

    private final class Stream: SpeakerStream {
        private let input: SpeakerMixer.Input
        init(_ input: SpeakerMixer.Input) { self.input = input }
        func play(_ chunk: AudioChunk) {
            input.consume(
                AudioFrame(
                    samples: chunk.samples, sampleRate: chunk.sampleRate, channels: chunk.channels, timestamp: 0))
        }
    }
}
#endif
