/// Coded frames to a WebM or Matroska file (RFC 9559). Sans-IO: says which bytes belong where.
///
/// GStreamer's muxer is not used here, because it cannot record what an SFU sends: it waits for every declared stream
/// before it writes anything, and refuses pictures that change their size in mid-stream (a simulcast switch).
///
/// Invariants: after each output the file can be read up to there, so nothing but the last frame is lost when the
/// process is killed; times never fall within a track; a track begins with a frame that can be decoded alone.
/// Tracks are declared by their first frame: room for their descriptions is reserved near the beginning.
package struct MatroskaWriter: Sendable {
    /// Bytes for a position in the file. Appends at the end, or overwrites what is there.
    package struct Output: Equatable, Sendable {
        package var offset: Int
        package var bytes: [UInt8]
    }

    private struct Track {
        var number: UInt64
        var video: WebMVideoCodec?
        var lastTime: Int64
    }

    package private(set) var outputs: [Output] = []
    /// Length of the file so far.
    package private(set) var length = 0
    /// Milliseconds from the first frame to the end of the last.
    package private(set) var duration: Int64 = 0
    private var origin: Int64?
    private var tracks: [Track] = []
    private var positions = Positions()
    private var cluster: (offset: Int, sizeOffset: Int, time: Int64)?
    private var cues: [(time: Int64, track: UInt64, cluster: Int)] = []
    private let application: String
    private var h264 = H264ParameterSets()

    /// Places that are overwritten later.
    private struct Positions {
        var documentType = 0
        var segmentSize = 0
        var segmentData = 0
        var seekHead = 0
        var information = 0
        var duration = 0
        var tracks = 0
        var trackSlots: [Int] = []
    }
    private static let seekHeadRoom = 96
    private static let trackRoom = 512
    /// Two of video and two of audio: a codec may change in a re-offer.
    private static let trackCount = 4
    private static let clusterLength: Int64 = 5_000

    package init(application: String) { self.application = application }

    package mutating func takeOutputs() -> [Output] {
        defer { outputs = [] }
        return outputs
    }

    /// Whether a delta frame of this codec can be placed: its track has begun.
    package func hasTrack(for codec: WebMVideoCodec) -> Bool { tracks.contains { $0.video == codec } }

    /// Returns whether the frame was taken. Delta frames before the first key frame are not.
    package mutating func write(_ frame: WebMVideoFrame) -> Bool {
        guard !frame.payload.isEmpty else { return false }
        var payload = frame.payload
        if frame.codec == .h264 { payload = h264.lengthPrefixed(payload) }
        if frame.codec == .av1 { payload = AV1Units.withoutDelimiters(payload) }
        guard !payload.isEmpty else { return false }
        if !hasTrack(for: frame.codec) {
            guard frame.isKeyFrame, frame.width > 0, frame.height > 0 else { return false }
            begin(frame.timestamp)
            guard declareVideo(frame) else { return false }
        }
        guard let index = tracks.firstIndex(where: { $0.video == frame.codec }) else { return false }
        block(payload, track: index, timestamp: frame.timestamp, isKey: frame.isKeyFrame, length: 33)
        return true
    }

    package mutating func write(_ frame: WebMOpusFrame, channels: Int) -> Bool {
        guard !frame.payload.isEmpty else { return false }
        begin(frame.timestamp)
        if !tracks.contains(where: { $0.video == nil }) {
            guard declareAudio(channels: channels) else { return false }
        }
        guard let index = tracks.firstIndex(where: { $0.video == nil }) else { return false }
        block(
            frame.payload, track: index, timestamp: frame.timestamp, isKey: true, length: Int64(frame.duration) / 48)
        return true
    }

    /// Completes the file: sizes, duration, an index for seeking.
    package mutating func finish() {
        guard origin != nil else { return }
        finishCluster()
        let cuesOffset = length
        if !cues.isEmpty {
            var writer = EBMLWriter()
            writer.master(0x1C53_BB6B) { cuesElement in
                for cue in cues {
                    cuesElement.master(0xBB) { point in
                        point.unsigned(0xB3, UInt64(clamping: cue.time))
                        point.master(0xB7) { position in
                            position.unsigned(0xF7, cue.track)
                            position.unsigned(0xF1, UInt64(clamping: cue.cluster - positions.segmentData))
                        }
                    }
                }
            }
            append(writer.bytes)
        }
        var seek = EBMLWriter()
        var entries: [([UInt8], Int)] = [
            ([0x15, 0x49, 0xA9, 0x66], positions.information), ([0x16, 0x54, 0xAE, 0x6B], positions.tracks),
        ]
        if !cues.isEmpty { entries.append(([0x1C, 0x53, 0xBB, 0x6B], cuesOffset)) }
        seek.master(0x114D_9B74) { head in
            for entry in entries {
                head.master(0x4DBB) { item in
                    item.binary(0x53AB, entry.0)
                    item.unsigned(0x53AC, UInt64(clamping: entry.1 - positions.segmentData))
                }
            }
        }
        overwrite(positions.seekHead, seek.bytes + EBMLWriter.void(Self.seekHeadRoom - seek.bytes.count))
        var time = EBMLWriter()
        time.float(0x4489, Double(duration))
        overwrite(positions.duration, time.bytes)
        overwrite(positions.segmentSize, EBMLWriter.fixedSize(length - positions.segmentData))
    }

    // MARK: Parts

    private mutating func begin(_ timestamp: Int64) {
        guard origin == nil else { return }
        origin = timestamp
        var header = EBMLWriter()
        header.unsigned(0x4286, 1)
        header.unsigned(0x42F7, 1)
        header.unsigned(0x42F2, 4)
        header.unsigned(0x42F3, 8)
        let typeOffset = header.bytes.count
        header.raw(Self.documentType("webm"))
        header.unsigned(0x4287, 4)
        header.unsigned(0x4285, 2)
        var writer = EBMLWriter()
        writer.binary(0x1A45_DFA3, header.bytes)
        positions.documentType = writer.bytes.count - header.bytes.count + typeOffset
        writer.id(0x1853_8067)
        positions.segmentSize = writer.bytes.count
        writer.raw(EBMLWriter.unknownSize)
        positions.segmentData = writer.bytes.count
        positions.seekHead = writer.bytes.count
        writer.raw(EBMLWriter.void(Self.seekHeadRoom))
        positions.information = writer.bytes.count
        var information = EBMLWriter()
        information.unsigned(0x2AD7B1, 1_000_000)
        information.text(0x4D80, application)
        information.text(0x5741, application)
        let durationOffset = information.bytes.count
        // Duration: id 2, size 1, value 8.
        information.raw(EBMLWriter.void(11))
        writer.binary(0x1549_A966, information.bytes)
        positions.duration = writer.bytes.count - information.bytes.count + durationOffset
        positions.tracks = writer.bytes.count
        writer.id(0x1654_AE6B)
        writer.raw(EBMLWriter.fixedSize(Self.trackRoom * Self.trackCount))
        for _ in 0..<Self.trackCount {
            positions.trackSlots.append(writer.bytes.count)
            writer.raw(EBMLWriter.void(Self.trackRoom))
        }
        append(writer.bytes)
    }

    /// "webm" with four bytes to skip, or "matroska": the same length.
    private static func documentType(_ name: String) -> [UInt8] {
        var writer = EBMLWriter()
        writer.text(0x4282, name)
        return writer.bytes + EBMLWriter.void(11 - writer.bytes.count)
    }

    private mutating func declareVideo(_ frame: WebMVideoFrame) -> Bool {
        var codecPrivate: [UInt8]?
        let name: String
        switch frame.codec {
        case .vp8: name = "V_VP8"
        case .vp9: name = "V_VP9"
        case .av1:
            guard let configuration = AV1Units.configuration(frame.payload) else { return false }
            name = "V_AV1"
            codecPrivate = configuration
        case .h264:
            guard let configuration = h264.configuration else { return false }
            name = "V_MPEG4/ISO/AVC"
            codecPrivate = configuration
        }
        let declared = declare(kind: 1, name: name, codecPrivate: codecPrivate, video: frame.codec) { entry in
            entry.master(0xE0) { video in
                video.unsigned(0xB0, UInt64(clamping: frame.width))
                video.unsigned(0xBA, UInt64(clamping: frame.height))
                video.unsigned(0x9A, 2)
            }
            if frame.rotation != 0 {
                // Readers turn by the projection's roll, counter-clockwise.
                entry.master(0x7670) { $0.float(0x7675, -Double(frame.rotation)) }
            }
        }
        if declared, frame.codec == .h264 {
            overwrite(positions.documentType, Self.documentType("matroska"))
        }
        return declared
    }

    private mutating func declareAudio(channels: Int) -> Bool {
        let channels = min(max(channels, 1), 2)
        // OpusHead (RFC 7845, 5.1): version, channels, pre-skip, input rate, gain, mapping family.
        let head =
            Array("OpusHead".utf8) + [1, UInt8(channels), 0, 0, 0x80, 0xBB, 0, 0, 0, 0, 0]
        return declare(kind: 2, name: "A_OPUS", codecPrivate: head, video: nil) { entry in
            entry.unsigned(0x56BB, 80_000_000)
            entry.master(0xE1) { audio in
                audio.float(0xB5, 48_000)
                audio.unsigned(0x9F, UInt64(channels))
            }
        }
    }

    private mutating func declare(
        kind: UInt64, name: String, codecPrivate: [UInt8]?, video: WebMVideoCodec?,
        _ details: (inout EBMLWriter) -> Void
    ) -> Bool {
        guard tracks.count < positions.trackSlots.count else { return false }
        let number = UInt64(tracks.count + 1)
        var writer = EBMLWriter()
        writer.master(0xAE) { entry in
            entry.unsigned(0xD7, number)
            entry.unsigned(0x73C5, number)
            entry.unsigned(0x83, kind)
            entry.unsigned(0x9C, 0)
            entry.text(0x86, name)
            if let codecPrivate { entry.binary(0x63A2, codecPrivate) }
            details(&entry)
        }
        let rest = Self.trackRoom - writer.bytes.count
        guard rest == 0 || rest >= 2 else { return false }
        overwrite(positions.trackSlots[tracks.count], writer.bytes + EBMLWriter.void(rest))
        tracks.append(Track(number: number, video: video, lastTime: 0))
        return true
    }

    private mutating func block(_ payload: [UInt8], track index: Int, timestamp: Int64, isKey: Bool, length: Int64) {
        let (offset, overflow) = timestamp.subtractingReportingOverflow(origin ?? timestamp)
        let time = max(overflow ? 0 : offset / 1_000_000, tracks[index].lastTime)
        tracks[index].lastTime = time
        duration = max(duration, time + max(length, 1))
        let isVideo = tracks[index].video != nil
        let hasVideo = tracks.contains { $0.video != nil }
        if let open = cluster {
            let age = time - open.time
            let isDue = age >= Self.clusterLength || isVideo && isKey && age >= 1_000 || age > 30_000 || age < -30_000
            if isDue { finishCluster() }
        }
        let open = cluster ?? startCluster(time)
        var writer = EBMLWriter()
        writer.id(0xA3)
        writer.size(payload.count + 4)
        writer.size(Int(tracks[index].number))
        writer.append(UInt64(bitPattern: Int64(Int16(clamping: time - open.time))), width: 2)
        writer.raw([isKey ? 0x80 : 0])
        writer.raw(payload)
        append(writer.bytes)
        if isKey, isVideo || !hasVideo, cues.last?.cluster != open.offset, cues.count < 100_000 {
            cues.append((time, tracks[index].number, open.offset))
        }
    }

    private mutating func startCluster(_ time: Int64) -> (offset: Int, sizeOffset: Int, time: Int64) {
        var writer = EBMLWriter()
        writer.id(0x1F43_B675)
        let sizeOffset = length + writer.bytes.count
        writer.raw(EBMLWriter.unknownSize)
        writer.unsigned(0xE7, UInt64(clamping: time))
        let open = (offset: length, sizeOffset: sizeOffset, time: time)
        append(writer.bytes)
        cluster = open
        return open
    }

    private mutating func finishCluster() {
        guard let open = cluster else { return }
        overwrite(open.sizeOffset, EBMLWriter.fixedSize(length - open.sizeOffset - 8))
        cluster = nil
    }

    private mutating func append(_ bytes: [UInt8]) {
        outputs.append(Output(offset: length, bytes: bytes))
        length += bytes.count
    }

    private mutating func overwrite(_ offset: Int, _ bytes: [UInt8]) {
        outputs.append(Output(offset: offset, bytes: bytes))
    }
}
