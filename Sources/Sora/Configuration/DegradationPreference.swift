/// What an encoder gives up first when bandwidth or processor time is short.
public enum DegradationPreference: Sendable {
    /// Nothing.
    case disabled
    /// A little of both.
    case balanced
    /// Resolution.
    case maintainFramerate
    /// Frames.
    case maintainResolution
}
