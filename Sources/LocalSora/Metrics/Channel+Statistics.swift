import SoraMessages
import SoraPeer
import SoraSCTP
import SoraSDP
import SoraWire

// Statistics of connections and tracks, as JSON.

extension Channel {
    func sessionObject(now: Instant) -> JSONValue {
        let record = sessionRecord(now: now)
        var object: JSONObject = [
            "channel_id": .string(id), "session_id": .string(record.sessionID), "multistream": true,
            "spotlight": .bool(record.isSpotlight), "created_time": .integer(Int64(record.createdTime)),
            "max_connections": record.maximumConnections.json, "total_connections": record.totalConnections.json,
            "connections": .array(connectionRecords(now: now).map(\.object.json)),
        ]
        record.counts.add(to: &object)
        object.set("recording_id", recording?.id)
        return .object(object)
    }

    func statisticsObjects(now: Instant, where matches: (ConnectionRecord) -> Bool = { _ in true }) -> [JSONValue] {
        zip(connectionRecords(now: now), statistics(now: now)).filter { matches($0.0) }.map {
            statisticsObject($0.0, $0.1, now: now)
        }
    }

    /// Counters of one connection: in total, per track and per data channel.
    func statisticsObject(_ record: ConnectionRecord, _ statistics: ConnectionStatistics, now: Instant) -> JSONValue {
        var object = JSONObject()
        if case .object(let own) = record.object.json { object = own }
        object["timestamp"] = .string(settings.timestamp(now))
        object.set("connected_seconds", record.connectedAt.map { (now - $0).inSeconds })
        object["websocket_is_open"] = .bool(record.webSocketIsOpen)
        object["is_switched"] = .bool(record.isSwitched)
        object["is_focused"] = .bool(record.isFocused)
        object["total_received_bytes"] = Int(clamping: record.receivedBytes).json
        object["total_sent_bytes"] = Int(clamping: record.sentBytes).json
        object["messages_received"] = Int(clamping: statistics.messagesReceived).json
        object["messages_sent"] = Int(clamping: statistics.messagesSent).json
        object["rejected_packets"] = Int(clamping: statistics.peer.rejectedPackets).json
        object["unroutable_packets"] = Int(clamping: statistics.peer.unroutablePackets).json
        object.set("sora_client", record.connect.soraClient)
        object.set("available_bit_rate", statistics.availableBitrate ?? statistics.peer.availableBitrate)
        object["sent_tracks"] = .array(statistics.sent.map(\.json))
        object["received_tracks"] = .array(statistics.received.map(\.json))
        object["inbound_rtp"] = .array(statistics.peer.inbound.map(\.json))
        object["outbound_rtp"] = .array(statistics.peer.outbound.map(\.json))
        object["data_channels"] = .array(dataChannelObjects(of: ConnectionID(record.connectionID)))
        return .object(object)
    }

    private func dataChannelObjects(of id: ConnectionID) -> [JSONValue] {
        guard let member = members[id] else { return [] }
        return member.dataChannels.values.sorted { $0.definition.label < $1.definition.label }.map { channel in
            [
                "label": .string(channel.definition.label), "id": Int(channel.stream.rawValue).json,
                "state": channel.isClosed ? "closed" : channel.isOpen ? "open" : "connecting",
                "buffered_amount": member.peer.bufferedAmount(of: channel.stream).json,
            ]
        }
    }
}

extension ConnectionRecord {
    /// What the client last reported of itself.
    var clientStatistics: JSONValue {
        [
            "channel_id": .string(channelID), "client_id": .string(grant.clientID),
            "connection_id": .string(connectionID), "rtc_stats": clientStats ?? [],
        ]
    }
}

extension ConnectionStatistics.Sent {
    fileprivate var json: JSONValue {
        var object: JSONObject = ["kind": .string(kind), "receivers": subscribers.json]
        object.set("codec", codec)
        object["layers"] = .array(
            layers.map { layer in
                var object: JSONObject = [
                    "active": .bool(layer.isActive), "packets": Int(clamping: layer.packets).json,
                    "bit_rate": layer.bitrate.json, "key_frame_requests": layer.keyFrameRequests.json,
                ]
                object.set("rid", layer.rid)
                return .object(object)
            })
        return .object(object)
    }
}

extension ConnectionStatistics.Received {
    fileprivate var json: JSONValue {
        [
            "sender_connection_id": .string(senderConnectionID), "kind": .string(kind), "rid": .string(rid),
            "packets": Int(clamping: packets).json, "bytes": Int(clamping: bytes).json,
            "layer_switches": layerSwitches.json, "blocked": .bool(isBlocked), "paused": .bool(isPaused),
            "limited_by_bandwidth": .bool(isLimitedByBandwidth),
        ]
    }
}

extension PeerStatistics.Inbound {
    fileprivate var json: JSONValue {
        var object: JSONObject = [
            "kind": .string("\(kind)"), "ssrc": .integer(Int64(ssrc.rawValue)),
            "packets_received": Int(clamping: packetsReceived).json,
            "bytes_received": Int(clamping: bytesReceived).json, "packets_lost": Int(clamping: packetsLost).json,
            "jitter": .double(jitter), "retransmitted_packets": Int(clamping: retransmittedPackets).json,
            "nack_count": nackCount.json, "key_frame_requests": keyFrameRequests.json,
        ]
        object.set("mid", mid?.rawValue)
        object.set("rid", rid?.rawValue)
        object.set("codec", codec?.name)
        return .object(object)
    }
}

extension PeerStatistics.Outbound {
    fileprivate var json: JSONValue {
        var object: JSONObject = [
            "kind": .string("\(kind)"), "ssrc": .integer(Int64(ssrc.rawValue)),
            "packets_sent": Int(clamping: packetsSent).json, "bytes_sent": Int(clamping: bytesSent).json,
            "retransmitted_packets": Int(clamping: retransmittedPackets).json, "nack_count": nackCount.json,
            "key_frame_requests": keyFrameRequests.json,
        ]
        object.set("mid", mid?.rawValue)
        object.set("codec", codec?.name)
        object.set("round_trip_time", roundTripTime?.inSeconds)
        object.set("packets_lost", packetsLost)
        object.set("fraction_lost", fractionLost)
        object.set("jitter", jitter)
        return .object(object)
    }
}
