import Glibc

/// The pace of tests in real time.
package enum RealTime {
    /// How much longer than usual everything may take: SORA_TIME_FACTOR, which `scripts/test.sh deep` sets because
    /// code under a sanitizer is several times slower. Otherwise 1. Bounds of tests in real time are multiplied by it.
    package static let factor: Double = {
        guard let text = getenv("SORA_TIME_FACTOR"), let factor = Double(String(cString: text)) else { return 1 }
        return max(1, factor)
    }()

    /// How many CPUs there are.
    package static let cores = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
}
