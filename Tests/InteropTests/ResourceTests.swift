import Foundation
import LocalSora
import Sora
import Testing

/// What 200 connections leave behind in one process. Here because these tests run one at a time: elsewhere
/// others would open and close things meanwhile.
@Suite(.serialized, .enabled(if: Interop.isEnabled, Interop.reason))
struct ResourceTests {
    struct Usage: CustomStringConvertible {
        var descriptors: Int
        var threads: Int
        var residentKiB: Int
        var description: String { "\(descriptors) descriptors, \(threads) threads, \(residentKiB) KiB" }

        static func now() -> Usage {
            let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
            func field(_ name: String) -> Int {
                for line in status.split(separator: "\n") where line.hasPrefix(name + ":") {
                    return Int(line.dropFirst(name.count + 1).split(whereSeparator: { $0 == " " || $0 == "\t" })[0])
                        ?? 0
                }
                return 0
            }
            let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
            return Usage(descriptors: descriptors, threads: field("Threads"), residentKiB: field("VmRSS"))
        }

        mutating func lower(to other: Usage) {
            descriptors = min(descriptors, other.descriptors)
            threads = min(threads, other.threads)
            residentKiB = min(residentKiB, other.residentKiB)
        }
    }

    /// MEM1: descriptors, threads and memory are flat over 200 rounds of connect, message, disconnect.
    @Test func twoHundredConnectionsLeaveNothingBehind() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        // The least of twenty rounds each: what ends by itself, a moment after its round, is missing in one of them.
        let most = Usage(descriptors: .max, threads: .max, residentKiB: .max)
        var (begin, end) = (most, most)
        for round in 0..<200 {
            var peers: [SwiftPeer] = []
            for _ in 0..<2 {
                peers.append(
                    try await SwiftPeer.connect(server, channel: "cycle", role: .sendrecv) { configuration in
                        configuration.audioEnabled = false
                        configuration.videoEnabled = false
                        configuration.dataChannelSignaling = true
                        configuration.dataChannels = [["label": "#c", "direction": "sendrecv"]]
                    })
            }
            for peer in peers { try await peer.opened("#c") }
            let bytes = SwiftPeer.bytes(1000 + round)
            try await peers[0].send("#c", bytes)
            #expect(try await peers[1].message("#c") == bytes)
            for peer in peers { try await peer.leave() }
            switch round {
            case 20..<40: begin.lower(to: .now())
            case 180...: end.lower(to: .now())
            default: break
            }
        }
        #expect(end.descriptors <= begin.descriptors + 2, "before: \(begin); after: \(end)")
        #expect(end.threads <= begin.threads + 4, "before: \(begin); after: \(end)")
        #expect(end.residentKiB <= begin.residentKiB + 12_000, "before: \(begin); after: \(end)")
    }
}
