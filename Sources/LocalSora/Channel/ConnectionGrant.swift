import SoraMessages
import SoraWire

/// What a connection is allowed and told to be, after defaults and authorization were applied to its
/// `connect` message.
package struct ConnectionGrant: Sendable {
    package var role: ConnectionRole
    package var clientID: String
    package var bundleID: String
    package var audio: Bool
    package var video: Bool
    package var audioCodec: String
    package var videoCodec: String
    /// kbit/s.
    package var audioBitRate: Int?
    package var videoBitRate: Int
    package var simulcast: Bool
    package var simulcastEncodings: [SimulcastEncoding]?
    package var simulcastRequestRID: LayerRID?
    /// What `RequestSimulcastRid` over RPC may ask for.
    package var simulcastRPCRids: [LayerRID] = LayerRID.allCases
    package var spotlight: Bool
    package var spotlightRIDs = SpotlightRIDs()
    /// Replaces the derived encodings of a spotlight sender.
    package var spotlightEncodings: [SimulcastEncoding]?
    package var spotlightNumber: Int
    package var dataChannelSignaling: Bool
    package var ignoreDisconnectWebSocket: Bool
    package var dataChannels: [DataChannelDefinition]
    package var forwardingFilters: [ForwardingFilter]
    package var rpcMethods: [String]
    /// Becomes `offer.metadata`.
    package var metadata: JSONValue?
    /// Becomes `authz_metadata` in notifications.
    package var authzMetadata: JSONValue?
    package var notifies: Bool = true
    package var lifetime: Duration?
    /// Whether the client is asked for statistics of its own.
    package var collectsClientStats = true
    /// How the TURN servers that the client is told of are altered for it.
    package var turn = TURNGrant()

    /// What `connect` asks for, with the server's defaults.
    package init(_ connect: ConnectMessage, connectionID: ConnectionID, settings: ChannelSettings) {
        role = connect.role
        clientID = connect.clientID ?? connectionID.rawValue
        bundleID = connect.bundleID ?? connectionID.rawValue
        audio = connect.wantsAudio
        video = connect.wantsVideo
        // Historic names (PCMU, LYRA, MULTIOPUS) are wishes; Opus is what is offered.
        audioCodec = settings.audioCodec
        videoCodec = connect.video?.wishes?.codecType ?? settings.videoCodec
        audioBitRate = connect.audio?.wishes?.bitRate
        videoBitRate = connect.video?.wishes?.bitRate ?? settings.videoBitRate
        simulcast = connect.simulcast ?? false
        simulcastRequestRID = connect.effectiveSimulcastRequestRID
        spotlight = connect.spotlight ?? false
        spotlightRIDs = SpotlightRIDs(
            focus: connect.spotlightFocusRID ?? settings.spotlightRIDs.focus,
            unfocus: connect.spotlightUnfocusRID ?? settings.spotlightRIDs.unfocus)
        spotlightNumber = connect.spotlightNumber ?? settings.spotlightNumber
        dataChannelSignaling = connect.dataChannelSignaling ?? settings.dataChannelSignaling
        ignoreDisconnectWebSocket =
            dataChannelSignaling && (connect.ignoreDisconnectWebSocket ?? settings.ignoreDisconnectWebSocket)
        dataChannels = connect.dataChannels ?? []
        forwardingFilters = connect.effectiveForwardingFilters
        rpcMethods = settings.rpcMethods
        settle()
    }

    /// Takes back what needs data channels where there are none. To be called after changes.
    package mutating func settle() {
        guard !dataChannelSignaling else { return }
        ignoreDisconnectWebSocket = false
        dataChannels = []
        rpcMethods = []
    }
}
