import SoraICE
import SoraMessages
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire

// What the HTTP API does to a channel (spec/signaling.md 9.2). Parameters are typed; whoever parses the
// call turns ``OperationError`` into its answer.

/// Why an operation was refused.
package enum OperationError: Error, Equatable, Sendable, CustomStringConvertible {
    case unknownConnection(String)
    case unknownClient(String)
    /// The channel has another session now.
    case unknownSession(String)
    case unknownFilter(String)
    case duplicateFilter(String)
    case tooManyFilters(limit: Int)
    /// The version given is not the one in force.
    case filterVersionConflict(expected: String, actual: String?)
    case notASpotlightChannel
    case notASender(String)
    case notAReceiver(String)
    /// The server was given no directory for recordings.
    case recordingIsOff
    case alreadyRecording
    case notRecording
    case invalidParameter(String)

    package var description: String {
        switch self {
        case .unknownConnection(let id): "the channel has no connection \(id)"
        case .unknownClient(let id): "the channel has no client \(id)"
        case .unknownSession(let id): "the channel's session is not \(id)"
        case .unknownFilter(let name): "there is no forwarding filter \(name)"
        case .duplicateFilter(let name): "there already is a forwarding filter \(name)"
        case .tooManyFilters(let limit): "at most \(limit) forwarding filters are allowed"
        case .filterVersionConflict(let expected, let actual):
            "the forwarding filter has the version \(actual ?? "none"), not \(expected)"
        case .notASpotlightChannel: "the channel has no spotlight"
        case .notASender(let id): "the connection \(id) sends no such media"
        case .notAReceiver(let id): "the connection \(id) receives no media"
        case .recordingIsOff: "the server has no directory for recordings: start it with --recordings"
        case .alreadyRecording: "the channel is being recorded already"
        case .notRecording: "the channel is not being recorded"
        case .invalidParameter(let name): "the parameter \(name) is missing or has an invalid value"
        }
    }

    /// `error_type` of the HTTP API's answer.
    package var type: String {
        switch self {
        case .unknownConnection: "CONNECTION-NOT-FOUND"
        case .unknownClient: "CLIENT-NOT-FOUND"
        case .unknownSession: "SESSION-NOT-FOUND"
        case .unknownFilter: "FORWARDING-FILTER-NOT-FOUND"
        case .duplicateFilter: "DUPLICATE-FORWARDING-FILTER-NAME"
        case .tooManyFilters: "TOO-MANY-FORWARDING-FILTERS"
        case .filterVersionConflict: "FORWARDING-FILTER-VERSION-CONFLICT"
        case .notASpotlightChannel: "NOT-SPOTLIGHT-CHANNEL"
        case .notASender: "NOT-SENDER"
        case .notAReceiver: "NOT-RECEIVER"
        case .recordingIsOff: "RECORDING-IS-OFF"
        case .alreadyRecording: "ALREADY-RECORDING"
        case .notRecording: "NOT-RECORDING"
        case .invalidParameter: "INVALID-PARAMETER"
        }
    }
}

/// Whom an operation is for.
package enum Recipients: Sendable, Equatable {
    case everyone
    case client(String)
    case connection(String)
    case role(ConnectionRole)
}

extension Channel {
    // MARK: Looking

    /// Announced connections in order of joining.
    package func connectionRecords(now: Instant) -> [ConnectionRecord] {
        order.compactMap { members[$0] }.filter(\.isAnnounced).map { record(of: $0, now: now) }
    }

    package func connectionRecord(_ id: String, now: Instant) throws(OperationError) -> ConnectionRecord {
        record(of: try member(id), now: now)
    }

    package func sessionRecord(now: Instant) -> SessionRecord {
        SessionRecord(
            channelID: id, sessionID: sessionID, isSpotlight: isSpotlight, createdTime: createdTime, counts: counts,
            maximumConnections: maximumConnections, totalConnections: totalConnections)
    }

    package func statistics(of id: String, now: Instant) throws(OperationError) -> ConnectionStatistics {
        statistics(of: try member(id), now: now)
    }

    package func statistics(now: Instant) -> [ConnectionStatistics] {
        order.compactMap { members[$0] }.filter(\.isAnnounced).map { statistics(of: $0, now: now) }
    }

