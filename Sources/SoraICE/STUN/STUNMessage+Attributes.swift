import SoraWire

// The first attribute of each kind; later ones of the same kind do not count (RFC 8489, 14).
extension STUNMessage {
    package var username: [UInt8]? {
        for case .username(let value) in attributes { return value }
        return nil
    }
    package var errorCode: STUNErrorCode? {
        for case .errorCode(let value) in attributes { return value }
        return nil
    }
    package var unknownAttributes: [UInt16] {
        for case .unknownAttributes(let value) in attributes { return value }
        return []
    }
    package var realm: [UInt8]? {
        for case .realm(let value) in attributes { return value }
        return nil
    }
    package var nonce: [UInt8]? {
        for case .nonce(let value) in attributes { return value }
        return nil
    }
    package var passwordAlgorithms: [UInt16]? {
        for case .passwordAlgorithms(let value) in attributes { return value }
        return nil
    }
    package var alternateServer: SocketAddress? {
        for case .alternateServer(let value) in attributes { return value }
        return nil
    }
    /// XOR-MAPPED-ADDRESS, or MAPPED-ADDRESS from a server of RFC 3489.
    package var mappedAddress: SocketAddress? {
        for case .xorMappedAddress(let value) in attributes { return value }
        for case .mappedAddress(let value) in attributes { return value }
        return nil
    }
    package var relayedAddress: SocketAddress? {
        for case .xorRelayedAddress(let value) in attributes { return value }
        return nil
    }
    package var peerAddress: SocketAddress? {
        for case .xorPeerAddress(let value) in attributes { return value }
        return nil
    }
    package var data: [UInt8]? {
        for case .data(let value) in attributes { return value }
        return nil
    }
    /// Seconds.
    package var lifetime: UInt32? {
        for case .lifetime(let value) in attributes { return value }
        return nil
    }
    package var channelNumber: UInt16? {
        for case .channelNumber(let value) in attributes { return value }
        return nil
    }
    package var priority: UInt32? {
        for case .priority(let value) in attributes { return value }
        return nil
    }
    package var nominates: Bool { attributes.contains(.useCandidate) }
    /// The tie-breaker of a sender that believes it controls.
    package var iceControlling: UInt64? {
        for case .iceControlling(let value) in attributes { return value }
        return nil
    }
    /// The tie-breaker of a sender that believes it is controlled.
    package var iceControlled: UInt64? {
        for case .iceControlled(let value) in attributes { return value }
        return nil
    }
    /// Attributes that a receiver has to understand and we do not.
    package var unknownRequired: [UInt16] {
        attributes.compactMap {
            if case .unknown(let type, _) = $0, type < 0x8000 { type } else { nil }
        }
    }
}
