internal import SoraLocking

/// Callbacks of one stream.
public final class MediaStreamHandlers {
    private let switchVideoSlot = Locked<((Bool) -> Void)?>(nil)
    private let switchAudioSlot = Locked<((Bool) -> Void)?>(nil)

    public init() {}

    /// Video was switched on or off.
    public var onSwitchVideo: ((_ isEnabled: Bool) -> Void)? {
        get { switchVideoSlot.read() }
        set { switchVideoSlot.write(newValue) }
    }
    /// Audio was switched on or off.
    public var onSwitchAudio: ((_ isEnabled: Bool) -> Void)? {
        get { switchAudioSlot.read() }
        set { switchAudioSlot.write(newValue) }
    }
}