    // MARK: Ending connections

    /// Ends connections with 1000 `DISCONNECTED-API`. `reason` goes to the event webhook.
    /// - Returns: ids of those that were ended.
    @discardableResult
    package func disconnect(_ recipients: Recipients, reason: JSONValue? = nil, now: Instant) throws(OperationError)
        -> [String]
    {
        let chosen = try active(recipients)
        for member in chosen {
            member.apiReason = reason
            end(member, code: SignalingCloseCode.normal, reason: SignalingReason.disconnectedAPI, now: now)
            drain(member, now: now)
        }
        return chosen.map(\.id.rawValue)
    }

    /// Ends all connections, and so the session.
    /// - Returns: the session's id.
    package func terminateSession(_ sessionID: String?, now: Instant) throws(OperationError) -> String {
        if let sessionID, sessionID != self.sessionID { throw .unknownSession(sessionID) }
        try disconnect(.everyone, now: now)
        return self.sessionID
    }

    // MARK: Messages

    package func push(_ data: JSONValue, to recipients: Recipients, now: Instant) throws(OperationError) {
        let chosen = try active(recipients).filter(\.isAnnounced)
        for member in chosen {
            deliver(PushMessage(data: data).json, type: "push", to: member, now: now)
            drain(member, now: now)
        }
    }

    /// Replaces a connection's notification metadata; with `push` the others are told.
    /// - Returns: the metadata now in force.
    package func putNotifyMetadata(
        _ metadata: JSONValue, of connectionID: String, push: Bool, now: Instant
    ) throws(OperationError) -> JSONValue {
        putNotifyMetadata(metadata, of: try member(connectionID), push: push, now: now)
    }

    /// Sets one key of a connection's notification metadata.
    package func putNotifyMetadataItem(
        key: String, value: JSONValue, of connectionID: String, push: Bool, now: Instant
    ) throws(OperationError) -> JSONValue {
        let member = try member(connectionID)
        return putNotifyMetadata(metadata(of: member, setting: key, to: value), of: member, push: push, now: now)
    }

    // MARK: Media

    /// Asks a sender for a key frame of each layer that arrives.
    package func requestKeyFrame(of connectionID: String, now: Instant) throws(OperationError) {
        guard let track = try member(connectionID).videoTrack else { throw .notASender(connectionID) }
        for layer in track.layers.indices where track.layers[layer].isActive {
            requestKeyFrame(of: track, layer: layer, now: now)
        }
    }

    package func requestLayer(
        _ wish: LayerWish, receiver: String, sender: String?, now: Instant
    ) throws(OperationError) {
        requestLayer(wish, of: try knownSender(sender), for: try self.receiver(receiver), now: now)
    }

    /// Stops or resumes the video of one sender to one receiver.
    package func setPaused(_ isPaused: Bool, receiver: String, sender: String, now: Instant) throws(OperationError) {
        let receiver = try self.receiver(receiver)
        let sender = try member(sender)
        guard let subscription = receiver.subscriptions[SubscriptionKey(sender: sender.id, kind: .video)] else {
            throw .notASender(sender.id.rawValue)
        }
        subscription.isPaused = isPaused
        select(subscription, trigger: .receiver, now: now)
        drain(receiver, now: now)
    }

    // MARK: Spotlight

    package func requestSpotlightLayers(
        _ rids: SpotlightRIDs, receiver: String, sender: String?, now: Instant
    ) throws(OperationError) {
        guard isSpotlight else { throw .notASpotlightChannel }
        requestSpotlightLayers(
            focus: rids.focus, unfocus: rids.unfocus, of: try knownSender(sender), for: try self.receiver(receiver),
            now: now)
    }

    /// Does all of them, or none if one cannot be done.
    package func requestSpotlightLayers(_ requests: [SpotlightRequest], now: Instant) throws(OperationError) {
        guard isSpotlight else { throw .notASpotlightChannel }
        for request in requests {
            _ = try receiver(request.receiver)
            _ = try knownSender(request.sender)
        }
        for request in requests {
            try requestSpotlightLayers(request.rids, receiver: request.receiver, sender: request.sender, now: now)
        }
    }

