import Foundation

/// One thing that happened, as a plain value that may be kept and sent anywhere.
///
/// Which members are set depends on ``kind``.
public struct SoraEvent: Sendable {
    /// How many events a subscription buffers by default; the oldest are dropped first.
    public static let defaultBufferSize = 256

    /// What happened.
    public let kind: SoraEventKind
    /// Identifier that the server gave to the connection, once the offer was processed.
    public let connectionId: String?
    /// How many redirects the connection had followed. Compare only within one connection.
    public let transportEpoch: Int?
    /// Number of the event among all of its source (one `Sora` or one `MediaChannel`), starting with 1. A gap means
    /// that the subscription's buffer dropped something.
    public private(set) var sequence: UInt64
    /// Why an attempt failed, or why a connection ended otherwise than in order.
    public let error: SoraEventError?
    /// How the connection ended, in ``SoraEventKind/disconnected`` of a connection.
    public let closeEvent: SoraCloseEvent?
    /// The stream that the event is about.
    public let streamId: String?
    /// The new state, in ``SoraEventKind/videoEnabledChanged`` and ``SoraEventKind/audioEnabledChanged``.
    public let isEnabled: Bool?
    /// The message as text. It may hold credentials of TURN servers.
    public let signalingJSON: String?
    /// The label of the data channel that the event is about.
    public let dataChannelLabel: String?
    /// The message, in ``SoraEventKind/dataChannelMessage``.
    public let dataChannelMessage: Data?
    /// The reason and the route of before, in ``SoraEventKind/audioRouteChanged``.
    public let audioRoute: SoraAudioRouteEvent?

    init(
        _ kind: SoraEventKind, connectionId: String? = nil, transportEpoch: Int? = nil, error: SoraEventError? = nil,
        closeEvent: SoraCloseEvent? = nil, streamId: String? = nil, isEnabled: Bool? = nil,
        signalingJSON: String? = nil, dataChannelLabel: String? = nil, dataChannelMessage: Data? = nil,
        audioRoute: SoraAudioRouteEvent? = nil
    ) {
        self.kind = kind
        self.connectionId = connectionId
        self.transportEpoch = transportEpoch
        self.sequence = 0
        self.error = error
        self.closeEvent = closeEvent
        self.streamId = streamId
        self.isEnabled = isEnabled
        self.signalingJSON = signalingJSON
        self.dataChannelLabel = dataChannelLabel
        self.dataChannelMessage = dataChannelMessage
        self.audioRoute = audioRoute
    }

    /// The same event with its number.
    func numbered(_ sequence: UInt64) -> SoraEvent {
        var event = self
        event.sequence = sequence
        return event
    }
}
