#if Media
import Foundation
import SoraFrames
import TestSupport
import Testing

@testable import SoraDevices

@Suite struct CameraFormatTests {
    func raw(_ w: Int, _ h: Int, _ rates: ClosedRange<Double>...) -> CameraFormat {
        CameraFormat(width: w, height: h, pixelFormat: "YUY2", framerates: rates)
    }
    func jpeg(_ w: Int, _ h: Int, _ rates: ClosedRange<Double>...) -> CameraFormat {
        CameraFormat(width: w, height: h, mediaType: "image/jpeg", framerates: rates)
    }

    @Test func takesJPEGWhereRawIsTooSlow() throws {  // DEV1
        let formats = [raw(1920, 1080, 5...5), jpeg(1920, 1080, 30...30), raw(640, 480, 30...30)]
        let best = try #require(CameraFormat.best(of: formats, width: 1920, height: 1080, framerate: 30))
        #expect(best.format == formats[1] && best.framerate == 30)
        let small = try #require(CameraFormat.best(of: formats, width: 640, height: 480, framerate: 30))
        #expect(small.format == formats[2])
    }

    @Test func looksAtRatesOfOneSizeInTwoFormats() throws {  // DEV2
        let formats = [raw(1280, 720, 1...30), raw(1280, 720, 1...60)]
        #expect(CameraFormat.best(of: formats, width: 1280, height: 720, framerate: 60)?.format == formats[1])
        #expect(CameraFormat.best(of: formats, width: 1280, height: 720, framerate: 30)?.format == formats[0])
    }

    @Test func takesTheFastestWhereNoneReaches() throws {
        let formats = [raw(1280, 720, 10...10), jpeg(1280, 720, 15...15)]
        let best = try #require(CameraFormat.best(of: formats, width: 1280, height: 720, framerate: 60))
        #expect(best.format == formats[1] && best.framerate == 15)
        #expect(raw(1, 1, 29.97...29.97).reaches(29) && !raw(1, 1, 29.97...29.97).reaches(30))
        #expect(CameraFormat.best(of: [], width: 1, height: 1, framerate: 1) == nil)
    }
}

/// Without any device: a source that makes noise in place of the microphone.
@Suite(.serialized, .leavesNoObjects) struct VoiceProcessingTests {
    /// Level of steady noise behind a piece of pipeline.
    private func level(behind element: String) throws -> Double {
        let live = LivePipeline()
        let collector = Collector()
        try live.start(device: "noise", { collector.take($0) }) { () throws(DeviceError) in
            try GStreamerPipeline(
                "audiotestsrc is-live=true wave=white-noise volume=0.05 samplesperbuffer=480 ! "
                    + "audio/x-raw,format=S16LE,rate=48000,channels=1,layout=interleaved ! "
                    + "\(element)appsink name=audio sync=false max-buffers=20 drop=true", device: "noise")
        }
        #expect(collector.wait { $0.audio.count >= 300 })
        live.stop()
        let last = collector.now.audio.suffix(100)
        return last.map(\.level).reduce(0, +) / Double(max(last.count, 1))
    }

    @Test func steadyNoiseIsSuppressed() throws {
        guard VoiceProcessing.isAvailable else { return }
        var processing = VoiceProcessing()
        processing.controlsGain = false
        let plain = try level(behind: "")
        let cleaned = try level(behind: try processing.description(hasProbe: false))
        #expect(plain > 0.01, "\(plain)")
        #expect(cleaned < plain / 2, "\(plain) → \(cleaned)")
    }
}

@Suite(
    .serialized, .leavesNoObjects,
    .enabled(if: DeviceServices.areThere, "not installed: \(DeviceServices.missing.joined(separator: ", "))"))
