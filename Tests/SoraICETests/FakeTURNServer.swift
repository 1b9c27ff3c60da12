import SoraCrypto
import SoraEmulator
import SoraWire

@testable import SoraICE

/// A TURN and STUN server for tests: strict about lifetimes, nonces, permissions and channels (RFC 8656), and able to
/// misbehave on request.
final class FakeTURNServer: VirtualServer {
    enum Client: Hashable {
        case udp(SocketAddress)
        case stream(ICEStreamID)
    }
    struct Channel {
        var peer: SocketAddress
        var expiresAt: Instant
    }
    struct Allocation {
        var relayed: SocketAddress
        var expiresAt: Instant
        var permissions: [IPAddress: Instant] = [:]
        var channels: [UInt16: Channel] = [:]
    }

    let address: SocketAddress
    var addresses: [SocketAddress] { [address] }
    var username = "user"
    var password = "pass"
    var realm = "example.org"
    var offersSHA256 = false
    /// A nonce is good for so long.
    var nonceLifetime = Duration.seconds(3_600)
    /// From then on the realm is this one, once.
    var realmChange: (at: Instant, realm: String)?
    var lifetime: UInt32 = 600
    var requiresCredentials = true
    /// Answers Allocate with this error instead.
    var allocateError: STUNErrorCode?
    var alternate: SocketAddress?
    var refusesPeers: Set<IPAddress> = []
    var refusesChannels = false
    var isSilent = false
    /// Allocates IPv6 only, on request only.
    var relayIP: IPAddress
    /// What arrived, by method and class.
    private(set) var requests: [String: Int] = [:]
    private(set) var staleNonces: [String: Int] = [:]
    private(set) var channelDataReceived = 0
    private(set) var sendIndicationsReceived = 0
    private(set) var violations: [String] = []
    private(set) var allocations: [Client: Allocation] = [:]
    private var nextPort: UInt16 = 50_000
    private var nonceEpoch = Instant.zero
    private var nonceNumber = 0
    /// How stream clients are reached.
    var writeStream: ((ICEStreamID, [UInt8]) -> Void)?

    init(_ ip: String, port: UInt16 = 3478) {
        address = SocketAddress(ip, port: port) ?? SocketAddress(.loopbackV4, port: port)
        relayIP = address.ip
    }

    func dropAllocations() { allocations = [:] }

    // MARK: Transport

    func handle(_ packet: EmulatedNetwork.Packet, now: Instant) -> [EmulatedNetwork.Packet] {
        if isSilent { return [] }
        expire(now)
        if packet.destination == address {
            return receive(packet.payload, from: .udp(packet.source), now: now)
        }
        // From a peer to a relayed address.
        guard let (client, allocation) = allocations.first(where: { $0.value.relayed == packet.destination }),
            allocation.permissions[packet.source.ip] != nil
        else { return [] }
        if let channel = allocation.channels.first(where: { $0.value.peer == packet.source })?.key {
            let padded = if case .stream = client { true } else { false }
            return TURNChannelData.wrap(packet.payload, channel: channel, padded: padded).map { send($0, to: client) }
                ?? []
        }
        let indication = STUNMessage(
            .indication, .data, transactionID: STUNTransactionID(high: 1, low: UInt64(now.nanoseconds)),
            attributes: [.xorPeerAddress(packet.source), .data(packet.payload)])
        return send(indication.serialized(), to: client)
    }

    func receiveStream(_ packet: [UInt8], from id: ICEStreamID, now: Instant) -> [EmulatedNetwork.Packet] {
        if isSilent { return [] }
        expire(now)
        return receive(packet, from: .stream(id), now: now)
    }

    private func send(_ packet: [UInt8], to client: Client) -> [EmulatedNetwork.Packet] {
        switch client {
        case .udp(let remote): return [EmulatedNetwork.Packet(source: address, destination: remote, payload: packet)]
        case .stream(let id):
            writeStream?(id, packet)
            return []
        }
    }

    private func expire(_ now: Instant) {
        for (client, allocation) in allocations {
            if allocation.expiresAt <= now {
                allocations[client] = nil
                violations.append("allocation expired")
                continue
            }
            allocations[client]?.permissions = allocation.permissions.filter { $0.value > now }
            // The pairing stays reserved for five minutes (RFC 8656, 12); filtered by `isLive` below.
            allocations[client]?.channels = allocation.channels.filter { $0.value.expiresAt + .seconds(300) > now }
        }
        if now - nonceEpoch >= nonceLifetime {
            nonceEpoch = now
            nonceNumber += 1
        }
        if let change = realmChange, now >= change.at {
            realm = change.realm
            realmChange = nil
            nonceNumber += 1
        }
    }

    // MARK: Protocol

    private var nonce: [UInt8] { Array((offersSHA256 ? "obMatJos2AAAB" : "").utf8) + Array("nonce\(nonceNumber)".utf8) }

    private var integrity: STUNMessage.Integrity {
        let input = Array("\(username):\(realm):\(password)".utf8)
        return offersSHA256
            ? .sha256(HMACKey(.sha256, key: hash(.sha256, input))) : .sha1(HMACKey(.sha1, key: hash(.md5, input)))
    }

