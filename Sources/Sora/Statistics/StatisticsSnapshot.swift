import Foundation

/// A statistics report that may cross actors.
public struct StatisticsSnapshot: Sendable {
    /// Microseconds since 1970.
    public let timestamp: CFTimeInterval
    /// In no order that means anything.
    public let entries: [StatisticsEntrySnapshot]

    /// Fails as a whole when any value is not JSON.
    init(_ statistics: Statistics) throws(SoraError) {
        timestamp = statistics.timestamp
        var entries: [StatisticsEntrySnapshot] = []
        for entry in statistics.entries { entries.append(try StatisticsEntrySnapshot(entry)) }
        self.entries = entries
    }
}

/// One object of a statistics report, as a value.
public struct StatisticsEntrySnapshot: Sendable {
    /// Identifies the entry; other entries refer to it.
    public let id: String
    /// The type of W3C's webrtc-stats, for instance `inbound-rtp`.
    public let type: String
    /// Microseconds since 1970.
    public let timestamp: CFTimeInterval
    /// The members of W3C's webrtc-stats by name.
    public let values: [String: JSONValue]

    init(_ entry: StatisticsEntry) throws(SoraError) {
        id = entry.id
        type = entry.type
        timestamp = entry.timestamp
        var values: [String: JSONValue] = [:]
        for (key, object) in entry.values {
            guard let value = JSONValue(foundationObject: object) else {
                throw .mediaChannelError(reason: "statistics values are not JSON values")
            }
            values[key] = value
        }
        self.values = values
    }
}
