import SoraWire

/// A simulated internet for UDP: hosts with addresses, NATs between them, and links with delay and loss. Owns no clock.
///
/// A host's packets pass its uplink, then its NAT and the destination's NAT, then the destination's downlink. Addresses
/// behind one NAT reach each other directly. Addresses are unique within a site.
package struct EmulatedNetwork {
    /// The public internet, or the inside of one NAT.
    package struct SiteID: Hashable, Sendable {
        fileprivate var rawValue: Int
        package static let internet = SiteID(rawValue: 0)
    }

    /// A datagram between two socket addresses, as its receiver sees it.
    package struct Packet: Sendable, Equatable {
        package var source: SocketAddress
        package var destination: SocketAddress
        package var payload: [UInt8]

        package init(source: SocketAddress, destination: SocketAddress, payload: [UInt8]) {
            self.source = source
            self.destination = destination
            self.payload = payload
        }
    }

    private struct Site {
        var parent: SiteID?
        var nat: EmulatedNAT?
    }
    private struct Host {
        var site: SiteID
        var uplink: LinkScheduler
        var downlink: LinkScheduler
        var isUp = true
        var blocksUDP = false
    }
    private struct HostKey: Hashable {
        var site: SiteID
        var ip: IPAddress
    }
    private enum Event {
        /// Passed its sender's uplink.
        case atCore(Packet, HostKey)
        case arrived(Packet, HostKey)
    }

    private let seed: UInt64
    private var nextLink: UInt64 = 0
    private var sites: [SiteID: Site] = [.internet: Site()]
    private var hosts: [HostKey: Host] = [:]
    private var events = FlightQueue<Event>()
    /// Datagrams that no filter or route let through.
    package private(set) var undeliverable = 0

    package init(seed: UInt64) { self.seed = seed }

    // MARK: Building

    /// Adds a NAT and returns its inside.
    package mutating func addNAT(_ nat: EmulatedNAT, within parent: SiteID = .internet) -> SiteID {
        let id = SiteID(rawValue: sites.count)
        sites[id] = Site(parent: parent, nat: nat)
        return id
    }

    /// Adds an address to a site. The conditions hold for each direction by itself.
    package mutating func addHost(
        _ ip: IPAddress, in site: SiteID = .internet, uplink: LinkConditions = .perfect,
        downlink: LinkConditions = .perfect
    ) {
        hosts[HostKey(site: site, ip: ip)] = Host(
            site: site, uplink: LinkScheduler(uplink, seed: seed, link: nextLink),
            downlink: LinkScheduler(downlink, seed: seed, link: nextLink + 1))
        nextLink += 2
    }

    /// Takes an address up or down. Packets of a host that is down are lost.
    package mutating func setHost(_ ip: IPAddress, in site: SiteID = .internet, isUp: Bool) {
        hosts[HostKey(site: site, ip: ip)]?.isUp = isUp
    }

    /// True drops all UDP to and from the address, as some firewalls do.
    package mutating func setHost(_ ip: IPAddress, in site: SiteID = .internet, blocksUDP: Bool) {
        hosts[HostKey(site: site, ip: ip)]?.blocksUDP = blocksUDP
    }

    /// Changes a host's links from now on.
    package mutating func setConditions(
        of ip: IPAddress, in site: SiteID = .internet, uplink: LinkConditions? = nil, downlink: LinkConditions? = nil
    ) {
        let key = HostKey(site: site, ip: ip)
        if let uplink { hosts[key]?.uplink.conditions = uplink }
        if let downlink { hosts[key]?.downlink.conditions = downlink }
    }

    /// Makes a NAT forget its mappings.
    package mutating func rebindNAT(of site: SiteID) { sites[site]?.nat?.rebind() }

    // MARK: Traffic

    /// Sends a datagram from an address of `site`.
    package mutating func send(
        _ payload: [UInt8], from source: SocketAddress, in site: SiteID = .internet, to destination: SocketAddress,
        now: Instant
    ) {
        let key = HostKey(site: site, ip: source.ip)
        guard var host = hosts[key], host.isUp, !host.blocksUDP else {
            undeliverable += 1
            return
        }
        let arrivals = host.uplink.arrivals(size: payload.count, now: now)
        hosts[key] = host
        let packet = Packet(source: source, destination: destination, payload: payload)
        for arrival in arrivals { events.insert(.atCore(packet, key), at: arrival) }
    }

    /// When something happens next.
    package var nextTimeout: Instant? { events.earliest }

    /// The next datagram that reached its host at `now`, and the site of that host; nil if there is none yet.
    package mutating func receive(now: Instant) -> (packet: Packet, site: SiteID)? {
        while let time = events.earliest, let event = events.pop(now: now) {
            switch event {
            case .atCore(let packet, let sender): route(packet, from: sender.site, at: time)
            case .arrived(let packet, let key):
                if let host = hosts[key], host.isUp, !host.blocksUDP { return (packet, key.site) }
                undeliverable += 1
            }
        }
        return nil
    }

    /// Outwards through NATs until the destination is in sight, then inwards.
    private mutating func route(_ original: Packet, from site: SiteID, at time: Instant) {
        var packet = original
        var site = site
        /// The NAT that the packet has just left, for hairpinning.
        var left: SiteID?
        for _ in 0..<16 {
            let key = HostKey(site: site, ip: packet.destination.ip)
            if var host = hosts[key] {
                for arrival in host.downlink.arrivals(size: packet.payload.count, now: time) {
                    events.insert(.arrived(packet, key), at: arrival)
                }
                hosts[key] = host
                return
            }
            let inward = sites.first { $0.value.parent == site && $0.value.nat?.outerAddress == packet.destination.ip }?
                .key
            if let inward {
                guard inward != left || sites[inward]?.nat?.behavior.hairpins == true,
                    let inner = sites[inward]?.nat?.inbound(to: packet.destination.port, from: packet.source, now: time)
                else { break }
                packet.destination = inner
                site = inward
                continue
            }
            guard let parent = sites[site]?.parent,
                let outer = sites[site]?.nat?.outbound(from: packet.source, to: packet.destination, now: time)
            else { break }
            packet.source = outer
            left = site
            site = parent
        }
        undeliverable += 1
    }
}