    private func receive(_ packet: [UInt8], from client: Client, now: Instant) -> [EmulatedNetwork.Packet] {
        if let (number, payload) = TURNChannelData.unwrap(packet) {
            channelDataReceived += 1
            if case .stream = client, packet.count % 4 != 0 { violations.append("ChannelData without padding") }
            guard let allocation = allocations[client], let channel = allocation.channels[number],
                channel.expiresAt > now
            else {
                violations.append("ChannelData on unbound \(number)")
                return []
            }
            return [EmulatedNetwork.Packet(source: allocation.relayed, destination: channel.peer, payload: payload)]
        }
        guard let message = try? STUNMessage(parsing: packet) else {
            violations.append("garbage")
            return []
        }
        if message.messageClass == .indication, message.method == .send {
            sendIndicationsReceived += 1
            guard let allocation = allocations[client], let peer = message.peerAddress, let data = message.data,
                allocation.permissions[peer.ip] != nil
            else { return [] }
            return [EmulatedNetwork.Packet(source: allocation.relayed, destination: peer, payload: data)]
        }
        guard message.messageClass == .request else { return [] }
        requests[message.method.description, default: 0] += 1
        return send(answer(message, from: client, now: now), to: client)
    }

    private func answer(_ request: STUNMessage, from client: Client, now: Instant) -> [UInt8] {
        func error(_ code: Int, _ reason: String, _ extra: [STUNAttribute] = [], signed: Bool = false) -> [UInt8] {
            STUNMessage(
                .error, request.method, transactionID: request.transactionID,
                attributes: [.errorCode(STUNErrorCode(code, reason))] + extra
            ).serialized(integrity: signed ? integrity : nil)
        }
        if request.method == .binding {
            guard case .udp(let remote) = client else { return error(400, "Bad Request") }
            return STUNMessage(
                .success, .binding, transactionID: request.transactionID, attributes: [.xorMappedAddress(remote)]
            ).serialized()
        }
        let challenge: [STUNAttribute] =
            [.realm(Array(realm.utf8)), .nonce(nonce)] + (offersSHA256 ? [.passwordAlgorithms([2, 1])] : [])
        if requiresCredentials {
            guard request.isSigned else { return error(401, "Unauthorized", challenge) }
            guard request.realm == Array(realm.utf8), request.nonce == nonce else {
                staleNonces[request.method.description, default: 0] += 1
                return error(438, "Stale Nonce", challenge)
            }
            guard request.username == Array(username.utf8), request.isAuthentic(integrity) else {
                return error(401, "Unauthorized", challenge)
            }
            if offersSHA256, !request.attributes.contains(.passwordAlgorithm(2)) { return error(400, "Bad Request") }
        }
        func success(_ attributes: [STUNAttribute]) -> [UInt8] {
            STUNMessage(.success, request.method, transactionID: request.transactionID, attributes: attributes)
                .serialized(integrity: requiresCredentials ? integrity : nil)
        }
        switch request.method {
        case .allocate:
            if let alternate {
                return error(300, "Try Alternate", [.alternateServer(alternate)], signed: requiresCredentials)
            }
            if let allocateError { return error(allocateError.code, allocateError.reason, signed: requiresCredentials) }
            guard request.attributes.contains(.requestedTransport(17)) else {
                return error(442, "Unsupported Transport")
            }
            let wantsV6 = request.attributes.contains(.requestedAddressFamily(.ipv6))
            guard relayIP.isV4 != wantsV6 else { return error(440, "Address Family not Supported", signed: true) }
            guard allocations[client] == nil else { return error(437, "Allocation Mismatch", signed: true) }
            let relayed = SocketAddress(relayIP, port: nextPort)
            nextPort += 1
            allocations[client] = Allocation(relayed: relayed, expiresAt: now + .seconds(Int64(lifetime)))
            var attributes: [STUNAttribute] = [.xorRelayedAddress(relayed), .lifetime(lifetime)]
            if case .udp(let remote) = client { attributes.append(.xorMappedAddress(remote)) }
            return success(attributes)
        case .refresh:
            guard allocations[client] != nil else { return error(437, "Allocation Mismatch", signed: true) }
            if request.lifetime == 0 {
                allocations[client] = nil
                return success([.lifetime(0)])
            }
            allocations[client]?.expiresAt = now + .seconds(Int64(lifetime))
            return success([.lifetime(lifetime)])
        case .createPermission:
            guard allocations[client] != nil else { return error(437, "Allocation Mismatch", signed: true) }
            for case .xorPeerAddress(let peer) in request.attributes {
                if refusesPeers.contains(peer.ip) { return error(403, "Forbidden", signed: true) }
                allocations[client]?.permissions[peer.ip] = now + .seconds(300)
            }
            return success([])
        case .channelBind:
            guard let allocation = allocations[client], let number = request.channelNumber,
                let peer = request.peerAddress,
                TURNChannelData.numbers.contains(number), !refusesChannels,
                allocation.channels[number].map({ $0.peer == peer }) ?? true,
                !allocation.channels.contains(where: { $0.value.peer == peer && $0.key != number })
            else { return error(400, "Bad Request", signed: true) }
            allocations[client]?.channels[number] = Channel(peer: peer, expiresAt: now + .seconds(600))
            allocations[client]?.permissions[peer.ip] = now + .seconds(300)
            return success([])
        default: return error(400, "Bad Request")
        }
    }
}
