import Foundation

/// One connection, from the attempt to the end. Made by ``Sora/connect(configuration:webRTCConfiguration:handler:)``.
///
/// Every member may be called from any thread, also from inside of a handler.
public final class MediaChannel {
    /// What the application passed to `connect`.
    public let configuration: Configuration
    let core: ChannelCore

    init(configuration: Configuration, core: ChannelCore) {
        self.configuration = configuration
        self.core = core
        core.attach(self)
    }

    deinit { core.abandon() }

    // MARK: Callbacks and events

    /// At first the object in ``Configuration/mediaChannelHandlers``.
    public var handlers: MediaChannelHandlers {
        get { core.handlers }
        set { core.handlers = newValue }
    }

    /// The events of this connection from now on; ends after `disconnected`.
    public func subscribeEvents(
        bufferingPolicy: AsyncStream<SoraEvent>.Continuation.BufferingPolicy = .bufferingNewest(
            SoraEvent.defaultBufferSize)
    ) -> AsyncStream<SoraEvent> {
        core.events.subscribe(bufferingPolicy: bufferingPolicy)
    }

    // MARK: Identity and state

    /// Where the first `connect` message of the attempt went.
    public var contactUrl: URL? { core.snapshot.contactUrl }
    /// Where the latest offer came from.
    public var connectedUrl: URL? { core.snapshot.connectedUrl }
    /// The peer connection; nil until the first offer.
    public var native: RTCPeerConnection? { core.snapshot.peerConnection }
    /// The client id in force; nil until the offer.
    public var clientId: String? { core.snapshot.clientId }
    /// The bundle id in force; nil until the offer.
    public var bundleId: String? { core.snapshot.bundleId }
    /// Identifies the connection in the channel; nil until the offer. Stays readable after the end.
    public var connectionId: String? { core.snapshot.connectionId }
    /// Where the connection stands.
    public var state: ConnectionState { core.state }
    /// True while ``state`` is ``ConnectionState/connected``.
    public var isAvailable: Bool { core.state == .connected }
    /// When the attempt began.
    public var connectionStartTime: Date? { core.snapshot.startTime }
    /// Whole seconds since ``connectionStartTime``.
    public var connectionTime: Int? { core.snapshot.startTime.map { Int(Date().timeIntervalSince($0)) } }
    /// Members of the channel, from the last notification with complete counts.
    public var connectionCount: Int? { core.snapshot.connectionCount }
    /// Members that send.
    public var publisherCount: Int? { core.snapshot.publisherCount }
    /// Members that receive.
    public var subscriberCount: Int? { core.snapshot.subscriberCount }

    // MARK: Streams

    /// In order of addition.
    public var streams: [any MediaStream] { core.snapshot.streams }
    /// The first stream, whichever it is.
    public var mainStream: (any MediaStream)? { core.snapshot.streams.first }
    /// The local stream.
    public var senderStream: (any MediaStream)? { core.senderStream }
    /// All but the local stream.
    public var receiverStreams: [any MediaStream] {
        core.snapshot.streams.filter { $0.streamId != core.settings.publisherStreamId }
    }

    // MARK: Control

    /// Ends the connection. Returns at once; ``MediaChannelHandlers/onDisconnect`` tells when everything is released.
    ///
    /// - Parameter error: the reason to report; nil means an ordinary end.
    public func disconnect(error: (any Error)?) { core.disconnect(error: error) }

    // MARK: Data

    /// Sends a message over a data channel whose label begins with `#`.
    ///
    /// - Returns: nil, or why the message was not accepted.
    public func sendMessage(label: String, data: Data) -> (any Error)? { core.send(data, label: label) }
}

extension MediaChannel: CustomStringConvertible {
    public var description: String {
        "MediaChannel(clientId: \(clientId ?? "-"), role: \(configuration.role))"
    }
}

extension MediaChannel: Equatable {
    public static func == (left: MediaChannel, right: MediaChannel) -> Bool { left === right }
}

extension ChannelCore {
    /// The local stream.
    var senderStream: ConnectedStream? { snapshot.streams.first { $0.streamId == settings.publisherStreamId } }
}
