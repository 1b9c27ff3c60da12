import Foundation
internal import SoraClient
internal import SoraICE
internal import SoraMessages
internal import SoraPeer
internal import SoraSecureTransport
internal import SoraWire

extension ClientConfiguration {
    /// What the machine of one attempt needs. The first message is complete here, with the capability offer of sending
    /// roles, so that it leaves the moment a WebSocket opens.
    init(_ settings: ConfigurationSnapshot, capabilityOffer: () throws -> String) throws {
        let members = try SoraMessages.JSONValue(parsing: settings.connectMessage.text).objectValue ?? JSONObject()
        var connect = ConnectMessage(role: ConnectionRole(settings.role), channelID: settings.channelId)
        // The members as the settings made them, whatever the application put into them.
        connect.extra = members
        if settings.role.isSender { connect.sdp = try capabilityOffer() }
        self.init(urls: settings.urlCandidates.map(\.absoluteString), connect: connect)
        connectionTimeout = .seconds(max(0, settings.connectionTimeout))
        publisherStreamID = settings.publisherStreamId
        videoTrackID = settings.publisherVideoTrackId
        audioTrackID = settings.publisherAudioTrackId
        sendsAudio = settings.role.isSender && settings.audioEnabled
        sendsVideo = settings.role.isSender && settings.videoEnabled
        waitsForDelivery = true
    }
}

extension ConnectionRole {
    init(_ role: Role) {
        switch role {
        case .sendonly: self = .sendonly
        case .recvonly: self = .recvonly
        case .sendrecv: self = .sendrecv
        }
    }
}

extension PeerConfiguration {
    /// The peer connection for an offer: its ICE servers and policy count before those of the settings.
    init(_ offer: OfferMessage, settings: ConfigurationSnapshot, certificate: DTLSCertificate, now: Instant) {
        var ice = ICEConfiguration()
        ice.usesTCPCandidates = false
        ice.servers = settings.iceServers.flatMap {
            Self.servers($0.urls, userName: $0.userName, credential: $0.credential)
        }
        // A policy of relay, which is the default of the settings, counts only when there is a relay to use.
        let hasRelay = ice.servers.contains { $0.uri.isTURN }
        ice.transportPolicy = settings.iceTransportPolicy == .relay && hasRelay ? .relay : .all
        let base = PeerConfiguration(
            iceRole: .controlling, ice: ice, certificate: certificate,
            media: ClientCapabilities.media(playsStereo: settings.audioStereoOutputEnabled),
            canonicalName: Utilities.randomString(length: 16),
            ntpEpoch: Self.ntpTime(atOriginOf: now))
        let (configuration, unusable) = ClientPeerSettings(base: base).configuration(for: offer)
        for error in unusable { Logger.warn(type: .peerChannel, message: "an ICE server is left out: \(error)") }
        self = configuration
    }

    private static func servers(_ urls: [String], userName: String?, credential: String?) -> [ICEServer] {
        urls.compactMap { url in
            do throws(ICEError) {
                return try ICEServer(url: url, username: userName, credential: credential)
            } catch {
                Logger.warn(type: .peerChannel, message: "an ICE server is left out: \(error)")
                return nil
            }
        }
    }

    /// NTP time (RFC 5905) at the origin of the loop's clock.
    private static func ntpTime(atOriginOf now: Instant) -> UInt64 {
        let seconds = Date().timeIntervalSince1970 + 2_208_988_800 - Double(now.nanoseconds) / 1e9
        guard seconds > 0, seconds < 4_294_967_296 else { return 0 }
        let whole = seconds.rounded(.down)
        return UInt64(whole) << 32 | UInt64((seconds - whole) * 4_294_967_296)
    }
}
