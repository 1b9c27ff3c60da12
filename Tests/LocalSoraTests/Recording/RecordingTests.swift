import LocalSora
import SoraEmulator
import SoraMessages
import SoraWire
import Testing

/// Recordings of a channel: one file for each sender, nothing decoded (spec/signaling.md 9.2, 9.4).
@Suite(.serialized, .leavesNoObjects) struct RecordingTests {
    private func harness() throws -> ChannelHarness { try ChannelHarness { $0.records = true } }

    private func kinds(_ harness: ChannelHarness) -> [RecordingEvent.Kind] { harness.recordingEvents.map(\.kind) }

    private func file(_ harness: ChannelHarness, _ client: SimulatedClient, piece: Int? = nil) throws -> MatroskaReading
    {
        let suffix = piece.map { "_\($0)" } ?? ""
        let found = harness.files.first { $0.key.hasSuffix("/\(client.id.rawValue)\(suffix).webm") }
        return MatroskaReading(try #require(found?.value, "\(harness.files.keys)"))
    }

    @Test func bestLayerAndSoundOfASenderGoIntoOneFile() throws {
        let harness = try harness()
        let sender = try harness.joined(ChannelHarness.connect(.sendonly) { $0.simulcast = true })
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly))
        let source = MediaSource(sender)
        harness.play([source], for: .seconds(1))
        let id = try harness.perform { try $0.startRecording(RecordingRequest(metadata: ["why": 1]), now: $1) }
        harness.play([source], for: .seconds(3))
        let stopped = try harness.perform { try $0.stopRecording(now: $1) }
        #expect(stopped == id)
        harness.run(for: .milliseconds(100))

        #expect(kinds(harness) == [.started, .archiveStarted, .archiveEnded, .report(files: 1)])
        #expect(harness.recordingEvents.allSatisfy { $0.recordingID == id && $0.metadata == ["why": 1] })
        let archive = try #require(harness.recordingEvents[2].archive)
        let file = try file(harness, sender)
        #expect(!file.isBroken)
        #expect(file.documentType == "webm")
        #expect(Set(file.codecs) == ["V_VP8", "A_OPUS"])
        let video = try #require(file.codecs.firstIndex(of: "V_VP8")).advanced(by: 1)
        let pictures = file.blocks(of: UInt8(video))
        let sounds = file.blocks(of: UInt8(3 - video))
        #expect(pictures.count == archive.videoFrames && sounds.count == archive.audioFrames)
        #expect(pictures.count > 80 && sounds.count > 80)
        #expect(pictures.first?.isKeyFrame == true)
        #expect(file.widths == [640])
        // The layer's number stands in the frame.
        #expect(pictures.allSatisfy { $0.payload.dropFirst(10).first == 2 })
        for times in [pictures.map(\.time), sounds.map(\.time)] { #expect(times == times.sorted()) }
        #expect(abs(file.duration - 3000) < 200)
        #expect(archive.bytes == harness.files[archive.path]?.count)
        for client in [sender, viewer] {
            for event in ["recording.started", "recording.stopped"] {
                #expect(client.notifications(event).map { $0["recording_id"] } == [.string(id)])
            }
        }
        #expect(throws: OperationError.notRecording) { try harness.perform { try $0.stopRecording(now: $1) } }
    }

