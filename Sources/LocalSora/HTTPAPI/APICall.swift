import SoraMessages
import SoraWire

/// A call of the HTTP API (spec/signaling.md 9.2).
enum APICall: Sendable {
    typealias OnChannel = @Sendable (Channel, APIParameters, Instant) throws(OperationError) -> JSONValue

    /// Works on the channel that `channel_id` names.
    case channel(OnChannel)
    /// As `channel`; a channel that does not exist has this to say.
    case channelOr(JSONValue, OnChannel)
    /// Asks every channel; the answer is all their items.
    case everyChannel(@Sendable (Channel, Instant) -> [JSONValue])
    /// Works on the server.
    case server(@Sendable (isolated SignalingFront, APIParameters) async throws(APIError) -> JSONValue)

    static let all: [String: APICall] = {
        var calls: [String: APICall] = [:]
        for group in [listing, ending, pushing, media, spotlight, metadata, filters, recording, statistics, faults] {
            calls.merge(group) { _, new in new }
        }
        for (target, reason) in unsupported {
            calls[target] = .server { _, _ throws(APIError) in throw APIError("NOT-SUPPORTED", reason) }
        }
        return calls
    }()

    /// Calls of the commercial server that make no sense here, each with why.
    static let unsupported: [String: String] = [
        "Sora_20221221.StartAudioStreaming": noAudioStreaming, "Sora_20221221.StopAudioStreaming": noAudioStreaming,
        "Sora_20221221.SubscribeAudioStreamingResultPush": noAudioStreaming,
        "Sora_20221221.UnsubscribeAudioStreamingResultPush": noAudioStreaming,
        "Sora_20230628.ListAudioStreamingResultPushState": noAudioStreaming,
        "Sora_20171218.GetLicense": noLicense, "Sora_20171218.UpdateLicense": noLicense,
        "Sora_20211215.ListClusterNodes": noCluster, "Sora_20221221.InitCluster": noCluster,
    ]
    private static let noAudioStreaming = "the local server streams no sound to speech recognition"
    private static let noLicense = "the local server needs no license"
    private static let noCluster = "the local server is a single node"

    // MARK: Groups

    private static let listing: [String: APICall] = [
        "Sora_20201013.ListConnections": .everyChannel { channel, now in
            channel.connectionRecords(now: now).map(\.object.json)
        },
        "Sora_20201013.ListChannelConnections": .channelOr([]) { channel, _, now in
            .array(channel.connectionRecords(now: now).map(\.object.json))
        },
        "Sora_20201013.ListChannels": .everyChannel { channel, _ in
            [["channel_id": .string(channel.id), "multistream": true, "spotlight": .bool(channel.isSpotlight)]]
        },
        "Sora_20231220.ListSessions": .everyChannel { channel, now in [channel.sessionObject(now: now)] },
        "Sora_20231220.GetSession": .channel { channel, _, now in channel.sessionObject(now: now) },
    ]

    private static let ending: [String: APICall] = [
        "Sora_20151104.DisconnectChannel": .channel { channel, parameters, now throws(OperationError) in
            try channel.disconnect(.everyone, reason: parameters.object["reason"], now: now)
            return parameters.echo("channel_id")
        },
        "Sora_20151104.DisconnectClient": .channel { channel, parameters, now throws(OperationError) in
            let recipients = Recipients.client(try parameters.require("client_id"))
            try channel.disconnect(recipients, reason: parameters.object["reason"], now: now)
            return parameters.echo("channel_id", "client_id")
        },
        "Sora_20151104.DisconnectConnection": .channel { channel, parameters, now throws(OperationError) in
            let recipients = Recipients.connection(try parameters.require("connection_id"))
            try channel.disconnect(recipients, reason: parameters.object["reason"], now: now)
            return parameters.echo("channel_id", "connection_id")
        },
        "Sora_20201120.DisconnectChannelByRole": .channel { channel, parameters, now throws(OperationError) in
            let recipients = Recipients.role(try parameters.require("role"))
            try channel.disconnect(recipients, reason: parameters.object["reason"], now: now)
            return parameters.echo("channel_id", "role")
        },
        "Sora_20230628.TerminateSession": .channel { channel, parameters, now throws(OperationError) in
            let session = try channel.terminateSession(try parameters.optional("session_id"), now: now)
            return ["session_id": .string(session)]
        },
    ]

    private static let pushing: [String: APICall] = [
        "Sora_20160711.PushChannel": .channel { channel, parameters, now throws(OperationError) in
            try channel.push(try parameters.pushData(), to: .everyone, now: now)
            return [:]
        },
        "Sora_20160711.PushClient": .channel { channel, parameters, now throws(OperationError) in
            let client: String = try parameters.require("client_id")
            try channel.push(try parameters.pushData(), to: .client(client), now: now)
            return [:]
        },
        "Sora_20160711.PushConnection": .channel { channel, parameters, now throws(OperationError) in
            let connection: String = try parameters.require("connection_id")
            try channel.push(try parameters.pushData(), to: .connection(connection), now: now)
            return [:]
        },
        "Sora_20201120.PushChannelByRole": .channel { channel, parameters, now throws(OperationError) in
            let role: ConnectionRole = try parameters.require("role")
            try channel.push(try parameters.pushData(), to: .role(role), now: now)
            return [:]
        },
    ]

