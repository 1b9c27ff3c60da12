import Glibc

/// What the machine offers to codecs.
package enum CodecMachine {
    /// Processors this process may use, at least one.
    package static let coreCount: Int = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
}
