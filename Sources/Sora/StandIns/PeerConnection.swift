import Foundation
internal import SoraPeer

/// State of a peer connection as the W3C defines it.
public enum RTCPeerConnectionState: Int, Sendable, CustomStringConvertible {
    case new
    case connecting
    case connected
    case disconnected
    case failed
    case closed

    public var description: String {
        switch self {
        case .new: "new"
        case .connecting: "connecting"
        case .connected: "connected"
        case .disconnected: "disconnected"
        case .failed: "failed"
        case .closed: "closed"
        }
    }
}

/// The peer connection of one transport. Stands in for the type of the WebRTC framework.
public final class RTCPeerConnection: Sendable {
    let peer: ObservedPeer

    init(_ peer: ObservedPeer) { self.peer = peer }

    /// Where the peer connection stands.
    public var connectionState: RTCPeerConnectionState { RTCPeerConnectionState(peer.state) }

    /// Closes the peer connection, which ends the connection that it belongs to.
    public func close() { peer.close() }
}

extension RTCPeerConnectionState {
    init(_ state: PeerConnectionState) {
        switch state {
        case .new: self = .new
        case .connecting: self = .connecting
        case .connected: self = .connected
        case .disconnected: self = .disconnected
        case .failed: self = .failed
        case .closed: self = .closed
        }
    }
}

/// A limit of width and height for a simulcast layer. Stands in for the type of the WebRTC framework.
public final class RTCResolutionRestriction {
    public var maxWidth: NSNumber?
    public var maxHeight: NSNumber?
    public init() {}
}

/// Priority of packets in the network (RFC 8837).
public enum RTCPriority: Int, Sendable {
    case veryLow
    case low
    case medium
    case high

    private static let names: [(RTCPriority, String)] = [
        (.veryLow, "very-low"), (.low, "low"), (.medium, "medium"), (.high, "high"),
    ]
    init?(name: String) {
        guard let value = Self.names.first(where: { $0.1 == name })?.0 else { return nil }
        self = value
    }
    var name: String { Self.names.first { $0.0 == self }?.1 ?? "" }
}

/// Settings of one encoding of a sender. Stands in for the type of the WebRTC framework.
public final class RTCRtpEncodingParameters {
    public var rid: String?
    public var isActive = true
    public var maxBitrateBps: NSNumber?
    public var maxFramerate: NSNumber?
    public var scaleResolutionDownBy: NSNumber?
    public var scaleResolutionDownTo: RTCResolutionRestriction?
    public var scalabilityMode: String?
    public var networkPriority = RTCPriority.low
    public init() {}
}

/// How much the engine writes to the log.
public enum RTCLoggingSeverity: Int, Sendable {
    case verbose
    case info
    case warning
    case error
    case none
}
