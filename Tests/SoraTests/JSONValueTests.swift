import Foundation
import Testing

@testable import Sora

@Suite(.serialized, .leavesNoObjects) struct JSONValueTests {
    private func parse(_ text: String) throws -> JSONValue {
        try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
    }

    @Test func readsEveryKind() throws {
        #expect(try parse("null") == .null)
        #expect(try parse("true") == .bool(true))
        #expect(try parse("0") == .decimal(0))
        #expect(try parse("1.25") == .decimal(Decimal(string: "1.25")!))
        #expect(try parse("\"x\"") == .string("x"))
        #expect(try parse("[1,null]") == .array([.decimal(1), .null]))
        #expect(try parse("{\"a\":{}}") == .object(["a": .object([:])]))
    }

    @Test func numbersBeyondDecimalAreDoubles() throws {
        #expect(try parse("1e200") == .double(1e200))
        #expect(try parse("12345678901234567890") == .decimal(Decimal(string: "12345678901234567890")!))
    }

    @Test func equalityLooksAtTheCase() {
        #expect(JSONValue.decimal(1) != .double(1))
        #expect(JSONValue.double(.nan) != .double(.nan))
    }

    @Test func writesTheBareValue() throws {
        let value = JSONValue.array([.null, .bool(false), .decimal(2), .double(0.5), .string("s"), .object([:])])
        #expect(String(decoding: try JSONEncoder().encode(value), as: UTF8.self) == #"[null,false,2,0.5,"s",{}]"#)
        #expect(
            try parse(#"[null,false,2,0.5,"s",{}]"#).foundationObject as? NSArray == value.foundationObject as? NSArray)
    }

    @Test func foundationObjectsConvertBothWays() throws {
        let object = try JSONSerialization.jsonObject(
            with: Data(#"{"a":[1,true,2.5,"x",null],"b":9007199254740993}"#.utf8))
        let value = try #require(JSONValue(foundationObject: object))
        #expect(
            value
                == .object([
                    "a": .array([.decimal(1), .bool(true), .decimal(2.5), .string("x"), .null]),
                    "b": .decimal(Decimal(string: "9007199254740993")!),
                ]))
        #expect(value.foundationObject as? NSDictionary == object as? NSDictionary)
        #expect(JSONValue(foundationObject: NSNumber(value: Double.nan)) == nil)
        #expect(JSONValue(foundationObject: Date()) == nil)
        #expect(JSONValue(foundationObject: ["a": NSObject()]) == nil)
    }
}

@Suite(.serialized, .leavesNoObjects) struct StatisticsTests {
    private let statistics = Statistics(
        timestamp: 2,
        entries: [
            StatisticsEntry(
                id: "i", type: "outbound-rtp", timestamp: 1,
                values: [
                    "bytesSent": NSNumber(value: 12), "kind": NSString("video"), "type": NSString("wrong"),
                    "list": NSArray(array: [NSNumber(value: true)]),
                    "map": NSDictionary(dictionary: ["k": NSNumber(value: 1.5)]),
                ])
        ])

    @Test func jsonObjectIsJSONAndFixedKeysWin() throws {
        #expect(JSONSerialization.isValidJSONObject(statistics.jsonObject))
        let entry = try #require((statistics.jsonObject as? [[String: Any]])?.first)
        #expect(entry["type"] as? String == "outbound-rtp" && entry["id"] as? String == "i")
        #expect(entry["timestamp"] as? Double == 1 && entry["bytesSent"] as? Int == 12)
    }

    @Test func snapshotsHoldJSONValues() throws {
        let snapshot = try StatisticsSnapshot(statistics)
        let entry = try #require(snapshot.entries.first)
        #expect(entry.values["bytesSent"] == .decimal(12) && entry.values["kind"] == .string("video"))
        #expect(entry.values["list"] == .array([.bool(true)]) && entry.values["map"] == .object(["k": .decimal(1.5)]))
    }

    @Test func oneBadValueFailsTheWholeSnapshot() {
        statistics.entries[0].values["date"] = NSDate()
        #expect(throws: SoraError.self) { try StatisticsSnapshot(statistics) }
    }

    @Test func recordsOfTheEngineBecomeEntries() throws {
        let made = Statistics(records: [
            StatisticsRecord(
                id: "a", type: "transport", timestamp: 5,
                values: ["n": .decimal(3), "l": .array([.null, .string("x")]), "b": .bool(true)])
        ])
        #expect(made.timestamp == 5 && made.entries.count == 1)
        #expect(JSONSerialization.isValidJSONObject(made.jsonObject))
        #expect(try StatisticsSnapshot(made).entries[0].values["n"] == .decimal(3))
    }
}
