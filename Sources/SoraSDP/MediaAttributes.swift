import SoraWire

// The structured attributes of a media section.

/// `a=extmap` (RFC 8285, 8).
package struct HeaderExtensionDescription: Sendable, Equatable {
    /// 1...255; up to 14 fits the one-byte header.
    package var id: UInt8
    package var uri: String
    package var direction: MediaDirection?
    /// Extension attributes behind the URI, as in the line.
    package var attributes: String?
    package init(id: UInt8, uri: String, direction: MediaDirection? = nil, attributes: String? = nil) {
        self.id = id
        self.uri = uri
        self.direction = direction
        self.attributes = attributes
    }
}

/// URIs of the header extensions that this stack knows.
package enum HeaderExtensionURI {
    package static let mid = "urn:ietf:params:rtp-hdrext:sdes:mid"
    package static let rid = "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"
    package static let repairedRid = "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id"
    package static let audioLevel = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
    package static let transportWideCC =
        "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
    package static let absoluteSendTime = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
    package static let videoOrientation = "urn:3gpp:video-orientation"
    package static let dependencyDescriptor =
        "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"
}

/// `a=msid` (RFC 8830). Stream `-` means that the track belongs to no stream.
package struct MediaStreamIdentifier: Sendable, Equatable {
    package var stream: String
    package var track: String?
    package init(stream: String, track: String? = nil) {
        self.stream = stream
        self.track = track
    }
}

/// All `a=ssrc` lines of one source (RFC 5576), in order. Hints only: streams are bound by MID and RID.
package struct SSRCDescription: Sendable, Equatable {
    package var ssrc: SSRC
    package var attributes: [SDPAttribute]
    package init(ssrc: SSRC, attributes: [SDPAttribute]) {
        self.ssrc = ssrc
        self.attributes = attributes
    }
    /// Value of the first attribute of this name, such as `cname`.
    package func value(_ name: String) -> String? {
        attributes.first { $0.name == name }?.value
    }
}

/// `a=ssrc-group`: `FID` pairs a source with its retransmissions, `SIM` lists layers.
package struct SSRCGroup: Sendable, Equatable {
    package var semantics: String
    package var ssrcs: [SSRC]
    package init(semantics: String, ssrcs: [SSRC]) {
        self.semantics = semantics
        self.ssrcs = ssrcs
    }
}

/// `a=rid` (RFC 8851).
package struct RIDDescription: Sendable, Equatable {
    package enum Direction: String, Sendable, Equatable { case send, recv }
    package var id: RestrictionID
    package var direction: Direction
    /// From `pt=`; empty means all of the section.
    package var payloadTypes: [PayloadType]
    /// The other restrictions, in order.
    package var restrictions: [SDPAttribute]
    package init(
        id: RestrictionID, direction: Direction, payloadTypes: [PayloadType] = [],
        restrictions: [SDPAttribute] = []
    ) {
        self.id = id
        self.direction = direction
        self.payloadTypes = payloadTypes
        self.restrictions = restrictions
    }
}

/// `a=simulcast` (RFC 8853): for each direction a list of streams, each a list of alternatives.
package struct SimulcastDescription: Sendable, Equatable {
    package struct Layer: Sendable, Equatable {
        package var rid: RestrictionID
        /// Marked with `~`: announced, but not to be sent for now.
        package var isPaused: Bool
        package init(_ rid: RestrictionID, isPaused: Bool = false) {
            self.rid = rid
            self.isPaused = isPaused
        }
    }
    package var send: [[Layer]]
    package var receive: [[Layer]]
    package init(send: [[Layer]] = [], receive: [[Layer]] = []) {
        self.send = send
        self.receive = receive
    }
}
