/// What the settings of the audio session mean for devices. The SDK's devices ask this, not the session.
protocol AudioPolicy: AnyObject, Sendable {
    /// Whether devices may be open at all now.
    var allowsDevices: Bool { get }
    /// Whether a microphone may be open.
    var allowsCapture: Bool { get }
    /// Whether a loudspeaker may be open.
    var allowsPlayout: Bool { get }
    /// Whether echo, noise and loudness of the microphone are to be dealt with.
    var wantsVoiceProcessing: Bool { get }

    /// Calls `observer` after each change of a setting, until the returned number is given to ``removeObserver(_:)``.
    func addObserver(_ observer: @escaping @Sendable () -> Void) -> Int
    func removeObserver(_ id: Int)
}
