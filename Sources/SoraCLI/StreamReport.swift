import Foundation
import Sora
import SoraLocking

/// Counters of a connection's media, read from its statistics, for progress lines and JSON output.
enum StreamReport {
    static func sending(_ channel: Session.MediaChannelBox) async -> [String: Any]? {
        guard let snapshot = try? await channel.value.getStatsSnapshot() else { return nil }
        var report: [String: Any] = [:]
        var sent = 0.0
        var packets = 0.0
        var bytes = 0.0
        var encoded = 0.0
        for entry in snapshot.entries {
            switch entry.type {
            case "outbound-rtp":
                packets += entry.number("packetsSent") ?? 0
                bytes += entry.number("bytesSent") ?? 0
                if entry.text("kind") == "video" {
                    encoded += entry.number("framesEncoded") ?? 0
                    report["target_bit_rate"] =
                        (report["target_bit_rate"] as? Double ?? 0) + (entry.number("targetBitrate") ?? 0)
                }
            case "media-source":
                if entry.text("kind") == "video" {
                    sent = entry.number("frames") ?? 0
                    report["width"] = entry.number("width")
                    report["height"] = entry.number("height")
                }
            case "remote-inbound-rtp":
                if let roundTrip = entry.number("roundTripTime") { report["round_trip_ms"] = roundTrip * 1000 }
                if let lost = entry.number("packetsLost") {
                    report["packets_lost"] = (report["packets_lost"] as? Double ?? 0) + max(lost, 0)
                }
            case "candidate-pair":
                if report["round_trip_ms"] == nil, let roundTrip = entry.number("currentRoundTripTime") {
                    report["round_trip_ms"] = roundTrip * 1000
                }
            default: break
            }
        }
        report["frames_captured"] = sent
        report["frames_sent"] = encoded
        report["packets_sent"] = packets
        report["bytes_sent"] = bytes
        return report
    }

    static func receiving(_ channel: Session.MediaChannelBox) async -> [String: Any]? {
        guard let snapshot = try? await channel.value.getStatsSnapshot() else { return nil }
        var report: [String: Any] = [:]
        var totals: [String: Double] = [:]
        for entry in snapshot.entries {
            switch entry.type {
            case "inbound-rtp":
                totals["packets_received", default: 0] += entry.number("packetsReceived") ?? 0
                totals["packets_lost", default: 0] += max(entry.number("packetsLost") ?? 0, 0)
                totals["bytes_received", default: 0] += entry.number("bytesReceived") ?? 0
                if entry.text("kind") == "video" {
                    totals["frames_decoded", default: 0] += entry.number("framesDecoded") ?? 0
                    totals["frames_received", default: 0] += entry.number("framesReceived") ?? 0
                    if let width = entry.number("frameWidth"), width > 0 { report["width"] = width }
                    if let height = entry.number("frameHeight"), height > 0 { report["height"] = height }
                }
            case "candidate-pair":
                if let roundTrip = entry.number("currentRoundTripTime") { report["round_trip_ms"] = roundTrip * 1000 }
            default: break
            }
        }
        return report.merging(totals) { $1 }
    }

    static func line(_ report: [String: Any]) -> String {
        func number(_ key: String) -> Int? { (report[key] as? Double).map { Int($0) } }
        var parts: [String] = []
        if let sent = number("frames_sent") { parts.append("\(sent) frames sent") }
        if let received = number("frames_decoded") { parts.append("\(received) frames received") }
        if let width = number("width"), let height = number("height") { parts.append("\(width)x\(height)") }
        if let bytes = number("bytes_sent") ?? number("bytes_received") { parts.append("\(bytes / 1000) kB") }
        if let lost = number("packets_lost") { parts.append("\(lost) packets lost") }
        if let roundTrip = report["round_trip_ms"] as? Double {
            parts.append("\(Double(Int(roundTrip * 10)) / 10) ms round trip")
        }
        return parts.joined(separator: ", ")
    }
}

/// A report on its way between tasks: made once, never changed.
struct SendableReport: @unchecked Sendable {
    // Holds numbers and strings only (StreamReport), immutable from here on.
    let values: [String: Any]
}

/// `MediaStream` may be used from any thread (api 1.3.1), but is not marked so.
struct StreamBox: @unchecked Sendable {
    // Every member that the command uses is documented to be callable from any thread.
    let stream: any MediaStream
}

/// Counts frames on any thread.
final class FrameCounter: Sendable {
    private let count = Locked(0)
    func video() { count.withLock { $0 += 1 } }
    var videoCount: Int { count.withLock { $0 } }
}

extension StatisticsEntrySnapshot {
    fileprivate func number(_ key: String) -> Double? {
        switch values[key] {
        case .decimal(let value): NSDecimalNumber(decimal: value).doubleValue
        case .double(let value): value
        default: nil
        }
    }
    fileprivate func text(_ key: String) -> String? {
        if case .string(let value) = values[key] { value } else { nil }
    }
}
