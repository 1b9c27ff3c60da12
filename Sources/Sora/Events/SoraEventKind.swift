/// What an event says. A struct, so that kinds added later do not break a `switch` of an application.
///
/// The raw value of each constant is its own name. Unknown raw values are valid.
public struct SoraEventKind: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The attempt succeeded. Told by the connection and by its `Sora`.
    public static let connected = SoraEventKind(rawValue: "connected")
    /// The attempt failed. Told by the connection, if there is one, and by its `Sora`.
    public static let connectFailed = SoraEventKind(rawValue: "connectFailed")
    /// The connection has ended and everything is released. The last event of a connection.
    public static let disconnected = SoraEventKind(rawValue: "disconnected")
    /// A connection was added to ``Sora/Sora/mediaChannels``. Told by `Sora` alone.
    public static let mediaChannelAdded = SoraEventKind(rawValue: "mediaChannelAdded")
    /// A connection was taken off ``Sora/Sora/mediaChannels``. Told by `Sora` alone.
    public static let mediaChannelRemoved = SoraEventKind(rawValue: "mediaChannelRemoved")
    /// Another input or output is used for sound. Told by `Sora` alone.
    public static let audioRouteChanged = SoraEventKind(rawValue: "audioRouteChanged")
    /// A stream was added, the local or a remote one.
    public static let streamAdded = SoraEventKind(rawValue: "streamAdded")
    /// The server removed a remote stream.
    public static let streamRemoved = SoraEventKind(rawValue: "streamRemoved")
    /// The video of a stream was switched on or off.
    public static let videoEnabledChanged = SoraEventKind(rawValue: "videoEnabledChanged")
    /// The audio of a stream was switched on or off.
    public static let audioEnabledChanged = SoraEventKind(rawValue: "audioEnabledChanged")
    /// A signaling message came, before the SDK acts on it.
    public static let signalingReceivedJSON = SoraEventKind(rawValue: "signalingReceivedJSON")
    /// The data channel of a label is open.
    public static let dataChannelOpened = SoraEventKind(rawValue: "dataChannelOpened")
    /// All `#` labels of the offer are open.
    public static let dataChannelAvailable = SoraEventKind(rawValue: "dataChannelAvailable")
    /// A message came on a data channel.
    public static let dataChannelMessage = SoraEventKind(rawValue: "dataChannelMessage")
}
