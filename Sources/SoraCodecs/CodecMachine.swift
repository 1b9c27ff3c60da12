import Glibc
import SoraFrames

/// What the machine offers to codecs.
package enum CodecMachine {
    /// Processors this process may use, at least one.
    package static let coreCount: Int = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))

    /// Threads for an encoder: as its settings say, else as many as pictures of its size keep busy (1, 2 or 4) and the
    /// machine has.
    ///
    /// - Parameters:
    ///   - twoFrom: pixels from which two threads gain time.
    ///   - fourFrom: pixels from which four threads gain time.
    static func threads(for settings: VideoEncoderSettings, twoFrom: Int, fourFrom: Int) -> Int {
        if let threads = settings.threads { return min(max(threads, 1), 16) }
        let pixels = settings.width * settings.height
        return min(pixels >= fourFrom ? 4 : pixels >= twoFrom ? 2 : 1, coreCount)
    }
}
