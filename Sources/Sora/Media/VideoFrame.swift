import Foundation
internal import SoraFrames

/// One frame of video.
public enum VideoFrame {
    /// - Parameters:
    ///   - capturer: who made it, if known.
    ///   - frame: its pixels and time.
    case native(capturer: RTCVideoCapturer?, frame: RTCVideoFrame)

    /// In pixels, before rotation.
    public var width: Int {
        switch self {
        case .native(_, let frame): Int(frame.width)
        }
    }
    /// In pixels, before rotation.
    public var height: Int {
        switch self {
        case .native(_, let frame): Int(frame.height)
        }
    }
    /// Time of capture in nanoseconds.
    public var timestamp: CMTime? {
        switch self {
        case .native(_, let frame): CMTimeMake(value: frame.timeStampNs, timescale: 1_000_000_000)
        }
    }

    /// A frame without rotation from a captured picture; nil if the buffer has none.
    public init?(from sampleBuffer: CMSampleBuffer) {
        guard let pixels = sampleBuffer.imageBuffer else { return nil }
        self = .native(
            capturer: nil,
            frame: RTCVideoFrame(
                buffer: RTCCVPixelBuffer(pixelBuffer: pixels), rotation: ._0,
                timeStampNs: sampleBuffer.presentationTimeStamp.nanoseconds ?? 0))
    }

    /// The public form of one of the SDK's own frames; shares its pixels.
    init(_ frame: SoraFrames.VideoFrame) { self = .native(capturer: nil, frame: RTCVideoFrame(frame)) }

    /// The frame as the inside of the SDK passes it on; shares its pixels where they have three planes already. Nil
    /// for one without pixels.
    var picture: SoraFrames.VideoFrame? {
        switch self {
        case .native(_, let frame): SoraFrames.VideoFrame(frame)
        }
    }

    /// Size of the picture once it stands upright.
    var displaySize: CGSize {
        switch self {
        case .native(_, let frame):
            switch frame.rotation {
            case ._0, ._180: CGSize(width: Int(frame.width), height: Int(frame.height))
            case ._90, ._270: CGSize(width: Int(frame.height), height: Int(frame.width))
            }
        }
    }
}
