import Foundation
import SoraClient
import SoraLocking
import SoraPeer
import SoraWire
import TestSupport
import Testing

@testable import Sora

/// Everything of a schedule happens here, one thing after the other, so that a seed decides all of it.
@globalActor private actor ScheduleActor {
    static let shared = ScheduleActor()
}

/// A connection under a random order of server, network and application, in virtual time. The seed of a schedule that
/// fails repeats it.
@Suite(.serialized, .leavesNoObjects) struct RandomScheduleTests {
    /// Runs one schedule and tells what is wrong with it.
    @ScheduleActor private final class Schedule {
        private var random: RandomSource
        private let gate = DeliveryGate()
        private let driverSlot = Locked<VirtualDriver?>(nil)
        private let witness: Witness
        /// Calls of the application: made, and how each ended.
        private let callsMade = Locked(0)
        private let outcomes = Journal()
        /// Waits of the application that have not ended.
        private let waiting = Locked(0)
        private var tasks: [Task<Void, Never>] = []
        /// A handler of the application does not return for so many steps.
        private var blockedSteps = 0
        private var faults: [String] = []
        /// Other connections of the process, whose end is to be told.
        private var others: [(sora: Sora, gate: DeliveryGate, journal: Journal)] = []
        /// Kinds of events that came, and whether a redirect was followed.
        private(set) var reached: Set<String> = []

        init(seed: UInt64) {
            random = RandomSource(seed: seed)
            let (gate, driverSlot) = (gate, driverSlot)
            let sora = Sora(
                makeDriver: { settings, core in
                    let driver = VirtualDriver(core: core, settings: settings)
                    driverSlot.write(driver)
                    return driver
                },
                makeDeliveries: { gate.queue() })
            witness = Witness(Stage.configuration(.recvonly), sora: sora)
        }

        private var channel: MediaChannel { witness.channel }
        private var driver: VirtualDriver? { driverSlot.read() }
        /// All that was told, in order.
        var entries: [String] { witness.entries }

        private func draw(_ count: UInt64) -> UInt64 { random.next() % count }
        private func check(_ condition: Bool, _ text: @autoclosure () -> String) {
            if !condition { faults.append(text()) }
        }

        private func deliver() { if blockedSteps == 0 { gate.open() } }

        func run() async -> [String] {
            if draw(10) > 0 { gate.open() }
            for _ in 0..<(20 + draw(60)) {
                step()
                if blockedSteps > 0 { blockedSteps -= 1 }
                // Tasks of the application get on.
                await Task.yield()
            }
            blockedSteps = 0
            channel.disconnect(error: nil)
            driver?.advance(.seconds(60))
            let deadline = ContinuousClock.now + .seconds(10)
            while !witness.entries.contains("e:disconnected") || waiting.read() > 0 {
                guard ContinuousClock.now < deadline else {
                    return ["no end: \(waiting.read()) waits, \(witness.entries)"]
                }
                gate.open()
                await Task.yield()
            }
            gate.open()
            while let other = others.last {
                guard ContinuousClock.now < deadline else { return ["no end of another: \(other.journal.entries)"] }
                other.gate.open()
                if other.journal.entries.last == "disconnected" { others.removeLast() } else { await Task.yield() }
            }
            judge()
            return faults
        }

