import SoraWire

/// Channel bindings of an allocation (RFC 8656, 12).
///
/// ICE9: a peer and its number belong together for the allocation's life, so that no number meets
/// another peer within the five minutes after an expiry; a binding that the server refuses leaves Send indications.
struct TURNChannels: Sendable {
    private enum State: Sendable, Equatable {
        case binding
        case bound
        /// Bound, and asked to be so again.
        case refreshing
        case expired
        case refused(retryAt: Instant)
    }
    private struct Channel: Sendable {
        var number: UInt16
        var state: State
        var refreshAt: Instant
        var expiresAt: Instant
    }
    private var channels: [SocketAddress: Channel] = [:]
    private var peers: [UInt16: SocketAddress] = [:]
    private var nextNumber = TURNChannelData.numbers.lowerBound
    /// The one peer whose channel is kept up.
    private var wanted: SocketAddress?

    func number(for peer: SocketAddress) -> UInt16? { channels[peer]?.number }

    /// The peer whose packets come by a number: also before the answer to our request came.
    func peer(of number: UInt16) -> SocketAddress? { peers[number] }

    /// The number if packets may be sent by it.
    func boundNumber(of peer: SocketAddress) -> UInt16? {
        guard let channel = channels[peer], channel.state == .bound || channel.state == .refreshing else { return nil }
        return channel.number
    }

    /// True if a request has to be sent now.
    mutating func want(_ peer: SocketAddress, now: Instant) -> Bool {
        wanted = peer
        if var channel = channels[peer] {
            switch channel.state {
            case .binding, .bound, .refreshing: return false
            case .refused(let retryAt): guard now >= retryAt else { return false }
            case .expired: break
            }
            channel.state = .binding
            channels[peer] = channel
            return true
        }
        guard nextNumber <= TURNChannelData.numbers.upperBound else { return false }
        channels[peer] = Channel(number: nextNumber, state: .binding, refreshAt: now, expiresAt: now)
        peers[nextNumber] = peer
        nextNumber += 1
        return true
    }

    mutating func noteBound(_ peer: SocketAddress, now: Instant) {
        channels[peer]?.state = .bound
        channels[peer]?.expiresAt = now + TURNAllocation.channelLifetime
        channels[peer]?.refreshAt = now + TURNAllocation.channelLifetime - .seconds(120)
    }

    mutating func noteRefused(_ peer: SocketAddress, now: Instant) {
        // After the five minutes in which a server must refuse another pairing.
        channels[peer]?.state = .refused(retryAt: now + .seconds(310))
    }

    /// When something is due: a renewal, an expiry, or another try.
    var nextEvent: Instant? {
        channels.compactMap { peer, channel in
            switch channel.state {
            case .bound: peer == wanted ? channel.refreshAt : channel.expiresAt
            case .refused(let retryAt): peer == wanted ? retryAt : nil
            case .binding, .refreshing, .expired: nil
            }
        }.min()
    }

    /// Peers to bind again now. Lets others expire.
    mutating func due(now: Instant) -> [SocketAddress] {
        var result: [SocketAddress] = []
        for (peer, channel) in channels {
            switch channel.state {
            case .bound where peer == wanted && now >= channel.refreshAt:
                channels[peer]?.state = .refreshing
                result.append(peer)
            case .bound where peer != wanted && now >= channel.expiresAt:
                channels[peer]?.state = .expired
            case .refused(let retryAt) where peer == wanted && now >= retryAt:
                channels[peer]?.state = .binding
                result.append(peer)
            default: break
            }
        }
        return result
    }
}
