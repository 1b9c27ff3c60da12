import Foundation

extension MediaChannel {
    /// Collects statistics. The handler runs exactly once.
    public func getStats(handler: @escaping (Result<Statistics, any Error>) -> Void) {
        if let error = core.statisticsObstacle() { return handler(.failure(error)) }
        let handler = Transfer(handler)
        core.collectStatistics { result in handler.value(result.map { $0.value }) }
    }

    /// Collects statistics as a value. The handler runs exactly once.
    public func getStatsSnapshot(handler: @escaping (Result<StatisticsSnapshot, any Error>) -> Void) {
        if let error = core.statisticsObstacle() { return handler(.failure(error)) }
        let handler = Transfer(handler)
        core.collectStatistics { result in handler.value(result.flatMap(Self.snapshot)) }
    }

    /// Collects statistics as a value.
    nonisolated(nonsending) public func getStatsSnapshot() async throws -> StatisticsSnapshot {
        try Task.checkCancellation()
        if let error = core.statisticsObstacle() { throw error }
        let outcome = OneShot<StatisticsSnapshot>()
        return try await withTaskCancellationHandler {
            core.collectStatistics { outcome.settle($0.flatMap(Self.snapshot)) }
            defer { withExtendedLifetime(self) {} }
            return try await outcome.value()
        } onCancel: {
            outcome.settle(.failure(CancellationError()))
        }
    }

    private static func snapshot(_ statistics: Transfer<Statistics>) -> Result<StatisticsSnapshot, any Error> {
        Result { try StatisticsSnapshot(statistics.value) }
    }
}

extension ChannelCore {
    /// Why statistics cannot be asked for now, or nil.
    func statisticsObstacle() -> SoraError? {
        let view = snapshot
        guard view.state == .connected else { return Self.notConnected(view.state) }
        guard view.peerConnection != nil, liveDriver != nil else {
            return .peerChannelError(reason: "RTCPeerConnection is unavailable (nativeChannel: nil)")
        }
        return nil
    }

    private static func notConnected(_ state: ConnectionState) -> SoraError {
        .peerChannelError(reason: "MediaChannel is not connected (state: \(state))")
    }

    /// Asks the driver, and checks afterwards that the answer still is about the connection as it was.
    func collectStatistics(_ completion: @escaping @Sendable (Result<Transfer<Statistics>, any Error>) -> Void) {
        let asked = snapshot.peerConnection
        guard let driver = liveDriver else { return completion(.failure(Self.notConnected(state))) }
        driver.statistics { [weak self] result in
            guard let self, self.channel != nil else {
                return completion(.failure(SoraError.peerChannelError(reason: "MediaChannel is unavailable")))
            }
            let view = snapshot
            guard view.state == .connected else { return completion(.failure(Self.notConnected(view.state))) }
            guard view.peerConnection === asked else {
                return completion(
                    .failure(
                        SoraError.peerChannelError(
                            reason: "RTCPeerConnection is unavailable (nativeChannel changed)")))
            }
            completion(result.map { Transfer(Statistics(records: $0)) })
        }
    }
}

extension Statistics {
    /// The public form of what the engine reports.
    convenience init(records: [StatisticsRecord]) {
        self.init(
            timestamp: records.map(\.timestamp).max() ?? Date().timeIntervalSince1970 * 1_000_000,
            entries: records.map { record in
                StatisticsEntry(
                    id: record.id, type: record.type, timestamp: record.timestamp,
                    values: record.values.mapValues(\.foundationNSObject))
            })
    }
}

extension JSONValue {
    /// The value as an object of Foundation's class tree.
    var foundationNSObject: NSObject {
        switch self {
        case .string(let value): NSString(string: value)
        case .array(let values): NSArray(array: values.map(\.foundationNSObject))
        case .object(let values): NSDictionary(dictionary: values.mapValues(\.foundationNSObject))
        case .null: NSNull()
        case .bool, .decimal, .double: foundationObject as? NSNumber ?? NSNull()
        }
    }
}