    package func resetSpotlightLayers(receiver: String, sender: String?, now: Instant) throws(OperationError) {
        guard isSpotlight else { throw .notASpotlightChannel }
        resetSpotlightLayers(of: try knownSender(sender), for: try self.receiver(receiver), now: now)
    }

    /// Puts a sender into focus, until others push it out or, with `isFixed`, until it is taken out.
    package func focusSpotlight(_ connectionID: String, isFixed: Bool, now: Instant) throws(OperationError) {
        guard isSpotlight else { throw .notASpotlightChannel }
        let member = try member(connectionID)
        guard member.role.sends else { throw .notASender(connectionID) }
        focus(member, isFixed: isFixed, isCommand: true, now: now)
    }

    package func unfocusSpotlight(_ connectionID: String, now: Instant) throws(OperationError) {
        guard isSpotlight else { throw .notASpotlightChannel }
        unfocus(try member(connectionID), now: now)
    }

    package func setSpotlightNumber(_ number: Int, now: Instant) throws(OperationError) {
        guard isSpotlight else { throw .notASpotlightChannel }
        guard (1...8).contains(number) else { throw .invalidParameter("spotlight_number") }
        changeSpotlightNumber(number, now: now)
    }

    // MARK: Forwarding filters

    /// The filters of the channel, or those of one connection, in the order in which they are asked.
    package func forwardingFilters(of connectionID: String?) throws(OperationError) -> [ForwardingFilter] {
        let filters = if let connectionID { try member(connectionID).filters } else { channelFilters }
        return filters.sorted { $0.effectivePriority < $1.effectivePriority }
    }

    package func createForwardingFilter(
        _ filter: ForwardingFilter, connection connectionID: String?, now: Instant
    ) throws(OperationError) {
        try changeFilters(of: connectionID, now: now) { filters throws(OperationError) in
            guard !filters.contains(where: { $0.effectiveName == filter.effectiveName }) else {
                throw .duplicateFilter(filter.effectiveName)
            }
            guard filters.count < ConnectMessage.maximumForwardingFilters else {
                throw .tooManyFilters(limit: ConnectMessage.maximumForwardingFilters)
            }
            filters.append(filter)
        }
    }

    /// Replaces the filter of the same name. With `expectedVersion` only if that is the version in force.
    package func updateForwardingFilter(
        _ filter: ForwardingFilter, expectedVersion: String? = nil, connection connectionID: String?, now: Instant
    ) throws(OperationError) {
        try changeFilters(of: connectionID, now: now) { filters throws(OperationError) in
            guard let index = filters.firstIndex(where: { $0.effectiveName == filter.effectiveName }) else {
                throw .unknownFilter(filter.effectiveName)
            }
            if let expectedVersion, filters[index].version != expectedVersion {
                throw .filterVersionConflict(expected: expectedVersion, actual: filters[index].version)
            }
            filters[index] = filter
        }
    }

    package func deleteForwardingFilter(
        named name: String?, connection connectionID: String?, now: Instant
    ) throws(OperationError) {
        let name = name ?? ForwardingFilter.defaultName
        try changeFilters(of: connectionID, now: now) { filters throws(OperationError) in
            guard filters.contains(where: { $0.effectiveName == name }) else { throw .unknownFilter(name) }
            filters.removeAll { $0.effectiveName == name }
        }
    }

    private func changeFilters(
        of connectionID: String?, now: Instant, _ change: (inout [ForwardingFilter]) throws(OperationError) -> Void
    ) throws(OperationError) {
        if let connectionID {
            let member = try member(connectionID)
            guard member.role.receives else { throw .notAReceiver(connectionID) }
            try change(&member.filters)
            applyFilters(to: member, now: now)
        } else {
            try change(&channelFilters)
            applyFiltersToAll(now: now)
        }
    }

    // MARK: Finding

    private func member(_ id: String) throws(OperationError) -> Member {
        guard let member = members[ConnectionID(id)], member.isActive else { throw .unknownConnection(id) }
        return member
    }

    private func receiver(_ id: String) throws(OperationError) -> Member {
        let member = try member(id)
        guard member.role.receives else { throw .notAReceiver(id) }
        return member
    }

    private func knownSender(_ id: String?) throws(OperationError) -> ConnectionID? {
        guard let id else { return nil }
        let member = try member(id)
        guard member.role.sends else { throw .notASender(id) }
        return member.id
    }