        private func step() {
            guard let driver else { return deliver() }
            switch draw(30) {
            case 0, 1: driver.openLatestDial()
            case 2, 3: driver.text(offer(driver))
            case 4: driver.text(#"{"type":"re-offer","sdp":"v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"}"#)
            case 5:
                driver.text(
                    #"{"type":"notify","event_type":"x","channel_connections":1,"channel_sendonly_connections":1,"#
                        + #""channel_recvonly_connections":0,"channel_sendrecv_connections":0}"#)
            case 6: driver.text(#"{"type":"push","data":{"a":null}}"#)
            case 7: driver.text(#"{"type":"switched","ignore_disconnect_websocket":\#(draw(2) == 0)}"#)
            case 8: driver.text(["not JSON", #"{"type":"mystery"}"#][Int(draw(2))])
            case 9, 10: driver.peer(.stateChanged(draw(4) == 0 ? .disconnected : .connected))
            case 11, 12: open(driver)
            case 13, 14: message(driver)
            case 15: streams(driver)
            case 16: driver.advance(.milliseconds(Int(draw(3_000))))
            case 17: _ = channel.sendMessage(label: "#a", data: Data([1]))
            case 18:
                // Else most calls would find no channel.
                if draw(2) == 0 { driver.peer(.dataChannelOpened(StreamID(2), label: "rpc")) }
                call(driver)
                if draw(2) == 0 { answerCalls(driver) }
            case 19: rare(driver)
            case 20: ping(driver)
            case 21: block()
            case 22, 23: wait()
            case 24: if !tasks.isEmpty { tasks[Int(draw(UInt64(tasks.count)))].cancel() }
            case 25: answerCalls(driver)
            default: deliver()
            }
        }

        private func rare(_ driver: VirtualDriver) {
            switch draw(16) {
            case 0, 1, 2: driver.text(#"{"type":"redirect","location":"ws://next.example.com/signaling"}"#)
            case 3: driver.closeWebSocket(4401, "x")
            case 4: driver.loseWebSocket()
            case 5: driver.peer(.ended(.iceFailed))
            case 6: driver.peer(.dataChannelClosed(StreamID(0)))
            case 7: channel.disconnect(error: nil)
            case 8: channel.disconnect(error: SoraError.rpcTimeout)
            case 9: witness.task.cancel()
            case 10: driver.text(#"{"type":"close","code":1000,"reason":"bye"}"#)
            default: deliver()
            }
        }

        // MARK: The server

        private func offer(_ driver: VirtualDriver) -> String {
            let labels = ["signaling", "notify", "rpc", "#a", "#b"].map { #"{"label":"\#($0)"}"# }
            return #"{"type":"offer","client_id":"c","connection_id":"epoch \#(driver.connection.epoch)","#
                + #""sdp":"v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n","data_channels":[\#(labels.joined(separator: ","))]}"#
        }

        private func open(_ driver: VirtualDriver) {
            let index = Int(draw(5))
            driver.peer(
                .dataChannelOpened(StreamID(UInt16(index)), label: ["signaling", "notify", "rpc", "#a", "#b"][index]))
        }

        /// Messages say which epoch they belong to.
        private func message(_ driver: VirtualDriver) {
            let id = StreamID(UInt16(draw(5)))
            let text = draw(2) == 0 ? "epoch \(driver.connection.epoch)" : #"{"type":"push","data":1}"#
            driver.peer(.dataChannelMessage(id, Array(text.utf8), isBinary: true))
        }

        private func streams(_ driver: VirtualDriver) {
            driver.peers.last?.remoteStreams = ["x", "y", "z"].filter { _ in draw(2) == 0 }.map {
                RemoteStream(id: "\($0) \(driver.connection.epoch)", tracks: [])
            }
            driver.text(#"{"type":"re-offer","sdp":"v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"}"#)
        }

        /// Answered at once, whatever the application does.
        private func ping(_ driver: VirtualDriver) {
            let before = driver.pongs
            let isOwed = driver.openDial != nil && [.connecting, .connected].contains(driver.connection.state)
            driver.text(#"{"type":"ping"}"#)
            check(driver.pongs == before + (isOwed ? 1 : 0), "a ping waits for the application")
        }

        /// Answers with the epoch, to calls of this epoch and to such as were never made.
        private func answerCalls(_ driver: VirtualDriver) {
            let text = #"{"jsonrpc":"2.0","id":\#(1 + draw(3)),"result":\#(driver.connection.epoch)}"#
            driver.peer(.dataChannelMessage(StreamID(2), Array(text.utf8), isBinary: true))
        }

        // MARK: The application

        private func call(_ driver: VirtualDriver) {
            guard let params = JSONText(object: ["x": 1]) else { return check(false, "the parameters are JSON") }
            callsMade.withLock { $0 += 1 }
            let outcomes = outcomes
            let epoch = driver.connection.epoch
            let id = driver.call(
                RPCCall(method: "m", params: params, isNotification: draw(4) == 0, timeout: 2)
            ) { result in
                if case .success(let answer?) = result {
                    outcomes.add("answer \(String(decoding: answer.result, as: UTF8.self)) of \(epoch)")
                } else {
                    outcomes.add("done")
                }
            }
            if draw(4) == 0 { driver.cancelCall(id) }
        }

        private enum Method: SendableRPCMethodProtocol {
            typealias Params = [Int]
            typealias Result = Int
            static let name = "m"
        }

        /// One of the waits that the API offers. Each must end, at the latest with the connection.
        private func wait() {
            let kind = draw(6)
            let channel = Transfer(channel)
            let waiting = waiting
            waiting.withLock { $0 += 1 }
            tasks.append(
                Task { @ScheduleActor in
                    switch kind {
                    case 0: try? await channel.value.waitUntilOpen(label: "#a")
                    case 1: try? await channel.value.waitUntilOpen(label: "rpc")
                    case 2: _ = try? await channel.value.sendableRPC(method: Method.self, params: [1])
                    case 3: _ = try? await channel.value.getStatsSnapshot()
                    case 4: for await _ in channel.value.messages(label: "#a") {}
                    default: for await _ in channel.value.remoteStreams() {}
                    }
                    waiting.withLock { $0 -= 1 }
                })
        }

        /// A handler does not return for a while. Another connection of the process takes no notice.
        private func block() {
            guard blockedSteps == 0 else { return }
            blockedSteps = 1 + Int(draw(10))
            let otherGate = DeliveryGate()
            let otherDriver = Locked<VirtualDriver?>(nil)
            let sora = Sora(
                makeDriver: { settings, core in
                    let driver = VirtualDriver(core: core, settings: settings)
                    otherDriver.write(driver)
                    return driver
                }, makeDeliveries: { otherGate.queue() })
            let journal = Journal()
            let before = witness.entries.count
            let configuration = Stage.configuration(.recvonly)
            configuration.mediaChannelHandlers.onDisconnect = { _ in journal.add("disconnected") }
            let task = sora.connect(configuration: configuration) { _, error in
                journal.add(error == nil ? "connected" : "failed")
            }
            otherGate.open()
            if let driver = otherDriver.read() {
                driver.openLatestDial()
                driver.text(offer(driver))
                otherGate.open()
                driver.peer(.stateChanged(.connected))
                otherGate.open()
            }
            check(journal.entries == ["connected"] && task.state == .completed, "another connection waits")
            check(witness.entries.count == before, "a blocked handler was passed over")
            sora.mediaChannels.first?.disconnect(error: nil)
            otherDriver.read()?.advance(.seconds(60))
            others.append((sora, otherGate, journal))
        }

        // MARK: The verdict

        private func judge() {
            faults += witness.faults
            let entries = witness.entries
            let seen = witness.events.read()
            let kinds = seen.map(\.kind)
            reached.formUnion(kinds.map(\.rawValue))
            if seen.contains(where: { $0.transportEpoch ?? 0 > 0 }) { reached.insert("redirected") }
            if outcomes.entries.contains(where: { $0.hasPrefix("answer") }) { reached.insert("answered") }
            func count(_ prefix: String) -> Int { entries.count { $0.hasPrefix(prefix) } }
            check(kinds.filter { $0 == .disconnected }.count == 1 && kinds.last == .disconnected, "the end is not last")
            check(kinds.filter { $0 == .connected || $0 == .connectFailed }.count == 1, "not one outcome")
            for once in [
                "completion ", "sora.connect ", "connect ", "removed", "sora.disconnect ", "legacy ", "disconnect ",
            ] { check(count(once) == 1, "\(once)came \(count(once)) times") }
            // The two brackets, each whole and in its order.
            let isConnected = kinds.contains(.connected)
            let raw = entries.first { $0.hasPrefix("legacy ") }.map { String($0.dropFirst(7)) } ?? ""
            let close = entries.first { $0.hasPrefix("disconnect ") }.map { String($0.dropFirst(11)) } ?? ""
            let task = "\(witness.task.state)"
            let outcome =
                isConnected ? Witness.success : Witness.failure(raw == "nil" ? "Connection is cancelled" : raw, task)
            let expected = Witness.beginning + outcome + Witness.end(raw, close)
            check(witness.bracket == expected, "\(witness.bracket)")
            check(witness.task.state != .connecting, "the task still connects")
            check(witness.task.state == .completed || !isConnected, "cancelled and connected")
            for event in seen {
                let epoch = event.transportEpoch ?? -1
                if let data = event.dataChannelMessage, let text = String(data: data, encoding: .utf8),
                    text.hasPrefix("epoch")
                {
                    check(text == "epoch \(epoch)", "\(text) was delivered in epoch \(epoch)")
                }
                if let id = event.connectionId { check(id <= "epoch \(epoch)", "\(id) in epoch \(epoch)") }
                if let id = event.streamId { check(id.hasSuffix(" \(epoch)"), "stream \(id) in epoch \(epoch)") }
            }
            let ended = outcomes.entries
            check(ended.count == callsMade.read(), "\(ended.count) outcomes of \(callsMade.read()) calls")
            for answer in ended where answer.hasPrefix("answer") {
                let words = answer.split(separator: " ")
                check(words[1] == words[3], "\(answer)")
            }
            check(driver?.waitingCalls ?? 0 == 0, "calls wait for ever")
            check(channel.state == .disconnected && channel.streams.isEmpty, "state \(channel.state)")
            check(witness.sora.mediaChannels.isEmpty, "the channel is still listed")
            check(channel.core.events.subscriberCount == 0, "subscriptions are left")
        }
    }

    @ScheduleActor private static func run(_ seed: UInt64) async -> (faults: [String], reached: Set<String>, [String]) {
        let schedule = Schedule(seed: seed)
        let faults = await schedule.run()
        return (faults, schedule.reached, schedule.entries)
    }

    @Test func aThousandSchedulesKeepEveryPromise() async {
        var reached: [String: Int] = [:]
        for seed in 0..<1_000 as Range<UInt64> {
            let (faults, names, _) = await Self.run(seed)
            #expect(faults == [], "seed \(seed)")
            if !faults.isEmpty { return }
            for name in names { reached[name, default: 0] += 1 }
        }
        // The schedules would prove little if most of them ended before anything happened.
        for name in [
            "connected", "connectFailed", "dataChannelMessage", "dataChannelAvailable", "streamAdded", "streamRemoved",
            "redirected", "answered",
        ] {
            #expect(reached[name, default: 0] > 15, "\(name): \(reached)")
        }
    }

    /// What makes the number of a failing schedule worth noting.
    @Test func theSeedRepeatsASchedule() async {
        for seed in 0..<60 as Range<UInt64> {
            let first = await Self.run(seed)
            let second = await Self.run(seed)
            #expect(first.2 == second.2, "seed \(seed)")
        }
    }
}
