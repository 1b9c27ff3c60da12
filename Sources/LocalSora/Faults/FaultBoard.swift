import SoraLocking

/// The faults in force, shared by the front and all media loops.
final class FaultBoard: Sendable {
    struct Entry: Sendable {
        var number: Int
        var fault: Fault
        /// How many more connections it happens to; nil: any number.
        var remaining: Int?
    }

    private struct State {
        var entries: [Entry] = []
        var nextNumber = 1
        /// Faults of single connections' signaling messages, by connection id.
        var messages: [String: [ActiveFault]] = [:]
    }
    private let state = Locked(State())
    private static let limit = 1000

    init(_ faults: [Fault]) {
        for fault in faults { _ = add(fault) }
    }

    /// Returns the fault's number, or nil if there are too many.
    func add(_ fault: Fault) -> Int? {
        state.withLock { state in
            // Those that have happened as often as they were to make room.
            if state.entries.count >= Self.limit { state.entries.removeAll { $0.remaining == 0 } }
            guard state.entries.count < Self.limit else { return nil }
            let number = state.nextNumber
            state.nextNumber += 1
            state.entries.append(Entry(number: number, fault: fault, remaining: fault.times))
            return number
        }
    }

    /// Removes one fault, or all. Returns how many.
    func remove(_ number: Int?) -> Int {
        state.withLock { state in
            let before = state.entries.count
            state.entries.removeAll { number == nil || $0.number == number }
            for id in Array(state.messages.keys) {
                state.messages[id]?.removeAll { number == nil || $0.number == number }
            }
            return before - state.entries.count
        }
    }

    /// Counts connections that a fault has met without being asked here.
    func use(_ number: Int, _ count: Int) {
        state.withLock { state in
            guard let index = state.entries.firstIndex(where: { $0.number == number }) else { return }
            state.entries[index].remaining = state.entries[index].remaining.map { max(0, $0 - count) }
        }
    }

    var entries: [Entry] { state.withLock { $0.entries } }

    /// The first fault of a stage before anything is known of the client, used up by one.
    func beforeConnect(_ stage: Fault.Stage) -> Fault.Kind? {
        take { fault in
            guard fault.channelID == nil, fault.clientID == nil, fault.connectionID == nil else { return false }
            return fault.kind.stage == stage
        }.first?.kind
    }

    /// The faults of the stage `connect`, of which the first decides.
    func atConnect(channelID: String, clientID: String?) -> Fault.Kind? {
        take { fault in
            guard Self.matches(fault, channelID: channelID, clientID: clientID, connectionID: nil) else { return false }
            if case .redirect = fault.kind { return true }
            return fault.kind.stage == .connect
        }.first?.kind
    }

    /// All faults for a connection that is being admitted.
    func afterConnect(channelID: String, clientID: String?, connectionID: String) -> [ActiveFault] {
        take(all: true) { fault in
            guard Self.matches(fault, channelID: channelID, clientID: clientID, connectionID: connectionID)
            else { return false }
            return fault.kind.isOfConnection
        }
    }

    static func matches(_ fault: Fault, channelID: String, clientID: String?, connectionID: String?) -> Bool {
        (fault.channelID == nil || fault.channelID == channelID)
            && (fault.clientID == nil || fault.clientID == clientID)
            && (fault.connectionID == nil || fault.connectionID == connectionID)
    }

    private func take(all: Bool = false, _ matches: (Fault) -> Bool) -> [ActiveFault] {
        state.withLock { state in
            var taken: [ActiveFault] = []
            for index in state.entries.indices where all || taken.isEmpty {
                let entry = state.entries[index]
                guard entry.remaining ?? 1 > 0, matches(entry.fault) else { continue }
                state.entries[index].remaining = entry.remaining.map { $0 - 1 }
                taken.append(ActiveFault(number: entry.number, kind: entry.fault.kind))
            }
            return taken
        }
    }

    // MARK: Signaling messages

    func addMessageFaults(_ faults: [ActiveFault], of connectionID: String) {
        guard !faults.isEmpty else { return }
        state.withLock { $0.messages[connectionID, default: []] += faults }
    }

    func forget(_ connectionID: String) {
        state.withLock { _ = $0.messages.removeValue(forKey: connectionID) }
    }

    /// What becomes of a message. Nil: nothing unusual.
    func actions(for message: ScriptedMessage) -> [ScriptAction]? {
        for fault in state.withLock({ $0.messages[message.connectionID] }) ?? [] {
            switch fault.kind {
            case .dropMessages(let types) where types.isEmpty || types.contains(message.type): return [.drop]
            case .delayMessages(let types, let delay) where types.isEmpty || types.contains(message.type):
                return [.delay(delay)]
            default: continue
            }
        }
        return nil
    }
}

/// A fault that has met a connection, with its number on the board.
struct ActiveFault: Sendable {
    var number: Int
    var kind: Fault.Kind
}

extension Fault.Kind {
    /// Where it refuses or falls silent.
    var stage: Fault.Stage? {
        switch self {
        case .refuse(let stage, _, _), .silence(let stage), .late(let stage, _): stage
        default: nil
        }
    }

    /// Whether it happens to a connection that has been admitted.
    var isOfConnection: Bool {
        switch self {
        case .refuse(let stage, _, _), .silence(let stage): stage == .answer || stage == .media
        case .redirect, .late: false
        default: true
        }
    }

    var isOfNetwork: Bool {
        switch self {
        case .network, .silence(.media): true
        default: false
        }
    }

    var isOfMessages: Bool {
        switch self {
        case .delayMessages, .dropMessages: true
        default: false
        }
    }
}