struct DeviceTests {
    init() throws { _ = try #require(DeviceServices.display) }

    @Test func cameraIsListedDeliversAndIsMissedWhenUnplugged() throws {
        let list = DeviceList()
        let monitor = try DeviceMonitor(kinds: [.camera]) { list.set($0) }
        defer { monitor.stop() }
        let name = "sora-cam-a"
        let camera = try VirtualCamera(name: name)
        #expect(list.wait { $0.contains { $0.id == name && !$0.formats.isEmpty } }, "\(monitor.devices)")
        let device = try #require(DeviceMonitor.list(.camera).first { $0.id == name })
        #expect(device.formats.first?.width == 320 && device.formats.first?.height == 180)

        let source = try CameraSource(device, width: 640, height: 480, framerate: 30)
        let collector = Collector(keepsPictures: true)
        let start = MonotonicClock.now
        try source.start { collector.take($0) }
        #expect(throws: DeviceError.alreadyRunning) { try source.start { _ in } }
        #expect(collector.wait { $0.videoCount >= 30 })
        #expect(MonotonicClock.now - start > 800_000_000, "at the camera's pace")
        source.stop()
        let pictures = collector.now.video
        #expect(pictures.allSatisfy { $0.width == 320 && $0.height == 180 })
        #expect(zip(pictures, pictures.dropFirst()).allSatisfy { $0.timestamp < $1.timestamp })
        #expect(pictures.allSatisfy { $0.timestamp > start && $0.timestamp < MonotonicClock.now }, "monotonic clock")
        let brightest = pictures.map { picture in
            picture.buffer.withPlanes { planes in
                (0..<(320 * 180)).max { a, b in
                    planes.y[a / 320 * planes.strideY + a % 320] < planes.y[b / 320 * planes.strideY + b % 320]
                } ?? 0
            }
        }
        #expect(Set(brightest).count > 10, "the ball moves")
        let count = collector.now.videoCount
        #expect(!collector.wait(0.2) { $0.videoCount > count })

        camera.unplug()
        #expect(list.wait { !$0.contains { $0.id == name } })

        // PipeWire's virtual camera serves one visit only, hence another one.
        let other = try VirtualCamera(name: "sora-cam-b")
        #expect(list.wait { $0.contains { $0.id == "sora-cam-b" && !$0.formats.isEmpty } })
        let otherDevice = try #require(DeviceMonitor.list(.camera).first { $0.id == "sora-cam-b" })
        let running = try CameraSource(otherDevice, width: 320, height: 180, framerate: 30)
        let again = Collector()
        try running.start { again.take($0) }
        other.unplug()
        #expect(again.wait { $0.failure != nil })
        running.stop()
    }

    @Test func twoCamerasAtOnce() throws {
        let cameras = [
            try VirtualCamera(name: "sora-cam-c"), try VirtualCamera(name: "sora-cam-d", width: 160, height: 90),
        ]
        defer { for camera in cameras { camera.unplug() } }
        let list = DeviceList()
        let monitor = try DeviceMonitor(kinds: [.camera]) { list.set($0) }
        list.set(monitor.devices)
        #expect(
            list.wait { devices in ["sora-cam-c", "sora-cam-d"].allSatisfy { id in devices.contains { $0.id == id } } })
        monitor.stop()
        var running: [(CameraSource, Collector)] = []
        for id in ["sora-cam-c", "sora-cam-d"] {
            let device = try #require(DeviceMonitor.list(.camera).first { $0.id == id })
            let source = try CameraSource(device, width: 320, height: 180, framerate: 30)
            let collector = Collector()
            try source.start { collector.take($0) }
            running.append((source, collector))
        }
        for (source, collector) in running {
            #expect(collector.wait { $0.videoCount >= 10 })
            source.stop()
        }
        #expect(running[0].1.now.video.first?.width == 320 && running[1].1.now.video.first?.width == 160)
    }

    @Test func cameraThatIsNotThereSaysSo() {
        let format = CameraFormat(width: 320, height: 180, framerates: [30...30])
        let source = CameraSource(deviceID: "no-such-camera", format: format, framerate: 30)
        #expect(throws: DeviceError.noSuchDevice("no-such-camera")) { try source.start { _ in } }
    }

    @Test func soundDevicesAreListedWithTheirDefaults() throws {
        let speakers = DeviceMonitor.list(.speaker)
        #expect(speakers.contains { $0.id == "spk1" && $0.name == "Speaker1" && $0.isDefault }, "\(speakers)")
        #expect(speakers.contains { $0.id == "micfeed" && !$0.isDefault })
        let microphones = DeviceMonitor.list(.microphone)
        #expect(microphones.contains { $0.id == "mic1" && !$0.isMonitor }, "\(microphones)")
        #expect(microphones.contains { $0.id == "spk1.monitor" && $0.isMonitor })
    }

    @Test func changeOfTheDefaultSpeakerIsReported() throws {
        let list = DeviceList()
        let monitor = try DeviceMonitor(kinds: [.speaker]) { list.set($0) }
        defer {
            monitor.stop()
            _ = Program.output("pactl", ["set-default-sink", "spk1"])
        }
        _ = Program.output("pactl", ["set-default-sink", "micfeed"])
        #expect(list.wait { $0.contains { $0.id == "micfeed" && $0.isDefault } }, "\(monitor.devices)")
        let module = Program.output("pactl", ["load-module", "module-null-sink", "sink_name=spk2"])
        #expect(list.wait { $0.contains { $0.id == "spk2" } })
        if let module {
            _ = Program.output("pactl", ["unload-module", module.trimmingCharacters(in: .whitespacesAndNewlines)])
        }
        #expect(list.wait { !$0.contains { $0.id == "spk2" } })
    }

