import Foundation
import SoraLocking
import Testing

@testable import Sora

@Suite(.serialized, .leavesNoObjects) struct MicrophoneTests {
    private let session = RTCAudioSession()

    private func stream(_ track: RecordingTrack) -> ConnectedStream {
        ConnectedStream(streamId: "mainStream", isLocal: true, core: nil, video: nil, audio: track)
    }

    private func text(_ error: SoraError?) -> String { error?.localizedDescription ?? "nil" }

    @Test func opensWithTheLocalStreamAndClosesWithTheConnection() async {
        let device = ScriptedMicrophone()
        let microphone = ConnectionMicrophone(isHardMuted: false, session: session, backend: device)
        await audioQueueTurn()
        #expect(device.journal.entries.isEmpty && !microphone.isOpen)
        let track = RecordingTrack()
        let local = stream(track)
        microphone.open(for: local)
        await audioQueueTurn()
        #expect(microphone.isOpen)
        device.speak()
        #expect(track.journal.entries.contains { $0.hasPrefix("sound") })
        microphone.close()
        await audioQueueTurn()
        #expect(device.journal.entries == ["open", "closing", "closed"] && !microphone.isOpen)
    }

    // api 2.9: the device itself, synchronously, and as often as one likes.
    @Test func hardMuteClosesAndOpensTheDevice() async {
        let device = ScriptedMicrophone()
        let microphone = ConnectionMicrophone(isHardMuted: false, session: session, backend: device)
        let local = stream(RecordingTrack())
        microphone.open(for: local)
        await audioQueueTurn()
        for isMuted in [true, true, false, false, true] {
            #expect(microphone.setHardMute(isMuted) == nil)
            #expect(microphone.isOpen == !isMuted)
        }
        #expect(device.journal.entries == ["open", "closing", "closed", "open", "closing", "closed"])
        microphone.close()
    }

    // api 3.12: with initialMicrophoneEnabled = false nothing is captured until it is asked for.
    @Test func aMutedStartOpensNothing() async {
        let device = ScriptedMicrophone()
        let microphone = ConnectionMicrophone(isHardMuted: true, session: session, backend: device)
        let local = stream(RecordingTrack())
        microphone.open(for: local)
        await audioQueueTurn()
        #expect(device.journal.entries.isEmpty)
        #expect(microphone.setHardMute(false) == nil)
        #expect(device.journal.entries == ["open"])
        microphone.close()
        await audioQueueTurn()
    }

    @Test func refusalsHaveTheDocumentedTexts() async {
        let device = ScriptedMicrophone()
        let microphone = ConnectionMicrophone(isHardMuted: true, session: session, backend: device)
        let local = stream(RecordingTrack())
        microphone.open(for: local)
        await audioQueueTurn()
        device.failsToStart.write(true)
        #expect(
            text(microphone.setHardMute(false))
                == "MediaChannel error (AudioDeviceModuleWrapper::setAudioHardMute failed)")
        // It is still muted: what changes elsewhere does not open it.
        device.failsToStart.write(false)
        session.useManualAudio = true
        session.isAudioEnabled = true
        await audioQueueTurn()
        #expect(!microphone.isOpen)
        #expect(microphone.setHardMute(false) == nil && microphone.isOpen)
        microphone.close()
        let fixed = ConnectionMicrophone(
            isHardMuted: false, session: session, backend: ScriptedMicrophone(isControllable: false))
        #expect(text(fixed.setHardMute(true)) == "MediaChannel error (setAudioHardMute is not supported)")
    }

    // api 2.1, 4.2: manual audio and the category decide.
    @Test func theAudioSessionDecidesAboutTheDevice() async throws {
        let device = ScriptedMicrophone()
        let microphone = ConnectionMicrophone(isHardMuted: false, session: session, backend: device)
        let local = stream(RecordingTrack())
        session.useManualAudio = true
        microphone.open(for: local)
        await audioQueueTurn()
        #expect(!microphone.isOpen)
        session.isAudioEnabled = true
        await audioQueueTurn()
        #expect(microphone.isOpen)
        try session.setCategory(.playback, with: [])
        await audioQueueTurn()
        #expect(!microphone.isOpen)
        try session.setCategory(.record, with: [])
        await audioQueueTurn()
        #expect(microphone.isOpen)
        session.isAudioEnabled = false
        await audioQueueTurn()
        #expect(!microphone.isOpen)
        microphone.close()
    }

    // api 2.4
    @Test func voiceProcessingIsBypassedWhereTheSettingsSaySo() async throws {
        func processes(_ change: (inout Configuration) -> Void) throws -> Bool {
            var configuration = Stage.configuration()
            change(&configuration)
            return try ConfigurationSnapshot(configuration).processesVoice
        }
        #expect(try processes { _ in })
        #expect(try !processes { $0.bypassVoiceProcessing = true })
        #expect(try !processes { $0.audioStereoOutputEnabled = true })
        let device = ScriptedMicrophone()
        let microphone = ConnectionMicrophone(
            isHardMuted: false, processesVoice: false, session: session, backend: device)
        let local = stream(RecordingTrack())
        microphone.open(for: local)
        await audioQueueTurn()
        #expect(device.journal.entries == ["open plain"])
        microphone.close()
    }

    @Test func voiceIsProcessedInTheModesForConversations() async throws {
        for (mode, entry) in [(.default, "open plain"), (.voiceChat, "open"), (.videoChat, "open")]
            as [(AVAudioSession.Mode, String)]
        {
            try session.setMode(mode)
            let device = ScriptedMicrophone()
            let microphone = ConnectionMicrophone(isHardMuted: false, session: session, backend: device)
            let local = stream(RecordingTrack())
            microphone.open(for: local)
            await audioQueueTurn()
            #expect(device.journal.entries == [entry])
            microphone.close()
            await audioQueueTurn()
        }
    }

    // A value of the server or the application never overflows.
    @Test func bitRatesAreClamped() {
        #expect(TransportMedia.bitsPerSecond(500) == 500_000)
        #expect(TransportMedia.bitsPerSecond(.max) == 1_000_000_000)
        #expect(TransportMedia.bitsPerSecond(.min) == 1000 && TransportMedia.bitsPerSecond(0) == 1000)
    }
}
