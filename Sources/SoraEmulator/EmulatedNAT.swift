import SoraWire

/// How a NAT treats UDP (RFC 4787, 4 and 5).
package struct NATBehavior: Sendable, Equatable {
    /// What a mapping, or a filter, depends on.
    package enum Dependence: Sendable, Equatable, CaseIterable {
        case endpointIndependent
        case addressDependent
        case addressAndPortDependent
    }

    /// Which packets of one inner endpoint share an outer port.
    package var mapping: Dependence
    /// Who may send to an outer port.
    package var filtering: Dependence
    /// Packets between two hosts behind the NAT, sent to the outer address, are delivered.
    package var hairpins: Bool
    /// The inner port is used outside, too, while it is free.
    package var preservesPorts: Bool
    /// A mapping without packets from inside is dropped after this time (RFC 4787, 4.3: at least two minutes).
    package var mappingLifetime: Duration

    package init(
        mapping: Dependence, filtering: Dependence, hairpins: Bool = false, preservesPorts: Bool = false,
        mappingLifetime: Duration = .seconds(120)
    ) {
        self.mapping = mapping
        self.filtering = filtering
        self.hairpins = hairpins
        self.preservesPorts = preservesPorts
        self.mappingLifetime = mappingLifetime
    }

    /// Endpoint-independent in both respects.
    package static let fullCone = NATBehavior(mapping: .endpointIndependent, filtering: .endpointIndependent)
    package static let addressRestricted = NATBehavior(mapping: .endpointIndependent, filtering: .addressDependent)
    package static let portRestricted = NATBehavior(mapping: .endpointIndependent, filtering: .addressAndPortDependent)
    /// A new outer port for each destination.
    package static let symmetric = NATBehavior(mapping: .addressAndPortDependent, filtering: .addressAndPortDependent)
}

/// The translation table of one NAT with one outer address. Owns no clock.
package struct EmulatedNAT: Sendable {
    package let outerAddress: IPAddress
    package var behavior: NATBehavior

    private struct Key: Hashable {
        var inner: SocketAddress
        /// The part of the destination that the mapping depends on.
        var remoteIP: IPAddress?
        var remotePort: UInt16?
    }
    private struct Mapping {
        var key: Key
        var outerPort: UInt16
        var lastUsed: Instant
        /// Where packets went: what the filter lets back in.
        var contacted: Set<SocketAddress>
    }
    private var mappings: [Mapping] = []
    private var nextPort: UInt16

    /// `firstPort` is the first outer port given out.
    package init(outerAddress: IPAddress, behavior: NATBehavior, firstPort: UInt16 = 20_000) {
        self.outerAddress = outerAddress
        self.behavior = behavior
        nextPort = firstPort
    }

    /// The source address that a packet from inside has outside. Opens or refreshes the mapping.
    package mutating func outbound(from inner: SocketAddress, to remote: SocketAddress, now: Instant) -> SocketAddress {
        expire(now)
        let key = Key(
            inner: inner, remoteIP: behavior.mapping == .endpointIndependent ? nil : remote.ip,
            remotePort: behavior.mapping == .addressAndPortDependent ? remote.port : nil)
        if let index = mappings.firstIndex(where: { $0.key == key }) {
            mappings[index].lastUsed = now
            mappings[index].contacted.insert(remote)
            return SocketAddress(outerAddress, port: mappings[index].outerPort)
        }
        let port = freePort(preferred: behavior.preservesPorts ? inner.port : nil)
        mappings.append(Mapping(key: key, outerPort: port, lastUsed: now, contacted: [remote]))
        return SocketAddress(outerAddress, port: port)
    }

    /// Where a packet from outside to an outer port goes; nil if there is no mapping or the filter refuses it.
    package mutating func inbound(to outerPort: UInt16, from remote: SocketAddress, now: Instant) -> SocketAddress? {
        expire(now)
        guard let mapping = mappings.first(where: { $0.outerPort == outerPort }) else { return nil }
        let passes =
            switch behavior.filtering {
            case .endpointIndependent: true
            case .addressDependent: mapping.contacted.contains { $0.ip == remote.ip }
            case .addressAndPortDependent: mapping.contacted.contains(remote)
            }
        return passes ? mapping.key.inner : nil
    }

    /// Forgets all mappings, as a NAT does that restarts: the same inner endpoints get new outer ports.
    package mutating func rebind() { mappings = [] }

    package var mappingCount: Int { mappings.count }

    private mutating func expire(_ now: Instant) {
        mappings.removeAll { now - $0.lastUsed > behavior.mappingLifetime }
    }

    private mutating func freePort(preferred: UInt16?) -> UInt16 {
        func isFree(_ port: UInt16) -> Bool { !mappings.contains { $0.outerPort == port } }
        if let preferred, isFree(preferred) { return preferred }
        // Never more mappings than ports: expired ones are gone, and each search ends at a free one.
        for _ in 0..<65_535 {
            let port = nextPort
            nextPort = nextPort == .max ? 1_024 : nextPort + 1
            if isFree(port) { return port }
        }
        return nextPort
    }
}
