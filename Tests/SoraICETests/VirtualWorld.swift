import SoraEmulator
import SoraWire

@testable import SoraICE

/// An agent with its sockets in a ``VirtualWorld``.
final class VirtualHost {
    let name: String
    let agent: ICEAgent
    /// Where each socket is bound.
    var sockets: [SocketID: (address: SocketAddress, site: EmulatedNetwork.SiteID)] = [:]
    weak var peer: VirtualHost?
    /// False keeps candidates from the peer.
    var signalsCandidates = true

    var states: [(time: Instant, state: ICEState)] = []
    var selections: [(time: Instant, local: ICECandidate, remote: ICECandidate)] = []
    var candidates: [ICECandidate] = []
    var received: [(time: Instant, payload: [UInt8])] = []
    var gatheringFinishedAt: Instant?
    var sentDatagrams = 0
    /// Answers name look-ups; nil never answers.
    var resolver: ((String) -> [IPAddress]?)?
    /// Called with each stream output.
    var onStream: ((ICEAgent.Output, Instant) -> Void)?

    init(_ name: String, _ agent: ICEAgent) {
        self.name = name
        self.agent = agent
    }

    func time(of state: ICEState) -> Instant? { states.first { $0.state == state }?.time }
}

/// Something that answers datagrams, such as a STUN or TURN server.
protocol VirtualServer: AnyObject {
    /// Addresses that it listens at.
    var addresses: [SocketAddress] { get }
    /// Datagrams to send.
    func handle(_ packet: EmulatedNetwork.Packet, now: Instant) -> [EmulatedNetwork.Packet]
}

/// Agents, a simulated network and a clock that jumps from event to event.
final class VirtualWorld {
    var network: EmulatedNetwork
    private(set) var now = Instant.zero + .seconds(1_000)
    private(set) var hosts: [VirtualHost] = []
    var servers: [any VirtualServer] = []
    /// Objects that live as long as the world.
    var companions: [AnyObject] = []
    var signalingDelay = Duration.zero
    /// True loses the datagram, before it enters the network.
    var loses: ((EmulatedNetwork.Packet) -> Bool)?
    private var later: [(time: Instant, action: () -> Void)] = []

    init(seed: UInt64 = 1) { network = EmulatedNetwork(seed: seed) }

    func addHost(
        _ name: String, role: ICEAgent.Role, seed: UInt64, _ configure: (inout ICEConfiguration) -> Void = { _ in }
    ) -> VirtualHost {
        var configuration = ICEConfiguration()
        configure(&configuration)
        let agent = ICEAgent(configuration: configuration, role: role, random: RandomSource(seed: seed), now: now)
        let host = VirtualHost(name, agent)
        hosts.append(host)
        return host
    }

    /// Adds an address to the network and a socket at it to the host's agent.
    func addSocket(
        _ number: Int, of host: VirtualHost, at text: String, port: UInt16 = 5_000,
        in site: EmulatedNetwork.SiteID = .internet, delay: Duration = .milliseconds(10)
    ) {
        guard let address = SocketAddress(text, port: port) else { return }
        let link = LinkConditions(delay: delay / 2)
        network.addHost(address.ip, in: site, uplink: link, downlink: link)
        host.sockets[SocketID(number)] = (address, site)
        host.agent.addLocalSocket(SocketID(number), address: address, now: now)
        drain(host)
    }

    func addServer(_ server: any VirtualServer, delay: Duration = .milliseconds(10)) {
        servers.append(server)
        let link = LinkConditions(delay: delay / 2)
        for address in server.addresses { network.addHost(address.ip, uplink: link, downlink: link) }
    }

    /// Makes two hosts know each other's credentials and trickle candidates to each other.
    func connect(_ a: VirtualHost, _ b: VirtualHost) {
        for (one, other) in [(a, b), (b, a)] {
            one.peer = other
            one.agent.setRemote(
                credentials: other.agent.localCredentials, isLite: other.agent.configuration.mode == .lite, now: now)
            if other.signalsCandidates {
                for candidate in other.candidates { one.agent.addRemoteCandidate(candidate, now: now) }
            }
        }
        drain(a)
        drain(b)
    }

    func after(_ delay: Duration, _ action: @escaping () -> Void) { later.append((now + delay, action)) }

    func send(_ payload: [UInt8], from host: VirtualHost) -> Bool {
        if let datagram = host.agent.datagram(for: payload) {
            transmit(datagram, from: host)
            return true
        }
        let before = host.sentDatagrams
        drain(host)
        return host.sentDatagrams > before
    }

    /// Puts a datagram onto the network as if `host` had sent it.
    func transmit(_ datagram: Datagram, from host: VirtualHost) {
        guard let socket = host.sockets[datagram.socket] else { return }
        host.sentDatagrams += 1
        let packet = EmulatedNetwork.Packet(
            source: socket.address, destination: datagram.remote, payload: datagram.payload)
        if loses?(packet) == true { return }
        network.send(packet.payload, from: packet.source, in: socket.site, to: packet.destination, now: now)
    }

    func drain(_ host: VirtualHost) {
        while let output = host.agent.poll() {
            switch output {
            case .transmit(let datagram): transmit(datagram, from: host)
            case .stateChanged(let state): host.states.append((now, state))
            case .selectedPairChanged(let local, let remote): host.selections.append((now, local, remote))
            case .localCandidate(let candidate):
                host.candidates.append(candidate)
                guard host.signalsCandidates, let peer = host.peer else { continue }
                after(signalingDelay) { [unowned self] in
                    peer.agent.addRemoteCandidate(candidate, now: now)
                    drain(peer)
                }
            case .gatheringFinished: host.gatheringFinishedAt = now
            case .resolve(let name, let token):
                guard let addresses = host.resolver?(name) else { continue }
                after(.milliseconds(5)) { [unowned self] in
                    host.agent.resolved(token, addresses: addresses, now: now)
                    drain(host)
                }
            case .openStream, .writeStream, .closeStream: host.onStream?(output, now)
            }
        }
    }

    func run(for duration: Duration) { run(until: now + duration) }

    func run(until end: Instant, while condition: () -> Bool = { true }) {
        var steps = 0
        while condition(), steps < 2_000_000 {
            steps += 1
            let times =
                [network.nextTimeout, later.map(\.time).min()].compactMap { $0 }
                + hosts.compactMap(\.agent.nextTimeout)
            guard let next = times.min(), next <= end else { break }
            now = max(now, next)
            step()
        }
        if condition() { now = max(now, end) }
    }

    private func step() {
        let due = later.filter { $0.time <= now }
        later.removeAll { $0.time <= now }
        for entry in due { entry.action() }
        while let (packet, site) = network.receive(now: now) { deliver(packet, site) }
        for host in hosts {
            if let timeout = host.agent.nextTimeout, timeout <= now { host.agent.handleTimeout(now: now) }
            drain(host)
        }
    }

    private func deliver(_ packet: EmulatedNetwork.Packet, _ site: EmulatedNetwork.SiteID) {
        for server in servers
        where server.addresses.contains(packet.destination)
            || server.addresses.contains(where: { $0.ip == packet.destination.ip })
        {
            for answer in server.handle(packet, now: now) {
                network.send(answer.payload, from: answer.source, to: answer.destination, now: now)
            }
            return
        }
        for host in hosts {
            for (id, socket) in host.sockets where socket.address == packet.destination && socket.site == site {
                let datagram = Datagram(socket: id, remote: packet.source, payload: packet.payload)
                if let data = host.agent.handle(datagram, now: now) { host.received.append((now, data)) }
                drain(host)
            }
        }
    }
}
