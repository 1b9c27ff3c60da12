import Foundation
internal import SoraLocking

/// Whether a track is on, when several operations want to decide it at once.
///
/// Invariant: of two operations the one that began later decides, also if the earlier one finishes later.
final class TrackSwitch: Sendable {
    /// The moment at which an operation began.
    struct Ticket: Sendable, Comparable {
        fileprivate let number: UInt64
        static func < (left: Ticket, right: Ticket) -> Bool { left.number < right.number }
    }
    private struct State {
        var isOn = true
        var nextTicket: UInt64 = 1
        var decidedBy = Ticket(number: 0)
    }
    private let state = Locked(State())

    var isOn: Bool { state.withLock { $0.isOn } }

    func begin() -> Ticket {
        state.withLock { state in
            defer { state.nextTicket += 1 }
            return Ticket(number: state.nextTicket)
        }
    }

    /// Settles the value unless an operation that began later has settled it already.
    ///
    /// - Parameter apply: toggles the track; called under the lock so that track and value never part. It must
    ///   not call the application.
    /// - Returns: true if the value changed.
    func set(_ isOn: Bool, by ticket: Ticket, apply: (Bool) -> Void) -> Bool {
        state.withLock { state in
            guard ticket >= state.decidedBy else { return false }
            state.decidedBy = ticket
            guard state.isOn != isOn else { return false }
            state.isOn = isOn
            apply(isOn)
            return true
        }
    }
}
