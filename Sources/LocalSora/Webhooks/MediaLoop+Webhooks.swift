import SoraMessages
import SoraNetwork
import SoraWire

// What happens in channels, for webhooks, counters and timed faults.

extension MediaLoop {
    private static let listedConnections = 1000

    func counts(channelID: String) -> ChannelCounts { channels[channelID]?.counts ?? ChannelCounts() }

    /// A connection got its offer.
    func admitted(_ admission: Admission, to channel: Channel, now: Instant) {
        let id = admission.id
        watches[id] = ConnectionWatch(
            channelID: channel.id, clientID: admission.grant.clientID,
            client: SoraClientInformation(admission.connect), eventMetadata: admission.eventMetadata)
        if sessionWatches[channel.id] == nil {
            sessionWatches[channel.id] = SessionWatch(createdAt: now)
            counters.createdSessions += 1
            tell("session.created", channelID: channel.id, sessionBody(channel.sessionRecord(now: now)))
        }
    }

    /// Counts what the log is told.
    func note(_ event: ServerEvent, in channel: Channel) {
        switch event.kind {
        case .answered: answered(ConnectionID(event.connectionID))
        case .messageRelayed: counters.relayedMessages += 1
        case .messageDropped: counters.droppedMessages += 1
        case .rpc: counters.rpcCalls += 1
        case .protocolError: counters.protocolErrors += 1
        default: break
        }
    }

    func note(_ event: ConnectionEvent, in channel: Channel) {
        let id = ConnectionID(event.record.connectionID)
        let client = watches[id]?.client.type ?? "unknown"
        switch event.kind {
        case .created:
            counters.createdConnections += 1
            counters.setupMilliseconds += (loop.now - event.record.joinedAt).inMilliseconds
            counters.successfulClients[client, default: 0] += 1
            watches[id]?.isAnnounced = true
            list(event.record)
            beginFaults(of: id)
        case .updated: counters.updatedConnections += 1
        case .destroyed:
            counters.destroyedConnections += 1
            counters.durationSeconds += (loop.now - event.record.joinedAt).inSeconds
        case .failed:
            counters.failedConnections += 1
            counters.failedClients[client, default: 0] += 1
        case .spotlightFocused, .spotlightUnfocused: break
        }
        tell(event.webhookType, channelID: channel.id, eventBody(of: event))
    }

    private func list(_ record: ConnectionRecord) {
        let channelID = record.channelID
        guard sessionWatches[channelID]?.connections.count ?? .max < Self.listedConnections else { return }
        sessionWatches[channelID]?.connections.append(
            [
                "connection_id": .string(record.connectionID), "client_id": .string(record.grant.clientID),
                "bundle_id": .string(record.grant.bundleID), "role": record.grant.role.json,
            ])
    }

    func sessionEnded(_ channel: Channel) {
        guard let watch = sessionWatches.removeValue(forKey: channel.id) else { return }
        counters.destroyedSessions += 1
        let now = loop.now
        let record = channel.sessionRecord(now: now)
        var body = sessionBody(record)
        body["destroyed_time"] = .integer(Int64(settings.wallClock(now)))
        body["destroyed_timestamp"] = .string(settings.timestamp(now))
        body["max_connections"] = record.maximumConnections.json
        body["total_connections"] = record.totalConnections.json
        body["connections"] = .array(watch.connections)
        body.set("session_metadata", watch.metadata)
        tell("session.destroyed", channelID: channel.id, body)
    }

    /// The session webhook may set the channel's filters.
    func sessionAnswered(_ answer: JSONObject, channelID: String) {
        guard let channel = channels[channelID] else { return }
        startRecording(asked: answer, in: channel)
        if let metadata = answer["session_metadata"] { sessionWatches[channelID]?.metadata = metadata }
        let list = answer["forwarding_filters"].flatMap { [ForwardingFilter](json: $0) }
        let single = answer["forwarding_filter"].flatMap { ForwardingFilter(json: $0) }.map { [$0] }
        let filters = list ?? single ?? []
        for filter in filters.prefix(ConnectMessage.maximumForwardingFilters) {
            try? channel.createForwardingFilter(filter, connection: nil, now: loop.now)
        }
        flush(channel)
    }

    // MARK: Bodies

    func tell(_ type: String, channelID: String, _ body: @autoclosure () -> JSONObject) {
        guard tellsWebhooks else { return }
        let notice = WebhookNotice(type: type, channelID: channelID, body: body())
        toFront { $0.deliver(notice) }
    }

    private func sessionBody(_ record: SessionRecord) -> JSONObject {
        [
            "multistream": true, "spotlight": .bool(record.isSpotlight), "session_id": .string(record.sessionID),
            "created_time": .integer(Int64(record.createdTime)),
            "created_timestamp": .string(settings.timestamp(wallClock: record.createdTime)),
        ]
    }

    private func eventBody(of event: ConnectionEvent) -> JSONObject {
        let (record, grant, now) = (event.record, event.record.grant, loop.now)
        var data: JSONObject = [
            "created_time": .integer(Int64(record.createdTime)),
            "created_timestamp": .string(settings.timestamp(wallClock: record.createdTime)),
            "audio": .bool(grant.audio), "audio_codec_type": .string(grant.audioCodec), "video": .bool(grant.video),
            "video_codec_type": .string(grant.videoCodec), "video_bit_rate": grant.videoBitRate.json,
            "minutes": record.minutes.json, "total_sent_bytes": Int(clamping: record.sentBytes).json,
            "total_received_bytes": Int(clamping: record.receivedBytes).json, "turn_transport_type": "udp",
            "ice_connection_state": [
                "total_checking_duration_ms": .integer(Int64(record.checkingTime.inMilliseconds)),
                "total_disconnected_duration_ms": .integer(Int64(record.disconnectedTime.inMilliseconds)),
            ],
        ]
        data.set("audio_bit_rate", grant.audioBitRate)
        record.counts.add(to: &data)
        switch event.kind {
        case .destroyed:
            data["destroyed_time"] = .integer(Int64(settings.wallClock(now)))
            data["destroyed_timestamp"] = .string(settings.timestamp(now))
            data["reason"] = (event.reason ?? "CONNECTION-LOST").json
            data.set("type_disconnect_reason", event.clientReason)
            data.set("disconnect_api_reason", event.apiReason)
        case .failed: data["message"] = (event.reason ?? "the client went before its connection was up").json
        default: break
        }
        data.set("fixed", event.isFixed)
        var body: JSONObject = [
            "multistream": true, "simulcast": .bool(grant.simulcast), "spotlight": .bool(grant.spotlight),
            "role": grant.role.json, "session_id": .string(record.sessionID), "client_id": .string(grant.clientID),
            "bundle_id": .string(grant.bundleID), "connection_id": .string(record.connectionID), "data": .object(data),
        ]
        body.set("event_metadata", watches[ConnectionID(record.connectionID)]?.eventMetadata)
        return body
    }
}

extension ConnectionEvent {
    /// `type` of the event webhook.
    var webhookType: String {
        switch kind {
        case .created, .updated, .destroyed, .failed: "connection.\(kind.rawValue)"
        case .spotlightFocused: NotifyMessage.Event.spotlightFocused
        case .spotlightUnfocused: NotifyMessage.Event.spotlightUnfocused
        }
    }
}
