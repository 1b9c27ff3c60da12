/// What an event says. A struct, so that kinds added later do not break a `switch` of an application.
///
/// The raw value of each constant is its own name. Unknown raw values are valid.
public struct SoraEventKind: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    public static let connected = SoraEventKind(rawValue: "connected")
    public static let connectFailed = SoraEventKind(rawValue: "connectFailed")
    public static let disconnected = SoraEventKind(rawValue: "disconnected")
    public static let mediaChannelAdded = SoraEventKind(rawValue: "mediaChannelAdded")
    public static let mediaChannelRemoved = SoraEventKind(rawValue: "mediaChannelRemoved")
    public static let audioRouteChanged = SoraEventKind(rawValue: "audioRouteChanged")
    public static let streamAdded = SoraEventKind(rawValue: "streamAdded")
    public static let streamRemoved = SoraEventKind(rawValue: "streamRemoved")
    public static let videoEnabledChanged = SoraEventKind(rawValue: "videoEnabledChanged")
    public static let audioEnabledChanged = SoraEventKind(rawValue: "audioEnabledChanged")
    public static let signalingReceivedJSON = SoraEventKind(rawValue: "signalingReceivedJSON")
    public static let dataChannelOpened = SoraEventKind(rawValue: "dataChannelOpened")
    public static let dataChannelAvailable = SoraEventKind(rawValue: "dataChannelAvailable")
    public static let dataChannelMessage = SoraEventKind(rawValue: "dataChannelMessage")
}
