/// The single layers, without a network: what a change of one of them moves.
enum LayerBenchmark {
    static func run() async throws {
        for size in [1024, 16_384, 65_536, 262_144] {
            for ordered in [true, false] {
                let result = SCTPBenchmark.run(messageSize: size, ordered: ordered)
                Report.emit(
                    "sctp-one-core",
                    ["size": Double(size), "unordered": ordered ? 0 : 1, "mbps": result.megabitsPerSecond])
            }
        }
        let dtls = try DTLSBenchmark.run()
        Report.emit("dtls", ["handshake": dtls.handshake, "certificate": dtls.certificate, "record": dtls.record])
        let rtp = try RTPBenchmark.run()
        Report.emit(
            "rtp",
            [
                "header_parse_ns": rtp.headerParse, "forward_ns": rtp.forward,
                "forward_with_extensions_ns": rtp.forwardWithExtensions,
            ])
        let udp = try await UDPBenchmark.run(burst: 32)
        Report.emit("udp", ["burst": 32, "packets_per_s": udp.packetsPerSecond])
    }
}
