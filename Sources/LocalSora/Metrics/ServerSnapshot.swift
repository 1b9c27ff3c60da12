import SoraMessages
import SoraNetwork
import SoraWire

/// Sums over all loops at one moment.
struct ServerSnapshot: Sendable {
    var loops = LoopCounters()
    var front = FrontCounters()
    var channels = 0
    var connections = ChannelCounts()
    var sockets = 0
    var auth = Webhooks.Counts()
    var session = Webhooks.Counts()
    var event = Webhooks.Counts()
    var uptime = 0.0
    var version = ""

    /// The counters that Sora's exporter reads (spec/signaling.md 9.2).
    var report: JSONValue {
        let created = loops.createdConnections
        func average(_ sum: Double, _ count: Int) -> JSONValue { .integer(count > 0 ? Int64(sum / Double(count)) : 0) }
        var report: JSONObject = [
            "version": .string(version), "total_connection_created": created.json,
            "total_connection_updated": loops.updatedConnections.json,
            "total_connection_destroyed": loops.destroyedConnections.json,
            "total_successful_connections": created.json, "total_ongoing_connections": connections.connections.json,
            "total_failed_connections": loops.failedConnections.json,
            "total_duration_sec": Int(loops.durationSeconds).json, "total_turn_udp_connections": created.json,
            "total_turn_tcp_connections": 0,
            "average_duration_sec": average(loops.durationSeconds, loops.destroyedConnections),
            "average_setup_time_msec": average(loops.setupMilliseconds, created),
            "total_session_created": loops.createdSessions.json,
            "total_session_destroyed": loops.destroyedSessions.json, "total_received_invalid_turn_tcp_packet": 0,
            "total_auth_webhook_allowed": front.webhookPermissions.json,
            "total_auth_webhook_denied": front.webhookDenials.json,
            "total_successful_auth_webhook": auth.successful.json, "total_failed_auth_webhook": auth.failed.json,
        ]
        for (name, counts) in [("session", session), ("event", event)] {
            report["total_successful_\(name)_webhook"] = counts.successful.json
            report["total_failed_\(name)_webhook"] = counts.failed.json
            report["total_ignored_\(name)_webhook"] = counts.ignored.json
        }
        for name in ["successful", "failed", "ignored"] { report["total_\(name)_stats_webhook"] = 0 }
        for (name, traffic) in [
            ("received_srtp", loops.received.srtp), ("sent_srtp", loops.sent.srtp),
            ("received_sctp", loops.received.sctp), ("sent_sctp", loops.sent.sctp),
        ] {
            report["total_\(name)"] = traffic.packets.json
            report["total_\(name)_byte_size"] = traffic.bytes.json
        }
        report["total_decrypted_srtp"] = loops.channels.decrypted.packets.json
        report["total_decrypted_srtp_byte_size"] = loops.channels.decrypted.bytes.json
        report["total_sent_srtp_sfu_delay_us"] = loops.forwardingDelayMicroseconds.json
        report["total_received_datagrams"] = loops.received.all.packets.json
        report["total_received_datagram_byte_size"] = loops.received.all.bytes.json
        report["total_sent_datagrams"] = loops.sent.all.packets.json
        report["total_sent_datagram_byte_size"] = loops.sent.all.bytes.json
        var successful = JSONObject()
        var failed = JSONObject()
        for type in SoraClientInformation.types.map(\.1) + ["unknown"] {
            successful[type] = (loops.successfulClients[type] ?? 0).json
            failed[type] = (loops.failedClients[type] ?? 0).json
        }
        report["sora_client"] = [
            "total_successful_sora_client_type": .object(successful), "total_failed_sora_client_type": .object(failed),
        ]
        report["error"] = [
            "sdp_generation_error": loops.channels.descriptionFailures.json,
            "signaling_error": loops.protocolErrors.json,
        ]
        // There is no Erlang virtual machine and no cluster. Whoever reads these fields finds their types: the first
        // two are objects of numbers, the last has an entry for each other node.
        report["erlang_vm"] = [:]
        report["cluster"] = [:]
        report["cluster_relay"] = []
        return .object(report)
    }

