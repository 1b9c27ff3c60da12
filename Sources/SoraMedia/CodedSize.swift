import SoraFrames
import SoraWebM

/// The picture size that a coded key frame announces, without decoding it.
package enum CodedSize {
    package static func of(_ codec: VideoCodecKind, _ frame: [UInt8]) -> (width: Int, height: Int)? {
        switch codec {
        case .vp8: CodedPictureSize.of(.vp8, frame)
        case .vp9: CodedPictureSize.of(.vp9, frame)
        case .av1: CodedPictureSize.of(.av1, frame)
        case .h264: CodedPictureSize.of(.h264, frame)
        case .h265: nil  // Told by the decoder only.
        }
    }
}
