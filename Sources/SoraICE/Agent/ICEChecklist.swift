import SoraWire

/// The pairs, the order in which they are checked, and the pace (RFC 8445, 6.1.2 and 6.1.4).
struct ICEChecklist: Sendable {
    /// Never more than ``ICEConfiguration/pairLimit``.
    /// Their content may be changed in place; the list changes by the methods below. (An array of the type itself, not a
    /// subscript that yields: the compiler reads what such a one lent after giving it back.)
    var pairs: [ICECandidatePair] = []
    /// Ids of pairs whose check goes first, in order of arrival, each once.
    private var triggered: [Int] = []
    private var nextID = 0
    private let limit: Int
    private let interval: Duration
    private let burst: Int
    /// When the next check would be due if all were sent evenly.
    private var schedule: Instant

    init(limit: Int, interval: Duration, burst: Int, now: Instant) {
        self.limit = max(1, limit)
        self.interval = interval
        self.burst = max(1, burst)
        schedule = now
    }

    // MARK: Pairs

    func index(of id: Int) -> Int? { pairs.firstIndex { $0.id == id } }

    func index(path: ICEPath, remote: SocketAddress) -> Int? {
        pairs.firstIndex { $0.remoteAddress == remote && $0.path == path }
    }

    /// Changes one pair in place. Does nothing if it is gone.
    mutating func update(_ id: Int, _ change: (inout ICECandidatePair) -> Void) {
        guard let index = index(of: id) else { return }
        change(&pairs[index])
    }

    /// Adds a pair and returns its id. At the limit the least useful pair makes room, unless all are in use
    /// (`keep` says which one must stay), then nil.
    mutating func add(
        path: ICEPath, local: ICECandidate, remote: ICECandidate, remoteAddress: SocketAddress,
        isControlling: Bool, keep: Int?
    ) -> Int? {
        if pairs.count >= limit {
            guard let victim = leastUseful(isControlling: isControlling, keep: keep) else { return nil }
            remove { $0.id == victim }
        }
        nextID += 1
        pairs.append(
            ICECandidatePair(id: nextID, path: path, local: local, remote: remote, remoteAddress: remoteAddress))
        return nextID
    }

    /// A failed pair, else the one not heard from for the longest time, else the lowest priority.
    private func leastUseful(isControlling: Bool, keep: Int?) -> Int? {
        let others = pairs.filter { $0.id != keep }
        if let failed = others.first(where: { $0.state == .failed }) { return failed.id }
        func heard(_ pair: ICECandidatePair) -> Instant { max(pair.lastRequest ?? .zero, pair.lastAnswer ?? .zero) }
        return others.min {
            (heard($0), $0.priority(isControlling: isControlling)) < (
                heard($1), $1.priority(isControlling: isControlling)
            )
        }?.id
    }

    mutating func remove(where matches: (ICECandidatePair) -> Bool) {
        pairs.removeAll(where: matches)
        triggered.removeAll { id in !pairs.contains { $0.id == id } }
    }

    // MARK: Order

    /// Puts a pair before all ordinary checks (RFC 8445, 6.1.4.1).
    mutating func trigger(_ id: Int) {
        guard !triggered.contains(id) else { return }
        triggered.append(id)
    }

    /// The next triggered pair, taken out of the queue.
    mutating func popTriggered() -> Int? { triggered.isEmpty ? nil : triggered.removeFirst() }

    /// The waiting pair of highest priority.
    func nextWaiting(isControlling: Bool) -> Int? {
        pairs.filter { $0.state == .waiting }
            .max { $0.priority(isControlling: isControlling) < $1.priority(isControlling: isControlling) }?.id
    }

    var hasWaiting: Bool { pairs.contains { $0.state == .waiting } }

    // MARK: Pace

    /// When the next ordinary check may leave.
    var nextOpportunity: Instant { schedule - interval * (burst - 1) }

    /// Takes one opportunity if there is one.
    mutating func takeOpportunity(now: Instant) -> Bool {
        guard now >= nextOpportunity else { return false }
        schedule = max(schedule, now) + interval
        return true
    }
}
