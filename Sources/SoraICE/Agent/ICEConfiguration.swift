import SoraWire

/// Which candidates may be used (W3C `RTCIceTransportPolicy`).
package enum ICETransportPolicy: String, Sendable, Equatable {
    case all
    /// Only relayed candidates: neither offered nor checked from, nor answered at, is anything else.
    case relay
}

/// The state of the whole agent (W3C `RTCIceTransportState`).
package enum ICEState: String, Sendable, Equatable {
    /// Nothing to check yet. Goes to `checking`, `closed`.
    case new
    /// Looking for a pair that works. Goes to `connected`, `failed`, `closed`.
    case checking
    /// A pair works and is in use; better ones may still be found. Goes to `completed`, `disconnected`, `failed`,
    /// `closed`.
    case connected
    /// A pair is nominated and nothing is left to check. Goes to `connected`, `disconnected`, `failed`, `closed`.
    case completed
    /// The pair in use gives no answers. Goes to `connected`, `completed`, `failed`, `closed`.
    case disconnected
    /// No pair works. Only a restart leads out, to `checking`, or `closed`.
    case failed
    /// ``ICEAgent/close(now:)`` was called. Final.
    case closed
}

/// What an ``ICEAgent`` is to do, and its limits.
package struct ICEConfiguration: Sendable {
    package var mode = ICEAgent.Mode.full
    /// Fixed credentials; nil draws fresh ones.
    package var credentials: ICECredentials?
    /// STUN and TURN servers, all tried side by side.
    package var servers: [ICEServer] = []
    package var transportPolicy = ICETransportPolicy.all
    /// False leaves local sockets at loopback addresses out.
    package var includesLoopback = true
    /// True offers active TCP candidates and opens connections to passive ones of the peer (RFC 6544).
    package var usesTCPCandidates = false
    /// Names that end otherwise than in `.local` are looked up too.
    package var resolvesAllNames = true

    /// Ta of RFC 8445, 14.2: the mean distance of ordinary checks and of requests to servers.
    package var checkInterval = Duration.milliseconds(50)
    /// So many ordinary checks may leave at once before that distance is kept, so that a connection
    /// with few candidates waits for round trips only.
    package var checkBurst = 10
    /// How long a valid pair waits for pairs of higher priority that are still being checked before it is nominated.
    package var nominationDelay = Duration.milliseconds(200)
    /// The same if the valid pair is relayed: hole punching often needs a second try, after 500 ms. Data flows
    /// meanwhile.
    package var relayedNominationDelay = Duration.milliseconds(1_200)
    /// How long to look for a first valid pair (RFC 8863, 4: not less than 39.5 s by default).
    package var connectTimeout = Duration.milliseconds(39_500)
    /// Mean distance of consent checks (RFC 7675, 5.1).
    package var consentInterval = Duration.seconds(5)
    /// Age of the latest valid answer at which sending stops (RFC 7675, 5.1).
    package var consentTimeout = Duration.seconds(30)
    /// Age of the latest valid answer at which a full agent reports `disconnected`.
    package var disconnectedTimeout = Duration.seconds(8)
    /// Silence after which a lite agent reports `disconnected`. 2.5 s in `connected` and 5 s in `checking`
    /// of the commercial server (signaling.md, 8.2).
    package var liteDisconnectedTimeout = Duration.milliseconds(7_500)
    /// Silence after which a lite agent reports `failed`: 10 s later.
    package var liteFailedTimeout = Duration.milliseconds(17_500)
    /// Candidates of the peer that are kept, peer-reflexive ones included.
    package var remoteCandidateLimit = 64
    /// Candidate pairs that are kept.
    package var pairLimit = 128

    package init() {}
}