    private func active(_ recipients: Recipients) throws(OperationError) -> [Member] {
        let all = order.compactMap { members[$0] }.filter(\.isActive)
        switch recipients {
        case .everyone: return all
        case .role(let role): return all.filter { $0.role == role }
        case .connection(let id): return [try member(id)]
        case .client(let id):
            let found = all.filter { $0.clientID == id }
            guard !found.isEmpty else { throw .unknownClient(id) }
            return found
        }
    }
}

// MARK: Records

extension Channel {
    var counts: ChannelCounts {
        var counts = ChannelCounts()
        for member in members.values where member.isAnnounced { counts.add(member.role) }
        return counts
    }

    var createdTime: Double { settings.wallClockOrigin + Double(createdAt.nanoseconds) / 1e9 }

    func record(of member: Member, now: Instant) -> ConnectionRecord {
        var received = member.messageBytesReceived
        var sent = member.messageBytesSent
        let statistics = member.peer.statistics(now: now)
        for stream in statistics.inbound { received &+= stream.bytesReceived }
        for stream in statistics.outbound { sent &+= stream.bytesSent }
        return ConnectionRecord(
            channelID: id, sessionID: sessionID, connectionID: member.id.rawValue, grant: member.grant,
            connect: member.connect, notifyMetadata: member.notifyMetadata, joinedAt: member.joinedAt,
            connectedAt: member.connectedAt,
            createdTime: settings.wallClockOrigin + Double((member.connectedAt ?? member.joinedAt).nanoseconds) / 1e9,
            minutes: minutes(of: member, now: now), counts: counts, webSocketIsOpen: member.webSocketIsOpen,
            isSwitched: member.isSwitched, isFocused: member.isFocused, receivedBytes: received, sentBytes: sent,
            checkingTime: member.iceTimes.total(.checking, now: now),
            disconnectedTime: member.iceTimes.total(.disconnected, now: now), clientStats: member.latestStats)
    }

    func minutes(of member: Member, now: Instant) -> Int {
        Int((now - (member.connectedAt ?? member.joinedAt)).inSeconds / 60)
    }

    private func statistics(of member: Member, now: Instant) -> ConnectionStatistics {
        let sent = [member.audioTrack, member.videoTrack].compactMap { $0 }.map { track in
            ConnectionStatistics.Sent(
                kind: track.kind.rawValue, codec: track.transceiver.primaryCodec?.name,
                layers: track.layers.map {
                    .init(
                        rid: $0.rid?.rawValue, isActive: $0.isActive, packets: $0.packets, bitrate: $0.bitrate,
                        keyFrameRequests: $0.keyFrames.requestCount)
                }, subscribers: track.subscriptions.count)
        }
        let received = order.flatMap { sender in
            [TrackKind.audio, .video].compactMap { member.subscriptions[SubscriptionKey(sender: sender, kind: $0)] }
        }.map { subscription in
            ConnectionStatistics.Received(
                senderConnectionID: subscription.track.sender.id.rawValue, kind: subscription.track.kind.rawValue,
                rid: subscription.track.name(of: subscription.forwarder?.currentLayer).rawValue,
                packets: subscription.packets, bytes: subscription.bytes,
                layerSwitches: subscription.forwarder?.switchCount ?? 0, isBlocked: subscription.isBlocked,
                isPaused: subscription.isPaused, isLimitedByBandwidth: subscription.bandwidthCap != nil)
        }
        return ConnectionStatistics(
            connectionID: member.id.rawValue, sent: sent, received: received,
            availableBitrate: member.availableBitrate, messagesReceived: member.messagesReceived,
            messagesSent: member.messagesSent, peer: member.peer.statistics(now: now))
    }

    /// Reports what happened to a connection to whoever runs webhooks and counters.
    func report(
        _ kind: ConnectionEvent.Kind, _ member: Member, code: UInt16? = nil, reason: String? = nil,
        isFixed: Bool? = nil, now: Instant
    ) {
        emit(
            .connection(
                ConnectionEvent(
                    kind: kind, record: record(of: member, now: now), code: code, reason: reason,
                    apiReason: member.apiReason, clientReason: member.clientReason, isFixed: isFixed)))
    }
}
