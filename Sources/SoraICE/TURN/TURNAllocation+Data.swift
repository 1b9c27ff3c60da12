import SoraWire

// What goes through the relay.
extension TURNAllocation {
    /// Application data or checks of a peer.
    struct Delivery {
        var peer: SocketAddress
        var payload: [UInt8]
    }

    /// Takes one packet of the server: an answer, or something from a peer, which is returned unwrapped.
    func receive(_ packet: consuming [UInt8], now: Instant) -> Delivery? {
        if TURNChannelData.isChannelData(packet) {
            guard let (number, payload) = TURNChannelData.unwrap(packet), let peer = channels.peer(of: number) else {
                return nil
            }
            return Delivery(peer: peer, payload: payload)
        }
        guard let message = try? STUNMessage(parsing: packet) else { return nil }
        return receive(message, now: now)
    }

    /// The same for a message that is already parsed.
    func receive(_ message: STUNMessage, now: Instant) -> Delivery? {
        switch message.messageClass {
        case .success, .error:
            handleAnswer(message, now: now)
            return nil
        case .indication:
            guard message.method == .data, case .allocated = state, let peer = message.peerAddress,
                let payload = message.data
            else { return nil }
            return Delivery(peer: peer, payload: payload)
        case .request: return nil
        }
    }

    /// Lets the peer's address send to us, and keeps that up. The first request goes out at once.
    func permit(_ ip: IPAddress, now: Instant) {
        guard case .allocated = state, permissions.want(ip) else { return }
        send(.permission(ip), now: now)
    }

    /// Binds a channel to the peer in place of others, and keeps that up: four bytes instead of 36 before each packet.
    func bind(_ peer: SocketAddress, now: Instant) {
        guard case .allocated = state else { return }
        permit(peer.ip, now: now)
        if channels.want(peer, now: now) { send(.bind(peer), now: now) }
    }

    /// Stops keeping up permissions of addresses other than these.
    func keepPermissions(only ips: Set<IPAddress>) { permissions.keep(only: ips) }

    /// The packet for the server that brings `payload` to the peer: ChannelData if a channel is bound, else a
    /// Send indication. Nil without an allocation, or if the payload is too long.
    func wrap(_ payload: consuming [UInt8], to peer: SocketAddress) -> [UInt8]? {
        guard case .allocated = state else { return nil }
        if let number = channels.boundNumber(of: peer) {
            return TURNChannelData.wrap(payload, channel: number, padded: isStream)
        }
        guard payload.count <= 65_000 else { return nil }
        let indication = STUNMessage(
            .indication, .send, transactionID: STUNTransactionID(random: &random),
            attributes: [.xorPeerAddress(peer), .data(payload)])
        let packet = indication.serialized()
        permissions.hold(packet, for: peer.ip)
        return packet
    }
}
