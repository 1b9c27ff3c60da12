import SoraWire

/// What the agent did so far, for `getStats` and diagnostics.
package struct ICEStatistics: Sendable {
    /// One candidate pair.
    package struct Pair: Sendable {
        /// Constant for the pair's life.
        package var id: Int
        package var local: ICECandidate
        package var remote: ICECandidate
        /// W3C `RTCStatsIceCandidatePairState`: `frozen`, `waiting`, `in-progress`, `succeeded` or `failed`.
        package var state: String
        package var isNominated: Bool
        /// Data is sent by it now.
        package var isSelected: Bool
        package var priority: UInt64
        package var counters: ICEPairStatistics
    }
    package var role: ICEAgent.Role
    package var state: ICEState
    package var localCandidates: [ICECandidate]
    package var remoteCandidates: [ICECandidate]
    package var pairs: [Pair]
}

extension ICEAgent {
    /// A snapshot. Linear in the number of pairs.
    package var statistics: ICEStatistics {
        ICEStatistics(
            role: role, state: state, localCandidates: localCandidates, remoteCandidates: remoteCandidates,
            pairs: checklist.pairs.map { pair in
                let state =
                    switch pair.state {
                    case .waiting: "waiting"
                    case .paused: "frozen"
                    case .inProgress: "in-progress"
                    case .succeeded: "succeeded"
                    case .failed: "failed"
                    }
                return ICEStatistics.Pair(
                    id: pair.id, local: pair.local, remote: pair.remote, state: state, isNominated: pair.isNominated,
                    isSelected: pair.id == selectedID, priority: pair.priority(isControlling: role == .controlling),
                    counters: pair.statistics)
            })
    }

    /// The candidates of ours that exist now, as they were announced.
    package var localCandidates: [ICECandidate] {
        (configuration.transportPolicy == .all ? sockets.map(\.candidate) : []) + gathered.map(\.candidate)
            + attempts.compactMap(\.candidate)
    }
}