    /// Prometheus text format 0.0.4.
    var prometheus: String {
        var text = ""
        func metric(_ name: String, _ type: String, _ help: String, _ samples: [(String, Double)]) {
            text += "# HELP sora_\(name) \(help)\n# TYPE sora_\(name) \(type)\n"
            for (labels, value) in samples {
                let number = value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
                text += "sora_\(name)\(labels.isEmpty ? "" : "{\(labels)}") \(number)\n"
            }
        }
        func counter(_ name: String, _ help: String, _ value: Int) {
            metric(name, "counter", help, [("", Double(value))])
        }
        func gauge(_ name: String, _ help: String, _ value: Int) { metric(name, "gauge", help, [("", Double(value))]) }

        // Backslash, quote and line feed are escaped in label values (exposition format 0.0.4).
        let escaped = version.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
        metric("build_info", "gauge", "The version that clients are told.", [("version=\"\(escaped)\"", 1)])
        metric("uptime_seconds", "gauge", "Seconds since the start.", [("", uptime)])
        gauge("channels", "Channels with a connection.", channels)
        metric(
            "connections", "gauge", "Connections that are up.",
            [
                ("role=\"sendrecv\"", Double(connections.sendrecv)),
                ("role=\"sendonly\"", Double(connections.sendonly)),
                ("role=\"recvonly\"", Double(connections.recvonly)),
            ])
        gauge("tcp_sockets", "Open TCP connections.", sockets)
        counter("tcp_sockets_accepted_total", "TCP connections accepted.", front.acceptedSockets)
        counter("tcp_sockets_refused_total", "TCP connections closed at once for a limit.", front.refusedSockets)
        counter("http_requests_total", "HTTP requests.", front.httpRequests)
        counter("api_calls_total", "Calls of the HTTP API.", front.apiCalls)
        counter("api_calls_failed_total", "Calls of the HTTP API answered with an error.", front.failedAPICalls)
        counter("connects_refused_total", "Connect messages refused.", front.refusedConnects)
        counter("connections_created_total", "Connections that came up.", loops.createdConnections)
        counter("connections_destroyed_total", "Connections that ended.", loops.destroyedConnections)
        counter("connections_failed_total", "Connections that never came up.", loops.failedConnections)
        metric(
            "connection_setup_seconds_total", "counter", "Time from connect to being up, over all connections.",
            [("", loops.setupMilliseconds / 1000)])
        metric(
            "connection_duration_seconds_total", "counter", "Duration of all connections that ended.",
            [("", loops.durationSeconds)])
        counter("sessions_created_total", "Channels that got their first connection.", loops.createdSessions)
        counter("sessions_destroyed_total", "Channels that lost their last connection.", loops.destroyedSessions)
        counter("udp_received_packets_total", "Datagrams received.", loops.received.all.packets)
        counter("udp_received_bytes_total", "Bytes in datagrams received.", loops.received.all.bytes)
        counter("udp_sent_packets_total", "Datagrams sent.", loops.sent.all.packets)
        counter("udp_sent_bytes_total", "Bytes in datagrams sent.", loops.sent.all.bytes)
        counter("udp_unknown_packets_total", "Datagrams from nobody known, dropped.", loops.unknownPackets)
        counter("srtp_decrypted_packets_total", "SRTP packets that were authentic.", loops.channels.decrypted.packets)
        metric(
            "srtp_forwarding_delay_seconds_total", "counter",
            "Time from receipt to the end of handling, over all SRTP packets that were sent on.",
            [("", Double(loops.forwardingDelayMicroseconds) / 1e6)])
        counter("messages_relayed_total", "Data channel messages relayed.", loops.relayedMessages)
        counter("messages_dropped_total", "Data channel messages dropped.", loops.droppedMessages)
        counter("rpc_calls_total", "JSON-RPC calls.", loops.rpcCalls)
        counter("protocol_errors_total", "Messages of clients that could not be used.", loops.protocolErrors)
        var hooks: [(String, Double)] = []
        for (name, counts) in [("auth", auth), ("session", session), ("event", event)] {
            hooks.append(("hook=\"\(name)\",result=\"successful\"", Double(counts.successful)))
            hooks.append(("hook=\"\(name)\",result=\"failed\"", Double(counts.failed)))
            hooks.append(("hook=\"\(name)\",result=\"ignored\"", Double(counts.ignored)))
        }
        metric("webhooks_total", "counter", "Webhook requests.", hooks)
        return text
    }
}

extension MediaLoop {
    /// Adds this loop's part.
    func add(to snapshot: ServerSnapshot) -> ServerSnapshot {
        var snapshot = snapshot
        snapshot.loops = snapshot.loops + counters
        snapshot.channels += channels.count
        for channel in channels.values {
            snapshot.loops.channels = snapshot.loops.channels + channel.totals
            let counts = channel.counts
            snapshot.connections.connections += counts.connections
            snapshot.connections.sendrecv += counts.sendrecv
            snapshot.connections.sendonly += counts.sendonly
            snapshot.connections.recvonly += counts.recvonly
        }
        return snapshot
    }
}

extension SignalingFront {
    func snapshot() async -> ServerSnapshot {
        var snapshot = ServerSnapshot()
        for media in mediaLoops { snapshot = await media.add(to: snapshot) }
        snapshot.front = counters
        snapshot.sockets = openSockets
        snapshot.auth = webhooks?.authCounts ?? .init()
        snapshot.session = webhooks?.sessionCounts ?? .init()
        snapshot.event = webhooks?.eventCounts ?? .init()
        snapshot.uptime = (loop.now - startedAt).inSeconds
        snapshot.version = settings.version
        return snapshot
    }

    func statisticsReport() async -> JSONValue { await snapshot().report }

    /// Everything about every connection.
    func statistics() async -> JSONValue {
        let report = await statisticsReport()
        var connections: [JSONValue] = []
        for media in mediaLoops {
            for part in await media.withAllChannels({ channel, now in
                channel.statisticsObjects(now: now)
            }) {
                connections += part
            }
        }
        return ["server": report, "connections": .array(connections)]
    }
}