    private static let media: [String: APICall] = [
        "Sora_20241218.RequestKeyFrame": .channel { channel, parameters, now throws(OperationError) in
            try channel.requestKeyFrame(of: try parameters.require("connection_id"), now: now)
            return parameters.echo("channel_id", "connection_id")
        },
        "Sora_20251217.RequestSimulcastRid": .channel { channel, parameters, now throws(OperationError) in
            try channel.requestLayer(
                try parameters.layerWish(), receiver: try parameters.require("receiver_connection_id"),
                sender: try parameters.optional("sender_connection_id"), now: now)
            return parameters.echo("channel_id", "receiver_connection_id", "sender_connection_id", "rid")
        },
        "Sora_20201005.RequestRtpStream": .channel { channel, parameters, now throws(OperationError) in
            try channel.requestLayer(
                try parameters.layerWish(), receiver: try parameters.require("recv_connection_id"),
                sender: try parameters.optional("send_connection_id"), now: now)
            return parameters.echo("channel_id", "recv_connection_id", "send_connection_id", "rid")
        },
        "Sora_20200401.PauseRtpStream": setPaused(true), "Sora_20200401.ResumeRtpStream": setPaused(false),
    ]

    private static func setPaused(_ isPaused: Bool) -> APICall {
        .channel { channel, parameters, now throws(OperationError) in
            try channel.setPaused(
                isPaused, receiver: try parameters.require("recv_connection_id"),
                sender: try parameters.require("send_connection_id"), now: now)
            return parameters.echo("channel_id", "recv_connection_id", "send_connection_id")
        }
    }

    private static let spotlight: [String: APICall] = [
        "Sora_20211215.RequestSpotlightRid": .channel { channel, parameters, now throws(OperationError) in
            let rids = SpotlightRIDs(
                focus: try parameters.require("spotlight_focus_rid"),
                unfocus: try parameters.require("spotlight_unfocus_rid"))
            try channel.requestSpotlightLayers(
                rids, receiver: try parameters.require("recv_connection_id"),
                sender: try parameters.optional("send_connection_id"), now: now)
            return parameters.echo(
                "channel_id", "recv_connection_id", "send_connection_id", "spotlight_focus_rid",
                "spotlight_unfocus_rid")
        },
        "Sora_20211215.ResetSpotlightRid": .channel { channel, parameters, now throws(OperationError) in
            try channel.resetSpotlightLayers(
                receiver: try parameters.require("recv_connection_id"),
                sender: try parameters.optional("send_connection_id"), now: now)
            return parameters.echo("channel_id", "recv_connection_id", "send_connection_id")
        },
        "Sora_20211215.BatchRequestSpotlightRid": .channel { channel, parameters, now throws(OperationError) in
            try channel.requestSpotlightLayers(try parameters.spotlightRequests(), now: now)
            return .object(parameters.object)
        },
        "Sora_20200807.FocusSpotlight": .channel { channel, parameters, now throws(OperationError) in
            try channel.focusSpotlight(try parameters.require("connection_id"), isFixed: false, now: now)
            return parameters.echo("channel_id", "connection_id")
        },
        "Sora_20200807.FocusSpotlightFixed": .channel { channel, parameters, now throws(OperationError) in
            try channel.focusSpotlight(try parameters.require("connection_id"), isFixed: true, now: now)
            return parameters.echo("channel_id", "connection_id")
        },
        "Sora_20200807.UnfocusSpotlight": .channel { channel, parameters, now throws(OperationError) in
            try channel.unfocusSpotlight(try parameters.require("connection_id"), now: now)
            return parameters.echo("channel_id", "connection_id")
        },
        "Sora_20200807.ChangeSpotlightNumber": .channel { channel, parameters, now throws(OperationError) in
            try channel.setSpotlightNumber(try parameters.require("spotlight_number"), now: now)
            return parameters.echo("channel_id", "spotlight_number")
        },
    ]

    private static let metadata: [String: APICall] = [
        "Sora_20201124.PutSignalingNotifyMetadata": .channel { channel, parameters, now throws(OperationError) in
            try channel.putNotifyMetadata(
                try parameters.any("metadata"), of: try parameters.require("connection_id"),
                push: try parameters.optional("push") ?? false, now: now)
        },
        "Sora_20201124.PutSignalingNotifyMetadataItem": .channel { channel, parameters, now throws(OperationError) in
            try channel.putNotifyMetadataItem(
                key: try parameters.require("key"), value: try parameters.any("value"),
                of: try parameters.require("connection_id"), push: try parameters.optional("push") ?? false, now: now)
        },
    ]

