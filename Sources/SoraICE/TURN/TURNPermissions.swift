import SoraWire

/// The addresses that an allocation relays for (RFC 8656, 9), and when to renew that.
struct TURNPermissions: Sendable {
    private enum State: Sendable {
        /// Asked for. What is sent meanwhile follows the request and mostly works; it is kept to be repeated if the
        /// request needed a second try.
        case requested(held: [[UInt8]])
        case granted(refreshAt: Instant)
        case refreshing
        case refused
    }
    private var states: [IPAddress: State] = [:]
    private static let heldLimit = 4

    /// True if the permission has to be asked for now.
    mutating func want(_ ip: IPAddress) -> Bool {
        guard states[ip] == nil else { return false }
        states[ip] = .requested(held: [])
        return true
    }

    mutating func hold(_ packet: [UInt8], for ip: IPAddress) {
        guard case .requested(var held)? = states[ip], held.count < TURNPermissions.heldLimit else { return }
        held.append(packet)
        states[ip] = .requested(held: held)
    }

    /// Returns the packets to repeat.
    mutating func noteGranted(_ ip: IPAddress, repeatHeld: Bool, now: Instant) -> [[UInt8]] {
        guard let state = states[ip] else { return [] }
        states[ip] = .granted(refreshAt: now + TURNAllocation.permissionLifetime - .seconds(60))
        if case .requested(let held) = state, repeatHeld { return held }
        return []
    }

    mutating func noteRefused(_ ip: IPAddress) { if states[ip] != nil { states[ip] = .refused } }

    func isRefused(_ ip: IPAddress) -> Bool {
        if case .refused? = states[ip] { true } else { false }
    }

    mutating func keep(only ips: Set<IPAddress>) { states = states.filter { ips.contains($0.key) } }

    var nextRefresh: Instant? {
        states.values.compactMap { if case .granted(let time) = $0 { time } else { nil } }.min()
    }

    /// Addresses whose permission is to be renewed, each once.
    mutating func due(now: Instant) -> [IPAddress] {
        var result: [IPAddress] = []
        for (ip, state) in states {
            guard case .granted(let time) = state, now >= time else { continue }
            states[ip] = .refreshing
            result.append(ip)
        }
        return result
    }
}
