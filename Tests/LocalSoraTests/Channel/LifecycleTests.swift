@testable import LocalSora
import SoraEmulator
import SoraMessages
import SoraPeer
import SoraSDP
import SoraWire
import TestSupport
import Testing

/// Joining, being told of others, leaving (spec/signaling.md 3.8, 4, 8).
@Suite(.serialized, .leavesNoObjects) struct LifecycleTests {
    static let label = DataChannelDefinition(label: "#a", direction: .sendrecv)

    @Test func messagingJoinIsOfferedOneApplicationSection() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.messaging([Self.label]))
        let description = try #require(client.offeredDescriptions.first)
        #expect(description.media.count == 1)
        #expect(description.media[0].carriesDataChannels)
        #expect(description.isICELite)
        #expect(client.offer?.connectionID == client.id.rawValue)
        #expect(client.offer?.clientID == client.id.rawValue)
        #expect(client.offer?.config != nil)
        #expect(client.offer?.dataChannels?.map(\.label) == ["signaling", "notify", "push", "stats", "rpc", "#a"])
        // 4.3: switched over the WebSocket, then the own connection.created over `notify`.
        #expect(client.labels(of: "switched") == [nil])
        #expect(client.labels(of: "notify") == ["notify"])
        let order = client.log.compactMap { entry -> String? in
            if case .message(let type, _, _) = entry { type } else { nil }
        }
        #expect(order == ["offer", "switched", "notify"])
    }

    @Test func everyoneIsToldInOrderWithCounts() throws {
        let harness = try ChannelHarness()
        let first = try harness.joined(ChannelHarness.messaging { $0.signalingNotifyMetadata = ["n": 1] })
        let own = try #require(first.notifications("connection.created").first)
        #expect(own["channel_connections"]?.intValue == 1)
        #expect(own["channel_sendonly_connections"]?.intValue == 1)
        #expect(own["connection_id"]?.stringValue == first.id.rawValue)
        #expect(own["data"]?.arrayValue?.isEmpty == true)
        #expect(own["timestamp"]?.stringValue?.hasPrefix("2025-11-30T08:00:0") == true)

        let second = try harness.joined(ChannelHarness.messaging())
        let created = try #require(second.notifications("connection.created").first)
        #expect(created["channel_connections"]?.intValue == 2)
        let data = try #require(created["data"]?.arrayValue)
        #expect(data.count == 1)
        #expect(data[0].objectValue?["connection_id"]?.stringValue == first.id.rawValue)
        #expect(data[0].objectValue?["authn_metadata"] == ["n": 1])
        let told = try #require(first.notifications("connection.created").last)
        #expect(told["connection_id"]?.stringValue == second.id.rawValue)
        #expect(told["data"] == nil)

        second.send(["type": "disconnect", "reason": "NO-ERROR"], label: "signaling", now: harness.now)
        harness.run(for: .seconds(1))
        let destroyed = try #require(first.notifications("connection.destroyed").first)
        #expect(destroyed["connection_id"]?.stringValue == second.id.rawValue)
        #expect(destroyed["channel_connections"]?.intValue == 1)
        #expect(first.notifications("connection.destroyed").count == 1)
    }

    @Test func sameBundleHearsNothingOfItself() throws {
        let harness = try ChannelHarness()
        let a = try harness.joined(ChannelHarness.messaging([Self.label]) { $0.bundleID = "b" })
        let b = try harness.joined(ChannelHarness.messaging([Self.label]) { $0.bundleID = "b" })
        let other = try harness.joined(ChannelHarness.messaging([Self.label]))
        #expect(a.notifications("connection.created").count == 2)  // its own and the other's
        #expect(b.notifications("connection.created").first?["data"]?.arrayValue?.isEmpty == true)
        a.send(data: [1], label: "#a", now: harness.now)
        harness.run(for: .milliseconds(200))
        #expect(b.data("#a").isEmpty)
        #expect(other.data("#a") == [[1]])
    }

    // MARK: Leaving (4.5)

    @Test func clientLeavesOverTheWebSocketOnly() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.connect { $0.dataChannelSignaling = false })
        client.clearLog()
        client.send(["type": "disconnect", "reason": "NO-ERROR"], now: harness.now)
        harness.run(for: .seconds(1))
        #expect(client.closeFrames.map(\.code) == [1000])
        #expect(client.closeFrames.map(\.reason) == ["TYPE-DISCONNECT"])
        #expect(harness.removed == [client.id])
        #expect(harness.channel.isEmpty)
    }

    @Test func clientLeavesInHybridMode() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.messaging([Self.label]))
        client.clearLog()
        client.send(["type": "disconnect", "reason": "NO-ERROR"], label: "signaling", now: harness.now)
        harness.run(for: .seconds(4))
        // All channels are closed, and the WebSocket behind them.
        #expect(client.allChannelsAreClosed)
        #expect(client.closeFrames.map(\.code) == [1000])
        #expect(client.closeFrames.map(\.reason) == ["TYPE-DISCONNECT"])
        #expect(client.messages("close").isEmpty)
        #expect(harness.removed == [client.id])
    }

    @Test func clientLeavesOverDataChannelsOnly() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.messaging([Self.label]) { $0.ignoreDisconnectWebSocket = true })
        #expect(!client.webSocketIsOpen)
        #expect(client.messages("switched").first?["ignore_disconnect_websocket"] == true)
        client.clearLog()
        client.send(["type": "disconnect", "reason": "NO-ERROR"], label: "signaling", now: harness.now)
        harness.run(for: .seconds(4))
        #expect(client.allChannelsAreClosed)
        #expect(client.closeFrames.isEmpty)
        #expect(harness.removed == [client.id])
    }

    // MARK: The server ends it (4.6)

    @Test func serverEndsInHybridModeWithTheCloseFrameFirst() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.messaging([Self.label]))
        client.clearLog()
        harness.perform { $0.disconnect(client.id, code: 1000, reason: "DISCONNECTED-API", now: $1) }
        #expect(client.closeFrames.map(\.reason) == ["DISCONNECTED-API"])
        #expect(!client.allChannelsAreClosed)
        harness.run(for: .milliseconds(50))
        let close = try #require(client.messages("close").first)
        #expect(close["code"]?.intValue == 1000)
        #expect(close["reason"]?.stringValue == "DISCONNECTED-API")
        #expect(client.labels(of: "close") == ["signaling"])
        #expect(!client.allChannelsAreClosed)
        harness.run(for: .seconds(1))
        #expect(client.allChannelsAreClosed)
        #expect(harness.removed == [client.id])
    }

    @Test func serverEndsOverDataChannelsOnly() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.messaging([Self.label]) { $0.ignoreDisconnectWebSocket = true })
        client.clearLog()
        harness.perform { $0.disconnect(client.id, code: 1000, reason: "DISCONNECTED-API", now: $1) }
        harness.run(for: .seconds(1))
        #expect(client.closeFrames.isEmpty)
        #expect(client.messages("close").count == 1)
        #expect(client.allChannelsAreClosed)
    }

    @Test func serverEndsOverTheWebSocketOnly() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.connect { $0.dataChannelSignaling = false })
        harness.perform { $0.disconnect(client.id, code: 1000, reason: "DISCONNECTED-API", now: $1) }
        #expect(client.closeFrames.map(\.reason) == ["DISCONNECTED-API"])
        // The transport ends a moment later, so that the reason is not overtaken.
        #expect(harness.removed.isEmpty)
        harness.run(for: .milliseconds(200))
        #expect(harness.removed == [client.id])
    }

    @Test func lossOfTheWebSocketEndsAHybridConnection() throws {
        let harness = try ChannelHarness()
        let watcher = try harness.joined(ChannelHarness.messaging())
        let client = try harness.joined(ChannelHarness.messaging())
        harness.perform { $0.webSocketClosed(client.id, code: 1006, now: $1) }
        harness.run(for: .milliseconds(100))
        #expect(harness.removed == [client.id])
        #expect(watcher.notifications("connection.destroyed").count == 1)
    }

    @Test func lifetimeExpires() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.messaging(), grant: { $0.lifetime = .seconds(20) })
        harness.run(for: .seconds(15))
        #expect(client.closeFrames.isEmpty)
        harness.run(for: .seconds(6))
        #expect(client.closeFrames.map(\.reason) == ["LIFETIME-EXPIRED"])
        #expect(client.closeFrames.map(\.code) == [1000])
    }

    // MARK: Stages (SRV3)

    enum Stage: CaseIterable { case offered, answered, mediaUp, announced }

    /// SRV3: a client that vanishes gives everything back at each stage, and nothing is announced as
    /// gone that was never announced.
    @Test(arguments: Stage.allCases) func vanishedClientLeavesNothingBehind(stage: Stage) throws {
        let harness = try ChannelHarness()
        let watcher = try harness.joined(ChannelHarness.messaging())
        watcher.clearLog()
        let client = try harness.join(
            ChannelHarness.connect {
                $0.dataChannelSignaling = true; $0.ignoreDisconnectWebSocket = true
            },
            prepare: { $0.answersAutomatically = stage != .offered })
        switch stage {
        case .offered, .answered: break
        case .mediaUp: harness.run(for: .seconds(2)) { client.peer.state == .connected }
        case .announced: harness.run(for: .seconds(2)) { client.isSwitched }
        }
        harness.run(for: .milliseconds(20))
        client.isDead = true
        harness.run(for: .seconds(70))
        #expect(harness.removed == [client.id])
        #expect(!harness.channel.hasMember(client.id))
        let created = watcher.notifications("connection.created").count
        #expect(watcher.notifications("connection.destroyed").count == created)
        #expect(created == (stage == .announced || stage == .mediaUp && created == 1 ? 1 : 0))
    }

    @Test func unansweredOfferTimesOut() throws {
        let harness = try ChannelHarness()
        let client = try harness.join(ChannelHarness.connect(), prepare: { $0.answersAutomatically = false })
        harness.run(for: .seconds(29))
        #expect(client.closeFrames.isEmpty)
        harness.run(for: .seconds(2))
        #expect(client.closeFrames.map(\.code) == [4490])
        #expect(client.closeFrames.map(\.reason) == ["TIMEOUT"])
        #expect(harness.channel.isEmpty)
    }

    @Test func unansweredReofferTimesOut() throws {
        let harness = try ChannelHarness()
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly) { $0.dataChannelSignaling = false })
        viewer.answersAutomatically = false
        try harness.joined(ChannelHarness.connect(.sendonly))
        harness.run(for: .seconds(31))
        #expect(viewer.closeFrames.map(\.reason) == ["TIMEOUT"])
        #expect(harness.removed == [viewer.id])
    }

    // MARK: Progress (3.8)

    /// `connection.updated` goes to the others every minute, with the keys of `connection.created`, and to the webhook.
    @Test func othersAreToldHowLongAConnectionLasts() throws {
        let harness = try ChannelHarness()
        let first = try harness.joined(
            ChannelHarness.messaging { $0.signalingNotifyMetadata = ["n": 1] }, grant: { $0.authzMetadata = ["z": 2] })
        let second = try harness.joined(ChannelHarness.connect(.recvonly) { $0.dataChannelSignaling = false })
        #expect(second.notifications("connection.updated").isEmpty)
        harness.run(for: .seconds(185))
        let told = second.notifications("connection.updated")
        #expect(told.map { $0["minutes"]?.intValue } == [1, 2, 3])
        #expect(first.notifications("connection.updated").map { $0["minutes"]?.intValue } == [1, 2, 3])
        let created = try #require(second.notifications("connection.created").first)
        let keys: Set<String> = [
            "type", "event_type", "timestamp", "role", "session_id", "client_id", "bundle_id", "connection_id", "audio",
            "video", "minutes", "channel_connections", "channel_sendrecv_connections", "channel_sendonly_connections",
            "channel_recvonly_connections", "turn_transport_type", "authn_metadata", "authz_metadata",
        ]
        for notification in told {
            #expect(Set(notification.keys) == keys)
            #expect(notification["connection_id"]?.stringValue == first.id.rawValue)
            #expect(notification["session_id"] == created["session_id"])
            #expect(notification["role"] == "sendonly")
            #expect(notification["audio"] == false)
            #expect(notification["authn_metadata"] == ["n": 1])
            #expect(notification["authz_metadata"] == ["z": 2])
            #expect(notification["channel_connections"] == 2)
            #expect(notification["channel_sendonly_connections"] == 1)
            #expect(notification["channel_recvonly_connections"] == 1)
            #expect(notification["channel_sendrecv_connections"] == 0)
        }
        let times = told.compactMap { $0["timestamp"]?.stringValue }
        #expect(times == times.sorted() && Set(times).count == 3)
        #expect(
            Set(first.notifications("connection.updated").map { $0["connection_id"]?.stringValue }) == [
                second.id.rawValue
            ])
        let updates = harness.connectionEvents.filter { $0.kind == .updated }
        #expect(updates.count == 6)
        #expect(updates.allSatisfy { $0.webhookType == "connection.updated" })
        #expect(updates.map(\.record.minutes) == [1, 1, 2, 2, 3, 3])
    }

    // MARK: Pings and statistics

    @Test func pingsAndStatisticsAreAskedForPeriodically() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.messaging())
        harness.run(for: .seconds(61))
        #expect(client.messages("ping").count == 12)
        #expect(client.labels(of: "ping").allSatisfy { $0 == nil })
        #expect(client.messages("req-stats").count == 2)
        #expect(client.labels(of: "req-stats") == ["stats", "stats"])
        #expect(client.notifications("connection.updated").isEmpty)  // about others only
        #expect(client.closeFrames.isEmpty)
    }

    /// LIF12: pings of ours that nobody answers prove nothing.
    @Test func silentClientIsRemoved() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(
            ChannelHarness.connect(.recvonly) { $0.dataChannelSignaling = false }, prepare: { $0.answersPings = false })
        harness.run(for: .seconds(58))
        #expect(client.closeFrames.isEmpty)
        harness.run(for: .seconds(4))
        #expect(client.closeFrames.map(\.reason) == ["TIMEOUT"])
    }

    @Test func statisticsTravelInPongsWithoutDataChannels() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.connect { $0.dataChannelSignaling = false })
        harness.run(for: .seconds(70))
        let pings = client.messages("ping")
        #expect(pings.count == 13 || pings.count == 14)
        #expect(pings.filter { $0["stats"] == true }.count == 2)
        let record = try harness.channel.connectionRecord(client.id.rawValue, now: harness.now)
        #expect(record.clientStats == [])
    }

    /// 8.2: a client that vanished without its WebSocket is found out by ICE.
    @Test func vanishedClientIsFoundOutInTime() throws {
        let harness = try ChannelHarness()
        let watcher = try harness.joined(ChannelHarness.messaging())
        let client = try harness.joined(ChannelHarness.messaging { $0.ignoreDisconnectWebSocket = true })
        client.isDead = true
        let start = harness.now
        let isGone = harness.run(for: .seconds(60)) { harness.removed == [client.id] }
        #expect(isGone)
        #expect(harness.now - start < .seconds(40), "\(harness.now - start)")
        harness.run(for: .seconds(1))
        #expect(watcher.notifications("connection.destroyed").count == 1)
    }

    /// MEM1, MEM3: nothing of a member outlives it, whatever way it ends.
    @Test func membersAreReleased() throws {
        weak var channel: Channel?
        var members: [WeakMember] = []
        try {
            let harness = try ChannelHarness()
            channel = harness.channel
            let keeper = try harness.joined(ChannelHarness.connect(.sendrecv))
            for way in 0..<4 {
                let client = try harness.joined(ChannelHarness.connect(.sendrecv) { $0.simulcast = way % 2 == 0 })
                let sources = [MediaSource(client), MediaSource(keeper)]
                harness.play(sources, for: .milliseconds(500))
                members.append(WeakMember(harness.channel.members[client.id]))
                #expect(members.last?.member != nil)
                switch way {
                case 0: client.send(["type": "disconnect"], label: "signaling", now: harness.now)
                case 1: harness.perform { $0.disconnect(client.id, code: 1000, reason: "X", now: $1) }
                case 2: harness.perform { $0.webSocketClosed(client.id, code: 1006, now: $1) }
                default: client.isDead = true
                }
                harness.play([MediaSource(keeper)], for: .milliseconds(200))
                harness.run(for: .seconds(70))
                #expect(members.last?.member == nil, "ended in way \(way)")
            }
            members.append(WeakMember(harness.channel.members[keeper.id]))
        }()
        // The channel goes while a member is there.
        #expect(channel == nil)
        #expect(members.allSatisfy { $0.member == nil })
    }
}

struct WeakMember {
    weak var member: Member?
    init(_ member: Member?) { self.member = member }
}
