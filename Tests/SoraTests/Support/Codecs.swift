import SoraFrames
import Testing

@testable import Sora

extension Trait where Self == ConditionTrait {
    /// The test negotiates sound or pictures, which a build without the package trait `Media` cannot code.
    static var needsCodecs: Self {
        .enabled(if: !ClientCapabilities.codecs.audioCodecs.isEmpty, "built without the trait Media")
    }
}