    private static let filters: [String: APICall] = [
        "Sora_20230628.ListForwardingFilters": .channel { channel, parameters, _ throws(OperationError) in
            try channel.forwardingFilters(of: try parameters.optional("connection_id")).json
        },
        "Sora_20230628.CreateChannelForwardingFilter": createFilter(ofConnection: false),
        "Sora_20230628.UpdateChannelForwardingFilter": updateFilter(ofConnection: false),
        "Sora_20230628.DeleteChannelForwardingFilter": deleteFilter(ofConnection: false),
        "Sora_20230628.CreateConnectionForwardingFilter": createFilter(ofConnection: true),
        "Sora_20230628.UpdateConnectionForwardingFilter": updateFilter(ofConnection: true),
        "Sora_20230628.DeleteConnectionForwardingFilter": deleteFilter(ofConnection: true),
    ]

    private static func createFilter(ofConnection: Bool) -> APICall {
        .channel { channel, parameters, now throws(OperationError) in
            let connection: String? = ofConnection ? try parameters.require("connection_id") : nil
            try channel.createForwardingFilter(try parameters.filter(), connection: connection, now: now)
            return .object(parameters.object)
        }
    }

    private static func updateFilter(ofConnection: Bool) -> APICall {
        .channel { channel, parameters, now throws(OperationError) in
            let connection: String? = ofConnection ? try parameters.require("connection_id") : nil
            try channel.updateForwardingFilter(
                try parameters.filter(), expectedVersion: try parameters.optional("expected_version"),
                connection: connection, now: now)
            return .object(parameters.object)
        }
    }

    private static func deleteFilter(ofConnection: Bool) -> APICall {
        .channel { channel, parameters, now throws(OperationError) in
            let connection: String? = ofConnection ? try parameters.require("connection_id") : nil
            try channel.deleteForwardingFilter(
                named: try parameters.optional("name"), connection: connection, now: now)
            return .object(parameters.object)
        }
    }

    private static let recording: [String: APICall] = [
        "Sora_20231220.StartRecording": .channel { channel, parameters, now throws(OperationError) in
            let id = try channel.startRecording(
                try parameters.recordingRequest(), sessionID: try parameters.optional("session_id"), now: now)
            return ["channel_id": .string(channel.id), "recording_id": .string(id)]
        },
        "Sora_20231220.StopRecording": .channel { channel, parameters, now throws(OperationError) in
            let id = try channel.stopRecording(sessionID: try parameters.optional("session_id"), now: now)
            return ["channel_id": .string(channel.id), "recording_id": .string(id)]
        },
    ]

    private static let statistics: [String: APICall] = [
        "Sora_20170529.GetStatsConnection": .channel { channel, parameters, now throws(OperationError) in
            let id: String = try parameters.require("connection_id")
            return channel.statisticsObject(
                try channel.connectionRecord(id, now: now), try channel.statistics(of: id, now: now), now: now)
        },
        "Sora_20170529.GetStatsClient": .channel { channel, parameters, now throws(OperationError) in
            let client: String = try parameters.require("client_id")
            let found = channel.statisticsObjects(now: now) { $0.grant.clientID == client }
            guard !found.isEmpty else { throw .unknownClient(client) }
            return .array(found)
        },
        "Sora_20171101.GetStatsAllConnections": .everyChannel { channel, now in channel.statisticsObjects(now: now) },
        "Sora_20211215.GetRtcStats": .channel { channel, parameters, now throws(OperationError) in
            try channel.connectionRecord(try parameters.require("connection_id"), now: now).clientStatistics
        },
        "Sora_20211215.ListChannelRtcStats": .channelOr([]) { channel, _, now in
            .array(channel.connectionRecords(now: now).map(\.clientStatistics))
        },
        "Sora_20211215.ListRtcStats": .everyChannel { channel, now in
            channel.connectionRecords(now: now).map(\.clientStatistics)
        },
        "Sora_20171010.GetStatsReport": .server { front, _ in await front.statisticsReport() },
    ]

    private static let faults: [String: APICall] = [
        "LocalSora.InjectFault": .server { front, parameters throws(APIError) in
            let fault: Fault
            do throws(Fault.ParseError) {
                fault = try Fault(json: parameters.object)
            } catch {
                throw APIError("INVALID-PARAMETER", error.description)
            }
            guard let result = await front.inject(fault) else { throw APIError("TOO-MANY-FAULTS") }
            return ["fault_id": result.number.json, "connections": result.connections.json]
        },
        "LocalSora.ListFaults": .server { front, _ in .array(front.faults.entries.map(\.json)) },
        "LocalSora.RemoveFaults": .server { front, parameters throws(APIError) in
            let given = parameters.object["fault_id"].flatMap { $0.isNull ? nil : $0 }
            let number = given?.exactIntValue
            // What is no number must not stand for all of them.
            if given != nil, number == nil { throw APIError(.invalidParameter("fault_id")) }
            return ["removed": (await front.removeFaults(number)).json]
        },
    ]
}

extension FaultBoard.Entry {
    var json: JSONValue {
        var object: JSONObject = ["fault_id": number.json]
        object.append(missingFrom: fault.json)
        object.set("remaining", remaining)
        return .object(object)
    }
}
