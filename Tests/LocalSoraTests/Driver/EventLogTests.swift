import LocalSora
import SoraMessages
import Testing

@Suite("Server: event log", .serialized, .leavesNoObjects) struct EventLogTests {
    @Test func tellsWhoJoinedAndWhatIsForwardedToWhom() async throws {
        try await withServer {
            $0.seed = 7
        } _: { server in
            let (sender, viewer) = (try WireClient(), try WireClient())
            defer {
                sender.close()
                viewer.close()
            }
            try await sender.join(server.signalingURL, ChannelHarness.connect(.sendonly))
            let first = try #require(await server.waitForEvent(.joined))
            try await viewer.join(server.signalingURL, ChannelHarness.connect(.recvonly))
            let second = try #require(await server.waitForEvent(.joined, count: 2, channelID: "sora"))
            #expect(first.connectionID != second.connectionID)
            #expect(await server.connectionIDs(channelID: "sora") == [first.connectionID, second.connectionID])
            let forwarding = try #require(
                await server.waitForEvent(.forwardingStarted, connectionID: second.connectionID))
            #expect(forwarding.detail.contains(first.connectionID))
            await sender.hangUp()
            #expect(await server.waitForEvent(.left, connectionID: first.connectionID) != nil)
            let kinds = server.recordedEvents.filter { $0.connectionID == first.connectionID }.map(\.kind)
            #expect(
                kinds.filter { [.connectReceived, .answered, .joined, .left].contains($0) } == [
                    .connectReceived, .answered, .joined, .left,
                ])
        }
    }

    /// Names come from clients: none forges a line or speaks to the terminal.
    @Test func eventsStayOnTheirLine() async throws {
        try await withServer { server in
            try await withClient { client in
                var connect = ChannelHarness.messaging()
                connect.channelID = "a\n\u{1B}[31mleft channel=b\r\u{202E}\u{85}c"
                try await client.join(server.signalingURL, connect)
                let event = try #require(await server.waitForEvent(.joined))
                #expect(event.channelID == connect.channelID)
                #expect(
                    "\(event)".hasPrefix(
                        #"joined channel=a\n\u{1B}[31mleft channel=b\u{D}\u{202E}\u{85}c connection="#))
            }
        }
    }

    @Test func waitingForAnEventEndsInTimeAndWithTheServer() async throws {
        let server = try await SoraServer.start()
        #expect(await server.waitForEvent(.joined, within: .milliseconds(20)) == nil)
        async let never = server.waitForEvent(.joined, within: .seconds(60))
        await server.stop()
        #expect(await never == nil)
        #expect(await server.waitForEvent(.joined, within: .seconds(60)) == nil)
    }

    /// With the same seed the same clients get the same ids, in their order.
    @Test func seedRepeatsTheIdsOfSeveralClients() async throws {
        var runs: [[String]] = []
        for _ in 0..<2 {
            try await withServer {
                $0.seed = 99
            } _: { server in
                for number in 1...3 {
                    try await withClient { client in
                        try await client.join(server.signalingURL, ChannelHarness.messaging())
                        #expect(await server.waitForEvent(.joined, count: number) != nil)
                    }
                }
                runs.append(server.recordedEvents.filter { $0.kind == .joined }.map(\.connectionID))
            }
        }
        #expect(runs[0].count == 3 && Set(runs[0]).count == 3)
        #expect(runs[0] == runs[1])
    }
}
