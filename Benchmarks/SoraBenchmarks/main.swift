import Foundation

// usage: SoraBenchmarks [seconds] [connect|throughput|rtt|rss|layers …]
// Without names the four that peers measure too. scripts/bench.sh runs peers in the same session and
// prints ratios.
let words = CommandLine.arguments.dropFirst()
let seconds = words.compactMap { Double($0) }.first ?? 3
let names = Set(words.filter { Double($0) == nil })
let comparable: Set<String> = ["connect", "throughput", "rtt", "rss"]
if names.contains("layers") { try await LayerBenchmark.run() }
let chosen = names.isEmpty ? comparable : names.intersection(comparable)
if !chosen.isEmpty { try await DataChannelBenchmark.run(seconds: seconds, only: chosen) }
