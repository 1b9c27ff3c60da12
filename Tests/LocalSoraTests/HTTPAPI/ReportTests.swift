@testable import LocalSora
import SoraMessages
import SoraPeer
import SoraWire
import Testing

/// `GetStatsReport` (spec/signaling.md 9.2).
@Suite("Statistics report", .serialized, .leavesNoObjects) struct ReportTests {
    /// The integers that 9.2 lists.
    private static let counters: Set<String> = [
        "total_connection_created", "total_connection_updated", "total_connection_destroyed",
        "total_successful_connections", "total_ongoing_connections", "total_failed_connections", "total_duration_sec",
        "total_turn_udp_connections", "total_turn_tcp_connections", "average_duration_sec", "average_setup_time_msec",
        "total_session_created", "total_session_destroyed", "total_received_invalid_turn_tcp_packet",
        "total_auth_webhook_allowed", "total_auth_webhook_denied", "total_successful_auth_webhook",
        "total_successful_session_webhook", "total_successful_event_webhook", "total_successful_stats_webhook",
        "total_failed_auth_webhook", "total_failed_session_webhook", "total_failed_event_webhook",
        "total_failed_stats_webhook", "total_ignored_session_webhook", "total_ignored_event_webhook",
        "total_ignored_stats_webhook", "total_received_srtp", "total_sent_srtp", "total_received_srtp_byte_size",
        "total_sent_srtp_byte_size", "total_sent_srtp_sfu_delay_us", "total_decrypted_srtp",
        "total_decrypted_srtp_byte_size", "total_received_sctp", "total_sent_sctp", "total_received_sctp_byte_size",
        "total_sent_sctp_byte_size",
    ]
    /// Beyond 9.2.
    private static let additions: Set<String> = [
        "total_received_datagrams", "total_received_datagram_byte_size", "total_sent_datagrams",
        "total_sent_datagram_byte_size",
    ]
    private static let clients: Set<String> = [
        "sora_js_sdk", "sora_python_sdk", "sora_cpp_sdk", "sora_ios_sdk", "sora_android_sdk", "sora_c_sdk",
        "sora_flutter_sdk", "sora_unity_sdk", "unknown",
    ]

    @Test func hasTheKeysOfTheSpecificationAndNoOthers() async throws {
        try await withServer { server in
            let report = try #require(await server.call("Sora_20171010.GetStatsReport").json.objectValue)
            let numbers = Self.counters.union(Self.additions)
            #expect(
                Set(report.keys)
                    == numbers.union(["version", "sora_client", "error", "erlang_vm", "cluster", "cluster_relay"]))
            for key in numbers { #expect(report[key]?.intValue == 0, "\(key)") }
            #expect(report["version"]?.stringValue?.isEmpty == false)
            let clients = try #require(report["sora_client"]?.objectValue)
            #expect(Set(clients.keys) == ["total_failed_sora_client_type", "total_successful_sora_client_type"])
            for key in clients.keys {
                let types = try #require(clients[key]?.objectValue)
                #expect(Set(types.keys) == Self.clients)
                for type in types.keys { #expect(types[type]?.intValue == 0) }
            }
            #expect(report["error"] == ["sdp_generation_error": 0, "signaling_error": 0])
            #expect(report["erlang_vm"] == [:])
            #expect(report["cluster"] == [:])
            #expect(report["cluster_relay"] == [])
        }
    }

    /// Over real sockets: what was decrypted and how long forwarding took, and that it stays counted.
    @Test func countsMediaThatIsForwarded() async throws {
        try await withServer { server in
            try await withClient { receiver in
                try await receiver.join(server.signalingURL, ChannelHarness.connect(.recvonly))
                #expect(await receiver.isUp())
                try await withClient { sender in
                    try await sender.join(server.signalingURL, ChannelHarness.connect(.sendonly))
                    #expect(await sender.isUp())
                    #expect(await server.waitForEvent(.forwardingStarted, count: 2, within: .seconds(30)) != nil)
                    // Until something arrives: the first packets may come before the way is open.
                    var arrived = false
                    for _ in 0..<100 where !arrived {
                        await sender.play(3)
                        arrived = await receiver.wait(.milliseconds(200)) { $0.peer?.received.isEmpty == false }
                    }
                    #expect(arrived)
                    let report = try await self.report(of: server)
                    let decrypted = report["total_decrypted_srtp"]?.intValue ?? 0
                    let received = report["total_received_srtp"]?.intValue ?? 0
                    #expect(decrypted > 0 && decrypted <= received, "\(decrypted) of \(received)")
                    // Authentication takes 10 bytes and more of each.
                    let bytes = report["total_decrypted_srtp_byte_size"]?.intValue ?? 0
                    let raw = report["total_received_srtp_byte_size"]?.intValue ?? 0
                    #expect(bytes > 12 * decrypted && bytes <= raw - 10 * decrypted, "\(bytes) of \(raw)")
                    let delay = report["total_sent_srtp_sfu_delay_us"]?.intValue ?? 0
                    #expect(delay > 0)
                    // In all less than the packets' number times the time that the server has run.
                    let sent = report["total_sent_srtp"]?.intValue ?? 0
                    #expect(delay < sent * 60_000_000)
                }
                _ = try await server.call("Sora_20151104.DisconnectChannel", ["channel_id": "sora"])
                #expect(await server.waitForEvent(.left, count: 2) != nil)
                let before = try await report(of: server)["total_decrypted_srtp"]?.intValue ?? 0
                #expect(before > 0)
            }
        }
    }

    private func report(of server: SoraServer) async throws -> JSONObject {
        try #require(await server.call("Sora_20171010.GetStatsReport").json.objectValue)
    }

    @Test func forgedMediaIsNotCountedAsDecrypted() throws {
        let harness = try ChannelHarness()
        let sender = try harness.joined(ChannelHarness.connect(.sendonly))
        harness.play([MediaSource(sender)], for: .milliseconds(300))
        let before = harness.channel.totals
        #expect(before.decrypted.packets > 0)
        harness.perform { channel, now in
            for length in [20, 40, 1000] {
                channel.handle(
                    Datagram(
                        socket: SocketID(0), remote: sender.address,
                        payload: [0x80, 0x60] + [UInt8](repeating: 7, count: length)), for: sender.id, now: now)
            }
        }
        #expect(harness.channel.totals == before)
        // What was counted outlives the connection.
        harness.perform { $0.disconnect(sender.id, code: 1000, reason: "X", now: $1) }
        harness.run(for: .seconds(5))
        #expect(harness.channel.isEmpty)
        #expect(harness.channel.totals.decrypted.packets >= before.decrypted.packets)
    }

    @Test func offersThatCannotBeMadeAreCounted() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.connect(.recvonly) { $0.dataChannelSignaling = false })
        #expect(harness.channel.totals.descriptionFailures == 0)
        harness.perform { channel, now in
            guard let member = channel.members[client.id] else { return }
            // No state of a client leads here; a closed peer connection makes no offers.
            member.peer.close(now: now)
            channel.renegotiate(member, now: now)
        }
        #expect(harness.channel.totals.descriptionFailures == 1)
        #expect(client.closeFrames.map(\.reason) == ["INTERNAL-ERROR"])
        var snapshot = ServerSnapshot()
        snapshot.loops.channels = harness.channel.totals
        #expect(
            snapshot.report.objectValue?["error"] == ["sdp_generation_error": 1, "signaling_error": 0])
    }
}
