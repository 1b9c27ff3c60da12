import Foundation
internal import SoraLocking

/// Callbacks of one connection. They run on a thread of the SDK, one after the other.
public final class MediaChannelHandlers {
    private let connectSlot = Locked<(((any Error)?) -> Void)?>(nil)
    private let disconnectSlot = Locked<((SoraCloseEvent) -> Void)?>(nil)
    private let disconnectLegacySlot = Locked<(((any Error)?) -> Void)?>(nil)
    private let addStreamSlot = Locked<((any MediaStream) -> Void)?>(nil)
    private let removeStreamSlot = Locked<((any MediaStream) -> Void)?>(nil)
    private let signalingJSONSlot = Locked<((String) -> Void)?>(nil)
    private let signalingSlot = Locked<((Signaling) -> Void)?>(nil)
    private let dataChannelSlot = Locked<((MediaChannel) -> Void)?>(nil)
    private let dataChannelOpenedSlot = Locked<((MediaChannel, String) -> Void)?>(nil)
    private let dataChannelMessageSlot = Locked<((MediaChannel, String, Data) -> Void)?>(nil)

    public init() {}

    /// The attempt succeeded (nil) or failed. Once.
    public var onConnect: (((any Error)?) -> Void)? {
        get { connectSlot.read() }
        set { connectSlot.write(newValue) }
    }
    /// The connection has ended and everything is released. Once, the last of all callbacks.
    public var onDisconnect: ((SoraCloseEvent) -> Void)? {
        get { disconnectSlot.read() }
        set { disconnectSlot.write(newValue) }
    }
    /// The older form of ``onDisconnect``, called directly before it.
    @available(*, deprecated, message: "use onDisconnect")
    public var onDisconnectLegacy: (((any Error)?) -> Void)? {
        get { legacyDisconnect }
        set { disconnectLegacySlot.write(newValue) }
    }
    /// A stream was added, the local or a remote one.
    public var onAddStream: ((any MediaStream) -> Void)? {
        get { addStreamSlot.read() }
        set { addStreamSlot.write(newValue) }
    }
    /// The server removed a remote stream.
    public var onRemoveStream: ((any MediaStream) -> Void)? {
        get { removeStreamSlot.read() }
        set { removeStreamSlot.write(newValue) }
    }
    /// A signaling message came, as text, before the SDK acts on it.
    public var onReceiveSignalingJSON: ((String) -> Void)? {
        get { signalingJSONSlot.read() }
        set { signalingJSONSlot.write(newValue) }
    }
    /// A signaling message that the SDK knows was processed.
    @available(*, deprecated, message: "use onReceiveSignalingJSON; this one stays supported")
    public var onReceiveSignaling: ((Signaling) -> Void)? {
        get { signaling }
        set { signalingSlot.write(newValue) }
    }
    /// All `#` labels of the offer are open.
    public var onDataChannel: ((MediaChannel) -> Void)? {
        get { dataChannelSlot.read() }
        set { dataChannelSlot.write(newValue) }
    }
    /// The data channel of a label is open.
    public var onDataChannelOpened: ((MediaChannel, String) -> Void)? {
        get { dataChannelOpenedSlot.read() }
        set { dataChannelOpenedSlot.write(newValue) }
    }
    /// A message came on the data channel of a label.
    public var onDataChannelMessage: ((MediaChannel, String, Data) -> Void)? {
        get { dataChannelMessageSlot.read() }
        set { dataChannelMessageSlot.write(newValue) }
    }

    /// The deprecated handlers for the SDK itself, without the warning.
    var legacyDisconnect: (((any Error)?) -> Void)? { disconnectLegacySlot.read() }
    var signaling: ((Signaling) -> Void)? { signalingSlot.read() }
}