    /// A vanished layer is replaced by the next; loss leaves holes in time, not broken pictures.
    @Test func fileGoesOnThroughLayerChangesAndLoss() throws {
        let harness = try harness()
        let sender = try harness.joined(
            ChannelHarness.connect(.sendonly) { $0.simulcast = true },
            conditions: LinkConditions(delay: .milliseconds(20), loss: 0.03))
        let source = MediaSource(sender)
        harness.play([source], for: .seconds(1))
        _ = try harness.perform { try $0.startRecording(RecordingRequest(), now: $1) }
        harness.play([source], for: .seconds(2))
        source.activeLayers = [0]
        harness.play([source], for: .seconds(3))
        try harness.perform { try $0.stopRecording(now: $1) }
        let file = try file(harness, sender)
        let video = try #require(file.codecs.firstIndex(of: "V_VP8")).advanced(by: 1)
        let pictures = file.blocks(of: UInt8(video))
        let layers = pictures.compactMap { $0.payload.dropFirst(10).first }
        #expect(!file.isBroken)
        #expect(Set(layers) == [0, 2])
        #expect(layers == layers.sorted(by: >))
        #expect(pictures.count > 100)
        // Each layer is entered by a key frame.
        let entry = try #require(layers.firstIndex(of: 0))
        #expect(pictures[entry].isKeyFrame)
    }

    @Test func sendersThatComeAndGoHaveFilesOfTheirOwn() throws {
        let harness = try harness()
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly))
        _ = try harness.perform { try $0.startRecording(RecordingRequest(), now: $1) }
        #expect(kinds(harness) == [.started])
        let early = try harness.joined(ChannelHarness.connect(.sendonly, video: false))
        let first = MediaSource(early)
        harness.play([first], for: .seconds(1))
        early.send(["type": "disconnect"], label: "signaling", now: harness.now)
        harness.run(for: .milliseconds(500))
        #expect(kinds(harness) == [.started, .archiveStarted, .archiveEnded])
        let late = try harness.joined(ChannelHarness.connect(.sendonly))
        harness.play([MediaSource(late)], for: .seconds(1))
        #expect(try file(harness, early).codecs == ["A_OPUS"])
        // The last member's end is the recording's end.
        late.send(["type": "disconnect"], label: "signaling", now: harness.now)
        viewer.send(["type": "disconnect"], label: "signaling", now: harness.now)
        harness.run(for: .seconds(4))
        #expect(harness.channel.isEmpty)
        #expect(kinds(harness).last == .report(files: 2))
        #expect(try !file(harness, late).isBroken)
    }

    @Test func recordingExpiresAndSplits() throws {
        let harness = try harness()
        let sender = try harness.joined(ChannelHarness.connect(.sendonly))
        let source = MediaSource(sender)
        harness.play([source], for: .seconds(1))
        let request = RecordingRequest(expireTime: .milliseconds(5500), splitDuration: .seconds(2))
        _ = try harness.perform { try $0.startRecording(request, now: $1) }
        harness.play([source], for: .seconds(7))
        let ended = harness.recordingEvents.filter { $0.kind == .archiveEnded }.compactMap(\.archive)
        #expect(ended.map(\.piece) == [1, 2, 3])
        #expect(ended.map(\.isLast) == [false, false, true])
        #expect(kinds(harness).last == .report(files: 3))
        for piece in 1...3 {
            let file = try file(harness, sender, piece: piece)
            #expect(!file.isBroken)
            // Each piece can be played alone.
            let video = try #require(file.codecs.firstIndex(of: "V_VP8")).advanced(by: 1)
            #expect(file.blocks(of: UInt8(video)).first?.isKeyFrame == true)
            #expect(file.duration > 1200)
        }
    }

    @Test func refusals() throws {
        let off = try ChannelHarness()
        try off.joined(ChannelHarness.connect(.sendonly))
        #expect(throws: OperationError.recordingIsOff) {
            try off.perform { try $0.startRecording(RecordingRequest(), now: $1) }
        }
        let harness = try harness()
        try harness.joined(ChannelHarness.connect(.sendonly))
        #expect(throws: OperationError.unknownSession("S")) {
            try harness.perform { try $0.startRecording(RecordingRequest(), sessionID: "S", now: $1) }
        }
        _ = try harness.perform {
            try $0.startRecording(RecordingRequest(), sessionID: harness.channel.sessionID, now: $1)
        }
        #expect(throws: OperationError.alreadyRecording) {
            try harness.perform { try $0.startRecording(RecordingRequest(), now: $1) }
        }
    }
}
