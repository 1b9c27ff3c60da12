import SoraICE
import SoraMessages
import SoraPeer
import SoraWire

/// How peer connections of a client are made.
package struct ClientPeerSettings: Sendable {
    /// Everything but what an offer decides. Its ICE servers and policy count for offers without `config`.
    package var base: PeerConfiguration

    package init(base: PeerConfiguration) { self.base = base }

    /// The configuration for one offer: its `config` replaces servers and policy. URLs that cannot be used are
    /// left out and named in `unusable`. A policy of `relay` counts only when there is a relay to use.
    package func configuration(for offer: OfferMessage) -> (configuration: PeerConfiguration, unusable: [String]) {
        guard let config = offer.config else { return (base, []) }
        var result = base
        var unusable: [String] = []
        result.ice.servers = config.iceServers.flatMap { server in
            server.urls.compactMap { url in
                do throws(ICEError) {
                    return try ICEServer(url: url, username: server.username, credential: server.credential)
                } catch {
                    unusable.append("\(error)")
                    return nil
                }
            }
        }
        let hasRelay = result.ice.servers.contains { $0.uri.isTURN }
        result.ice.transportPolicy = config.allowsOnlyRelay && hasRelay ? .relay : .all
        return (result, unusable)
    }
}

extension ClientConnection {
    /// A connection whose peers are real ``PeerConnection``s.
    package convenience init(
        configuration: ClientConfiguration, peers settings: ClientPeerSettings, random: RandomSource = .system
    ) {
        // Each epoch has random numbers of its own.
        var random = random
        self.init(configuration: configuration) { offer, now in
            let (configuration, unusable) = settings.configuration(for: offer)
            return PeerConnectionAdapter(
                PeerConnection(configuration: configuration, random: random.split(), now: now),
                warnings: unusable.map { "ignored an ICE server of the offer: \($0)" })
        }
    }

    /// The real peer connection of the current epoch, for media and statistics. Call ``peerWasUsed(now:)``
    /// after sending with it.
    package var peerConnection: PeerConnection? { (peer as? PeerConnectionAdapter)?.connection }
}
