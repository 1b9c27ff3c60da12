import Foundation

// usage: SoraBenchmarks [seconds] [connect|throughput|rtt|rss|layers|first-picture|forward|all-to-all|idle …]
// Without names the four that peers measure too. scripts/bench.sh runs peers in the same session and
// prints ratios. The last three start servers of their own, for 10 seconds each if none are given: `sora`
// from beside this program, and Janus if it is installed.
let words = CommandLine.arguments.dropFirst()
let seconds = words.compactMap { Double($0) }.first ?? 3
let names = Set(words.filter { Double($0) == nil })
let comparable: Set<String> = ["connect", "throughput", "rtt", "rss"]
if names.contains("layers") { try await LayerBenchmark.run() }
#if Media
if names.contains("first-picture") { try await FirstPictureBenchmark.run() }
#endif
let loads: Set<String> = ["forward", "all-to-all", "idle"]
if !names.isDisjoint(with: loads) {
    let load = try ForwardingLoad(seconds: words.compactMap { Double($0) }.first ?? 10)
    defer { load.close() }
    if names.contains("forward") { try await load.forward() }
    if names.contains("all-to-all") { try await load.allToAll() }
    if names.contains("idle") { try await load.idle() }
}
let chosen = names.isEmpty ? comparable : names.intersection(comparable)
if !chosen.isEmpty { try await DataChannelBenchmark.run(seconds: seconds, only: chosen) }
