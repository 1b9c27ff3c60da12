import Foundation
import SoraClient
import SoraLocking
import SoraPeer
import SoraWire
import Testing

@testable import Sora

/// What applications are promised about data channels, RPC and statistics.
@MainActor @Suite(.serialized, .leavesNoObjects) struct DataChannelPromiseTests {
    // api 5.60
    @Test func availabilityIsToldWhenEveryLabelIsOpenAndNotBySwitched() async {
        let labels = ["signaling", "#a", "notify", "#b", "rpc"]
        let client = VirtualClient()
        client.act { $0.openLatestDial() }
        client.text(VirtualClient.offer(labels))
        client.peer(.stateChanged(.connected))
        client.text(#"{"type":"switched","ignore_disconnect_websocket":false}"#)
        #expect(!client.news().contains("onDataChannel"))
        for (index, label) in labels.enumerated() {
            client.peer(.dataChannelOpened(StreamID(UInt16(index)), label: label))
            // Right behind the last of the application's labels, with the channels usable.
            #expect(client.news() == ["opened \(label)"] + (label == "#b" ? ["onDataChannel"] : []))
            if label.hasPrefix("#") { #expect(client.channel.sendMessage(label: label, data: Data([1])) == nil) }
        }
        client.channel.disconnect(error: nil)
        // Without a label of the application there is nothing to tell, switched or not.
        client.connect()
        client.establish(["signaling", "notify", "rpc"])
        client.text(#"{"type":"switched","ignore_disconnect_websocket":true}"#)
        #expect(!client.news().contains("onDataChannel"))
        client.channel.disconnect(error: nil)
        client.advance(.seconds(3))
        #expect(await client.hasEnded())
    }

    // api 5.61
    @Test func aLabelIsToldToBeOpenBeforeItsFirstMessage() async {
        for connectsFirst in [false, true] {
            let client = VirtualClient()
            client.act { $0.openLatestDial() }
            client.text(VirtualClient.offer(["#a", "#b"]))
            if connectsFirst { client.peer(.stateChanged(.connected)) }
            _ = client.news()
            // Everything comes in one go, faster than the application can be told.
            client.act { driver in
                driver.peers.last?.outputs = [
                    .dataChannelOpened(StreamID(0), label: "#a"),
                    .dataChannelMessage(StreamID(0), [1], isBinary: true),
                    .dataChannelOpened(StreamID(1), label: "#b"),
                    .dataChannelMessage(StreamID(1), [1, 2], isBinary: true),
                ]
                driver.perform { $0.peerWasUsed(now: driver.now) }
            }
            #expect(
                client.news() == ["opened #a", "message #a 1", "opened #b", "onDataChannel", "message #b 2"])
            client.channel.disconnect(error: nil)
            client.advance(.seconds(3))
            #expect(await client.hasEnded())
        }
    }

    private func outcome(_ body: () async throws -> Void) async -> String {
        do {
            try await body()
            return "success"
        } catch {
            return error is CancellationError ? "cancelled" : error.localizedDescription
        }
    }

    private func call(_ channel: MediaChannel, timeout: Double = 60) -> Task<String, Never> {
        let channel = Transfer(channel)
        return Task {
            await outcome {
                _ = try await channel.value.rpc(
                    method: ResetSpotlightRid.self, params: ResetSpotlightRidParams(), timeout: timeout)
            }
        }
    }

    // api 5.64
    @Test func everyWaitingCallEndsWithTheChannel() async {
        let causes: [(String, (VirtualClient) -> Void)] = [
            ("user", { $0.channel.disconnect(error: nil) }),
            ("webSocket", { client in client.act { $0.loseWebSocket() } }),
            ("dataChannelClosed", { $0.peer(.dataChannelClosed(StreamID(0))) }),
            ("peerConnectionStateFailed", { $0.peer(.ended(.iceFailed)) }),
            (
                "peerConnectionStateDisconnected",
                { client in
                    client.peer(.stateChanged(.disconnected))
                    client.advance(.seconds(1))
                }
            ), ("redirect", { $0.text(#"{"type":"redirect","location":"ws://next.example.com/signaling"}"#) }),
        ]
        for (name, cause) in causes {
            let client = VirtualClient()
            client.establish(["rpc"])
            // The loss of the network began some time ago, so that the calls, whose clock is the driver's, still wait.
            if name == "peerConnectionStateDisconnected" {
                client.peer(.stateChanged(.disconnected))
                client.advance(.seconds(4))
            }
            let calls = (0..<3).map { _ in call(client.channel) }
            #expect(await eventually { client.driver?.waitingCalls == 3 })
            cause(client)
            for call in calls { #expect(await call.value == "RPC DataChannel is closed: \(name)", "\(name)") }
            client.channel.disconnect(error: nil)
            client.advance(.seconds(10))
            #expect(await client.hasEnded())
        }
    }

    // api 5.65
    @Test func aCancelledTaskEndsItsCall() async {
        let client = VirtualClient()
        client.establish(["rpc"])
        let task = call(client.channel)
        #expect(await eventually { client.driver?.waitingCalls == 1 })
        task.cancel()
        #expect(await task.value == "cancelled")
        #expect(await eventually { client.driver?.waitingCalls == 0 })
        // A task that was cancelled before asks nothing.
        let sent = client.driver?.peers.last?.sent.count
        let channel = Transfer(client.channel!)
        let early = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await outcome {
                _ = try await channel.value.rpc(method: ResetSpotlightRid.self, params: ResetSpotlightRidParams())
            }
        }
        #expect(await early.value == "cancelled")
        #expect(client.driver?.peers.last?.sent.count == sent)
        client.channel.disconnect(error: nil)
        client.advance(.seconds(3))
        #expect(await client.hasEnded())
    }

    private actor Archive {
        private(set) var detail: RPCErrorDetail?
        func keep(_ detail: RPCErrorDetail) { self.detail = detail }
    }

    // api 5.66
    @Test func theDataOfAnErrorAreAValueThatMayCrossActors() async {
        let client = VirtualClient()
        client.establish(["rpc"])
        for (data, expected) in [
            (
                #","data":{"why":["full",1.5,null]}"#,
                JSONValue.object(["why": .array([.string("full"), .decimal(1.5), .null])])
            ),
            (#","data":null"#, .null), ("", nil),
        ] as [(String, JSONValue?)] {
            let archive = Archive()
            let channel = Transfer(client.channel!)
            let calling = Task {
                do {
                    _ = try await channel.value.sendableRPC(
                        method: RequestSimulcastRid.self, params: RequestSimulcastRidParams(rid: .r0), timeout: 60)
                } catch SoraError.rpcServerError(let detail) {
                    await archive.keep(detail)
                } catch {
                    Issue.record(error)
                }
            }
            #expect(await eventually { client.driver?.waitingCalls == 1 })
            let request = client.driver?.peers.last?.sent.last.map { String(decoding: $0.payload, as: UTF8.self) } ?? ""
            let id = request.firstMatch(of: #/"id":(\d+)/#).map { String($0.output.1) } ?? "0"
            let reply = #"{"jsonrpc":"2.0","id":\#(id),"error":{"code":-32000,"message":"no"\#(data)}}"#
            client.peer(.dataChannelMessage(StreamID(0), Array(reply.utf8), isBinary: true))
            await calling.value
            let detail = await archive.detail
            #expect(detail?.code == -32_000 && detail?.message == "no" && detail?.data == expected)
        }
        client.channel.disconnect(error: nil)
        client.advance(.seconds(3))
        #expect(await client.hasEnded())
    }

    // api 5.67
    @Test func statisticsAreAnsweredAfterTheEndToo() async throws {
        let stage = Stage()
        let configuration = Stage.configuration()
        stage.record(configuration.mediaChannelHandlers)
        stage.sora.connect(configuration: configuration) { _, _ in }
        let journal = Journal()
        var driver: ScriptedDriver?
        func ask(_ channel: MediaChannel) {
            channel.getStats { result in
                if case .failure(let error) = result { journal.add(error.localizedDescription) }
            }
            channel.getStatsSnapshot { result in
                if case .failure(let error) = result { journal.add(error.localizedDescription) }
            }
        }
        do {
            let channel = try #require(stage.sora.mediaChannels.first)
            let live: ScriptedDriver = try #require(await stage.driver())
            driver = live
            driver?.takeOffer()
            driver?.core.deliver(.connected)
            #expect(await stage.journal.wait(for: "channel.onConnect nil"))
            ask(channel)
            channel.disconnect(error: nil)
            #expect(await stage.journal.wait { $0.contains { $0.hasPrefix("channel.onDisconnect") } })
            driver?.answerStatistics(.success([]))
            let late = "PeerChannel error (MediaChannel is not connected (state: disconnected))"
            #expect(journal.entries == [late, late])
            // Asked for after the end: answered at once.
            ask(channel)
            let text = await outcome { _ = try await channel.getStatsSnapshot() }
            #expect(journal.entries == Array(repeating: late, count: 4) && text == late)
        }

        // The channel is released while statistics are on their way.
        let other = Journal()
        var orphan: ScriptedDriver?
        do {
            let sora = Sora(makeDriver: { _, core in ScriptedDriver(core: core) })
            sora.connect(configuration: Stage.configuration()) { _, _ in }
            let channel = try #require(sora.mediaChannels.first)
            #expect(await eventually { channel.core.liveDriver != nil })
            orphan = channel.core.liveDriver as? ScriptedDriver
            orphan?.takeOffer()
            orphan?.core.deliver(.connected)
            await orphan?.core.deliveries.run {}
            channel.getStats { result in
                if case .failure(let error) = result { other.add(error.localizedDescription) }
            }
            #expect(other.entries == [])
        }
        #expect(await orphan?.journal.wait(for: "abandon") == true)
        orphan?.answerStatistics(.success([]))
        #expect(other.entries == ["PeerChannel error (MediaChannel is unavailable)"])
    }

    // api 5.68
    @Test func noMessageOfBeforeARedirectReachesWhatComesAfter() async {
        for _ in 0..<20 {
            let gate = OutgoingMessages()
            gate.markSwitched()
            gate.set(.open, label: "#a")
            let epoch = Locked(0)
            let isOver = Locked(false)
            // The application sends without a pause, and notes what was accepted. Only what was accepted under the new
            // transport may ever be taken for it.
            async let accepted: [Int] = Task.detached {
                var accepted: [Int] = []
                var number = 0
                while !isOver.read() {
                    number += 1
                    let before = epoch.read()
                    if case .queued = gate.put(Data("\(before) \(number)".utf8), label: "#a") {
                        accepted.append(number)
                    }
                }
                return accepted
            }.value
            func taken() -> [String] { gate.takeAll().map { String(decoding: $0.data, as: UTF8.self) } }
            while taken().count < 3 { await Task.yield() }
            gate.reset()
            #expect(taken() == [], "the redirect has emptied the queue")
            guard case .refused = gate.put(Data(), label: "#a") else {
                Issue.record("accepted without a transport")
                return
            }
            epoch.write(1)
            gate.markSwitched()
            gate.set(.open, label: "#a")
            var later: [String] = []
            while later.count < 50 {
                later += taken()
                await Task.yield()
            }
            isOver.write(true)
            _ = await accepted
            // The first may have been begun before the epoch was read anew; it was accepted after it all the same.
            #expect(later.dropFirst().allSatisfy { $0.hasPrefix("1 ") })
        }
    }
}
