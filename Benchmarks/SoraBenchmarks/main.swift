import Foundation

// usage: SoraBenchmarks [seconds] [connect|throughput|rtt|rss …]
// Without names all of them run. scripts/bench.sh runs peers in the same session and prints ratios.
let words = CommandLine.arguments.dropFirst()
let seconds = words.compactMap { Double($0) }.first ?? 3
let names = Set(words.filter { Double($0) == nil })
let all: Set<String> = ["connect", "throughput", "rtt", "rss"]
try await DataChannelBenchmark.run(seconds: seconds, only: names.isEmpty ? all : names)
