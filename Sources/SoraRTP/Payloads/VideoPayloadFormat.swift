import SoraWire

/// The video payload formats that this project carries.
package enum VideoPayloadFormat: CaseIterable, Sendable {
    case vp8, vp9, h264, h265, av1

    /// By the encoding name of `a=rtpmap`, in any case.
    package init?(encodingName: String) {
        switch encodingName.uppercased() {
        case "VP8": self = .vp8
        case "VP9": self = .vp9
        case "H264": self = .h264
        case "H265": self = .h265
        case "AV1": self = .av1
        default: return nil
        }
    }

    /// RTP clock of all video formats, in Hz.
    package static let clockRate = 90_000
}

/// What one RTP payload says about the frame that it belongs to.
package struct VideoPayloadInfo: Equatable, Sendable {
    /// The payload surely begins a frame (or, VP9, a layer frame).
    package var startsFrame = false
    /// The payload belongs to the beginning of a key frame, from which decoding can start.
    package var startsKeyFrame = false
    /// Other payloads of the same frame may stand before this one although it begins a key frame (H.264, H.265).
    package var mayFollowOthersOfItsFrame = false
    package var pictureID: UInt16?
    /// Bits of the picture id: 7 or 15; 16 for a dependency descriptor's frame number.
    package var pictureIDBits: UInt8 = 15
    package var tl0PictureIndex: UInt8?
    package var temporalLayer: UInt8?
    package var isLayerSync = false
    /// Where the picture id and base layer index stand in the packet; 0 if absent. For rewriting.
    package var pictureIDPosition = 0
    package var tl0PictureIndexPosition = 0

    package init() {}
}

extension VideoPayloadFormat {
    /// Reads the payload's own header. `range` is the payload's place in `packet` and must not be empty.
    package func inspect(_ packet: [UInt8], _ range: Range<Int>) throws(RTPError) -> VideoPayloadInfo {
        switch self {
        case .vp8: try VP8PayloadDescriptor(parsing: packet, in: range).info(at: range.lowerBound, packet)
        case .vp9: try VP9PayloadDescriptor(parsing: packet, in: range).info(at: range.lowerBound)
        case .h264: try H264Payload.inspect(packet, range)
        case .h265: try H265Payload.inspect(packet, range)
        case .av1: try AV1Payload.inspect(packet, range)
        }
    }

    /// Joins the payloads of one frame, in order and complete, to what a decoder takes: a VP8 or VP9 frame (VP9: all
    /// spatial layers as one superframe-less run), H.264 and H.265 with start codes (Annex B), an AV1 temporal unit in
    /// low-overhead form without its delimiter.
    package func assemble(_ payloads: [VideoPayloadSlice]) throws(RTPError) -> [UInt8] {
        var frame: [UInt8] = []
        frame.reserveCapacity(payloads.reduce(0) { $0 + $1.range.count } + 64)
        switch self {
        case .vp8:
            for slice in payloads {
                let length = try VP8PayloadDescriptor(parsing: slice.packet, in: slice.range).length
                frame.append(contentsOf: slice.packet[(slice.range.lowerBound + length)..<slice.range.upperBound])
            }
        case .vp9:
            for slice in payloads {
                let length = try VP9PayloadDescriptor(parsing: slice.packet, in: slice.range).length
                frame.append(contentsOf: slice.packet[(slice.range.lowerBound + length)..<slice.range.upperBound])
            }
        case .h264: try H264Payload.assemble(payloads, into: &frame)
        case .h265: try H265Payload.assemble(payloads, into: &frame)
        case .av1: try AV1Payload.assemble(payloads, into: &frame)
        }
        return frame
    }

    /// A packetizer with random start values.
    package func makePacketizer(random: inout RandomSource) -> any VideoPacketizer {
        switch self {
        case .vp8: VP8Packetizer(random: &random)
        case .vp9: VP9Packetizer(random: &random)
        case .h264: H264Packetizer()
        case .h265: H265Packetizer()
        case .av1: AV1Packetizer()
        }
    }
}

/// One payload inside its packet; shares the packet's storage.
package struct VideoPayloadSlice: Sendable {
    package var packet: [UInt8]
    package var range: Range<Int>
    package init(packet: [UInt8], range: Range<Int>) {
        self.packet = packet
        // Never beyond the packet, so that the formats may slice without asking again.
        let upper = min(max(range.upperBound, 0), packet.count)
        self.range = min(max(range.lowerBound, 0), upper)..<upper
    }
}

extension VP8PayloadDescriptor {
    func info(at start: Int, _ packet: [UInt8]) -> VideoPayloadInfo {
        var info = VideoPayloadInfo()
        info.startsFrame = startsFrame
        let first = start + length
        info.startsKeyFrame =
            startsFrame && first < packet.count && VP8Bitstream.isKeyFrame(firstByte: packet[first])
        info.pictureID = pictureID
        info.pictureIDBits = hasLongPictureID ? 15 : 7
        info.tl0PictureIndex = tl0PictureIndex
        info.temporalLayer = temporalLayer
        info.isLayerSync = isLayerSync
        info.pictureIDPosition = pictureID == nil ? 0 : start + pictureIDOffset
        info.tl0PictureIndexPosition = tl0PictureIndex == nil ? 0 : start + tl0PictureIndexOffset
        return info
    }
}
