import Foundation

/// What a connection asks of the engine: the one boundary between the public API and the network.
///
/// The driver of a connection owns its sockets, its protocol machine and its timers. It reports back through
/// ``ChannelCore/deliver(_:completion:)``, in the order in which the application shall see things. Every member may
/// be called from any thread and returns at once.
protocol ConnectionDriver: AnyObject, Sendable {
    /// Begins to dial. Called once; has no effect after ``end(_:)`` or ``abandon()``.
    func start()
    /// Ends the connection for a reason of the application: says farewell, lets go of everything and then calls
    /// ``ChannelCore/finish()``. Further calls do nothing.
    func end(_ cause: EndCause)
    /// Lets go of everything without another word; nobody is left to be told.
    func abandon()
    /// Something was put into the core's outgoing queue while that was empty.
    func outgoingMessagesAvailable()
    /// Sends a JSON-RPC request or notification. `completion` is called exactly once.
    func call(_ call: RPCCall, completion: @escaping @Sendable (Result<RPCAnswer?, any Error>) -> Void) -> RPCCallID
    /// Gives up waiting for an answer; the call completes with `CancellationError`.
    func cancelCall(_ id: RPCCallID)
    /// Collects statistics. `completion` is called exactly once.
    func statistics(completion: @escaping @Sendable (Result<[StatisticsRecord], any Error>) -> Void)
    /// Starts or stops the microphone of the connection. Blocks until the device has done so.
    func setMicrophoneHardMute(_ isMuted: Bool) -> SoraError?
}

/// Makes the driver of a connection. Replaced in tests.
typealias ConnectionDriverFactory = @Sendable (ConfigurationSnapshot, ChannelCore) -> any ConnectionDriver

/// Why the application's side ends a connection.
enum EndCause: Sendable {
    /// `disconnect(error:)` or `cancel()`.
    case user
}

/// One JSON-RPC call to make.
struct RPCCall: Sendable {
    var method: String
    var params: JSONText
    var isNotification: Bool
    /// Seconds from sending on; not used by notifications.
    var timeout: TimeInterval
}

/// Names a call to its driver.
struct RPCCallID: Hashable, Sendable {
    var number: Int
}

/// A successful answer.
struct RPCAnswer: Sendable {
    var id: Int
    /// JSON text of `result`.
    var result: Data
}

/// One object of a statistics report as the engine gives it.
struct StatisticsRecord: Sendable {
    var id: String
    var type: String
    /// Microseconds since 1970.
    var timestamp: Double
    var values: [String: JSONValue]
}

/// What a driver reports, in the words of the application.
enum ConnectionReport {
    /// A WebSocket opened; the first one of the attempt gives `contactUrl`.
    case webSocketOpened(URL)
    /// A message of any WebSocket, before it is looked at.
    case webSocketMessage(WebSocketMessage)
    /// A signaling message came, before it is acted upon.
    case signalingText(String)
    /// The signaling message was acted upon.
    case signalingProcessed(String)
    /// An offer was taken: identifiers and peer connection are new.
    case offerTaken(OfferFacts)
    /// The old transport is void, the next one is being dialled.
    case redirected
    /// The counts of a complete notification.
    case counts(connections: Int, publishers: Int, subscribers: Int)
    case streamAdded(ConnectedStream)
    case streamRemoved(id: String)
    /// The peer connection stands.
    case connected
    case dataChannelOpened(label: String)
    /// All `#` labels of the offer are open.
    case dataChannelsAvailable
    case dataChannelMessage(label: String, data: Data)
}

/// What an offer says about the connection.
struct OfferFacts {
    var clientId: String
    var bundleId: String?
    var connectionId: String
    var url: URL?
    var peer: ObservedPeer
}
