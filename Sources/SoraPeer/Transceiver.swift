import SoraRTP
import SoraSDP
import SoraWire

/// Names a transceiver of one peer connection. Never reused.
package struct TransceiverID: Hashable, Sendable {
    package var rawValue: Int
    package init(_ rawValue: Int) { self.rawValue = rawValue }
}

/// One m-line of audio or video: what we want to send and receive on it, and what was agreed.
///
/// Owned by its ``PeerConnection`` and used only by whoever drives that.
package final class Transceiver {
    package let id: TransceiverID
    package let kind: MediaKind
    /// Nil until a description names it.
    package internal(set) var mid: Mid?
    /// What we want, seen from our side. Takes effect with the next offer or answer.
    package var direction: MediaDirection
    /// What was agreed, seen from our side; nil before the first negotiation.
    package internal(set) var currentDirection: MediaDirection?
    /// Stopped: its m-line is (or will be) rejected and may be reused by another transceiver.
    package internal(set) var isStopped = false
    /// The other side rejected the m-line (port 0 in its answer), for example because it lacks the codec.
    package internal(set) var isRejected = false

    /// Codecs to offer, most preferred first; empty means everything in the capabilities.
    package var codecPreferences: [CodecDescription] = []
    /// Bandwidth to ask the sender to stay under, in kilobits per second (`b=AS` and `b=TIAS`).
    package var receiveBandwidthLimit: Int?
    /// Bits per second that the other side asked us to stay under, from its `b=` lines; nil: none.
    package internal(set) var sendBandwidthLimit: Int?
    /// Layers that we ask the other side to send, lowest first, in an offer (RFC 8853).
    package var requestedLayers: [RequestedLayer] = []

    /// Stream and track id under which our media is announced.
    package var streamIdentifier: MediaStreamIdentifier?
    /// What we send: one entry, or one per simulcast layer in rid order.
    package var encodings: [Encoding] = []

    /// Stream and track ids that the other side announced.
    package internal(set) var remoteStreamIdentifiers: [MediaStreamIdentifier] = []
    /// Agreed codecs with their payload types, most preferred first.
    package internal(set) var codecs: [CodecDescription] = []
    /// Agreed header extensions.
    package internal(set) var extensions = RTPExtensionMap()
    /// Layers that the other side agreed to send, in order; empty without simulcast.
    package internal(set) var receivingLayers: [RestrictionID] = []

    init(id: TransceiverID, kind: MediaKind, direction: MediaDirection, mid: Mid?) {
        self.id = id
        self.kind = kind
        self.direction = direction
        self.mid = mid
    }

    /// The agreed codec that media is sent in: the first that is not a repair format.
    package var primaryCodec: CodecDescription? { codecs.first { $0.isMedia } }

    /// The payload type that repairs `payloadType`, if one was agreed.
    package func repairPayloadType(for payloadType: PayloadType) -> PayloadType? {
        codecs.first { $0.associatedPayloadType == payloadType }?.payloadType
    }

    package var maySend: Bool { !isStopped && (currentDirection == .sendrecv || currentDirection == .sendonly) }
    package var mayReceive: Bool { !isStopped && (currentDirection == .sendrecv || currentDirection == .recvonly) }

    func supportsFeedback(_ feedback: String, payloadType: PayloadType) -> Bool {
        codecs.first { $0.payloadType == payloadType }?.rtcpFeedback.contains(feedback) ?? false
    }
}

/// A simulcast layer to ask for.
package struct RequestedLayer: Sendable, Equatable {
    package var rid: RestrictionID
    /// Announced as not wanted for now (`~r2`).
    package var isPaused: Bool
    package init(rid: RestrictionID, isPaused: Bool = false) {
        self.rid = rid
        self.isPaused = isPaused
    }
}

/// One RTP stream that we send.
package struct Encoding: Sendable {
    package var ssrc: SSRC
    /// SSRC of the retransmissions (RFC 4588), used if a repair format is agreed.
    package var repairSSRC: SSRC
    /// The layer's name in simulcast.
    package var rid: RestrictionID?
    package var isActive = true
    /// Bits per second; nil: no limit of its own.
    package var maximumBitrate: Int?
    package var scaleResolutionDownBy: Double = 1
    package var maximumFramerate: Double?

    package init(ssrc: SSRC, repairSSRC: SSRC, rid: RestrictionID? = nil) {
        self.ssrc = ssrc
        self.repairSSRC = repairSSRC
        self.rid = rid
    }
}

extension RTPExtensionMap {
    init(_ descriptions: [HeaderExtensionDescription]) {
        self.init()
        for description in descriptions {
            if let kind = RTPExtensionKind(uri: description.uri) { self[kind] = description.id }
        }
    }
}