    @Test func soundGoesFromSpeakerToMicrophone() throws {
        let speaker = SpeakerSink(deviceID: "micfeed")
        try speaker.start()
        let tone = TestPatternSource(pattern: nil, tone: TestTone(channels: 2))
        try tone.start { event in if case .audio(let frame) = event { speaker.consume(frame) } }
        let microphone = MicrophoneSource(deviceID: "mic1", channels: 1)
        let collector = Collector()
        try microphone.start { collector.take($0) }
        // 440 Hz at an eighth of full scale, and the louder beep.
        #expect(collector.wait { $0.audio.count >= 150 && $0.audio.suffix(100).contains { $0.level > 0.2 } })
        microphone.stop()
        tone.stop()
        speaker.stop()
        let heard = collector.now.audio.suffix(100)
        #expect(heard.allSatisfy { $0.samplesPerChannel == 480 && $0.sampleRate == 48_000 })
        #expect(heard.filter { $0.level > 0.03 }.count > 60)
        #expect(zip(heard, heard.dropFirst()).allSatisfy { $1.timestamp > $0.timestamp })
        #expect(heard.allSatisfy { abs($0.timestamp - MonotonicClock.now) < 5_000_000_000 }, "monotonic clock")
        let counts = speaker.counts
        #expect(counts.played > 100 && counts.dropped < counts.played / 4)
    }

    @Test func echoOfTheSpeakerIsTakenOut() throws {
        // The microphone hears the speaker and nothing else.
        func heard(_ processing: VoiceProcessing?) throws -> Double {
            let mixer = SpeakerMixer(deviceID: "micfeed")
            let input = try mixer.addInput()
            let speech = TestPatternSource(pattern: nil, tone: TestTone(channels: 2))
            try speech.start { event in if case .audio(let frame) = event { input.consume(frame) } }
            let microphone = MicrophoneSource(deviceID: "mic1", processing: processing)
            let collector = Collector()
            try microphone.start { collector.take($0) }
            #expect(collector.wait { $0.audio.count >= 400 })
            microphone.stop()
            speech.stop()
            let last = collector.now.audio.suffix(100)
            return last.map(\.level).reduce(0, +) / Double(max(last.count, 1))
        }
        let plain = try heard(nil)
        var processing = VoiceProcessing()
        processing.controlsGain = false
        let cancelled = try heard(processing)
        #expect(plain > 0.05, "\(plain)")
        #expect(cancelled < plain / 4, "\(plain) → \(cancelled)")
    }

    @Test func severalStreamsShareOneSpeaker() throws {
        let mixer = SpeakerMixer(deviceID: "micfeed", feedsEchoCancellation: false)
        var inputs = [try mixer.addInput(), try mixer.addInput()]
        let microphone = MicrophoneSource(deviceID: "mic1")
        let collector = Collector()
        try microphone.start { collector.take($0) }
        let tone = TestTone(channels: 2)
        let (first, second) = (inputs[0], inputs[1])
        let source = TestPatternSource(pattern: nil, tone: tone)
        try source.start { event in
            guard case .audio(let frame) = event else { return }
            first.consume(frame)
            second.consume(frame)
        }
        // Twice the level of one.
        #expect(collector.wait { $0.audio.suffix(20).contains { $0.level > 0.5 } })
        source.stop()
        microphone.stop()
        inputs = []
    }

    @Test func soundDevicesThatAreNotThereSaySo() {
        #expect(throws: DeviceError.self) { try MicrophoneSource(deviceID: "no-such-mic").start { _ in } }
        #expect(throws: DeviceError.self) { try SpeakerSink(deviceID: "no-such-speaker").start() }
    }

    @Test func screenIsCaptured() throws {
        var options = ScreenSource.Options()
        options.display = DeviceServices.display
        options.region = (x: 0, y: 0, width: 320, height: 240)
        let source = ScreenSource(options: options)
        let collector = Collector()
        try source.start { collector.take($0) }
        #expect(collector.wait { $0.videoCount >= 5 })
        source.stop()
        #expect(collector.now.video.first?.width == 320 && collector.now.video.first?.height == 240)
        options.display = ":987"
        #expect(throws: DeviceError.self) { try ScreenSource(options: options).start { _ in } }
    }

    @Test func startingAndStoppingLeavesNothingBehind() throws {  // MEM1
        func cycle() throws {
            let speaker = SpeakerSink()
            try speaker.start()
            let microphone = MicrophoneSource()
            try microphone.start { _ in }
            microphone.stop()
            speaker.stop()
        }
        for _ in 0..<3 { try cycle() }
        let threads = ProcessUse.threads
        let descriptors = ProcessUse.descriptors
        for _ in 0..<20 { try cycle() }
        #expect(ProcessUse.threads <= threads + 8, "\(threads) → \(ProcessUse.threads)")
        #expect(ProcessUse.descriptors <= descriptors + 12, "\(descriptors) → \(ProcessUse.descriptors)")
    }
}
#endif
