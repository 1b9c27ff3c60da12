import Foundation

/// A statistics report, with entries of the W3C webrtc-stats vocabulary.
public class Statistics {
    /// Microseconds since 1970.
    public var timestamp: CFTimeInterval
    /// In no order that means anything.
    public var entries: [StatisticsEntry]

    init(timestamp: CFTimeInterval, entries: [StatisticsEntry]) {
        self.timestamp = timestamp
        self.entries = entries
    }

    /// An array of dictionaries that `JSONSerialization` accepts: `id`, `type`, `timestamp` and the values.
    public var jsonObject: Any {
        entries.map { entry -> [String: Any] in
            var object: [String: Any] = entry.values
            object["id"] = entry.id
            object["type"] = entry.type
            object["timestamp"] = NSNumber(value: entry.timestamp)
            return object
        }
    }
}

/// One object of a statistics report.
public class StatisticsEntry {
    /// Identifies the entry; other entries refer to it.
    public var id: String
    /// For instance `inbound-rtp`.
    public var type: String
    /// Microseconds since 1970.
    public var timestamp: CFTimeInterval
    /// `NSNumber`, `NSString`, `NSArray`, `NSDictionary`.
    public var values: [String: NSObject]

    init(id: String, type: String, timestamp: CFTimeInterval, values: [String: NSObject]) {
        self.id = id
        self.type = type
        self.timestamp = timestamp
        self.values = values
    }
}
