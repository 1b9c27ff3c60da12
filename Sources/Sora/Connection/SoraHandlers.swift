internal import SoraLocking

/// Callbacks for all connections of a ``Sora``.
public final class SoraHandlers {
    private let connectSlot = Locked<((MediaChannel?, (any Error)?) -> Void)?>(nil)
    private let disconnectSlot = Locked<((MediaChannel, (any Error)?) -> Void)?>(nil)
    private let addSlot = Locked<((MediaChannel) -> Void)?>(nil)
    private let removeSlot = Locked<((MediaChannel) -> Void)?>(nil)
    private let routeSlot = Locked<
        (
            (RTCAudioSession, AVAudioSession.RouteChangeReason, AVAudioSessionRouteDescription) -> Void
        )?
    >(nil)

    public init() {}

    /// An attempt succeeded or failed; called after its completion handler.
    public var onConnect: ((MediaChannel?, (any Error)?) -> Void)? {
        get { connectSlot.read() }
        set { connectSlot.write(newValue) }
    }
    /// A connection that was added has ended.
    public var onDisconnect: ((MediaChannel, (any Error)?) -> Void)? {
        get { disconnectSlot.read() }
        set { disconnectSlot.write(newValue) }
    }
    /// A connection was added; called inside `connect`, before anything happens.
    public var onAddMediaChannel: ((MediaChannel) -> Void)? {
        get { addSlot.read() }
        set { addSlot.write(newValue) }
    }
    /// A connection left the list; called before ``onDisconnect``.
    public var onRemoveMediaChannel: ((MediaChannel) -> Void)? {
        get { removeSlot.read() }
        set { removeSlot.write(newValue) }
    }
    /// The active input or output of sound changed; the last argument is the route before.
    public var onChangeAudioRoute:
        ((RTCAudioSession, AVAudioSession.RouteChangeReason, AVAudioSessionRouteDescription) -> Void)?
    {
        get { routeSlot.read() }
        set { routeSlot.write(newValue) }
    }
}
