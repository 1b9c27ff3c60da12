import Foundation
import SoraClient
import SoraPeer
import SoraWire
import Testing

@testable import Sora

/// A connection under a random order of server, network and application, in virtual time. The seed of a schedule that
/// fails repeats it.
@Suite struct RandomScheduleTests {
    /// Runs one schedule and tells what is wrong with it.
    private final class Schedule {
        private var random: RandomSource
        private let pending = Locked<[@Sendable () -> Void]>([])
        private let driverSlot = Locked<VirtualDriver?>(nil)
        private let sora: Sora
        private let callbacks = Journal()
        private let outcomes = Journal()
        private var callsMade = 0
        /// Kinds of events that came, and whether a redirect was followed.
        private(set) var reached: Set<String> = []
        private var completions = 0
        private var channel: MediaChannel!
        private var task: ConnectionTask!
        private var events: AsyncStream<SoraEvent>!

        init(seed: UInt64) {
            random = RandomSource(seed: seed)
            let (pending, driverSlot) = (pending, driverSlot)
            sora = Sora(
                makeDriver: { settings, core in
                    let driver = VirtualDriver(core: core, settings: settings)
                    driverSlot.write(driver)
                    return driver
                },
                makeDeliveries: { DeliveryQueue { drain in pending.withLock { $0.append(drain) } } })
        }

        private func draw(_ count: UInt64) -> UInt64 { random.next() % count }

        private func deliver() {
            while true {
                let drains = pending.exchange([])
                if drains.isEmpty { return }
                for drain in drains { drain() }
            }
        }

        private func install(_ handlers: MediaChannelHandlers) {
            let callbacks = callbacks
            handlers.onConnect = { callbacks.add($0 == nil ? "connected" : "connectFailed") }
            handlers.onDisconnect = { _ in callbacks.add("disconnected") }
            handlers.onAddStream = { _ in callbacks.add("streamAdded") }
            handlers.onRemoveStream = { _ in callbacks.add("streamRemoved") }
            handlers.onReceiveSignalingJSON = { _ in callbacks.add("signalingReceivedJSON") }
            handlers.onDataChannelOpened = { _, _ in callbacks.add("dataChannelOpened") }
            handlers.onDataChannel = { _ in callbacks.add("dataChannelAvailable") }
            handlers.onDataChannelMessage = { _, _, _ in callbacks.add("dataChannelMessage") }
        }

        func run() async -> [String] {
            let configuration = Stage.configuration(.recvonly)
            install(configuration.mediaChannelHandlers)
            sora.handlers.onAddMediaChannel = { [unowned self] added in
                channel = added
                events = added.subscribeEvents(bufferingPolicy: .unbounded)
            }
            task = sora.connect(configuration: configuration) { [unowned self] _, _ in completions += 1 }
            sora.handlers.onAddMediaChannel = nil
            if draw(10) > 0 { deliver() }
            for _ in 0..<(20 + draw(60)) { step() }
            channel.disconnect(error: nil)
            driverSlot.read()?.advance(.seconds(60))
            let ended = await eventually { [self] in
                deliver()
                return callbacks.entries.contains("disconnected")
            }
            guard ended else { return ["no end"] }
            deliver()
            return await verdict()
        }

        private func step() {
            guard let driver = driverSlot.read() else { return deliver() }
            switch draw(24) {
            case 0, 1: driver.openLatestDial()
            case 2, 3: driver.text(offer(driver))
            case 4: driver.text(#"{"type":"re-offer","sdp":"v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"}"#)
            case 5: driver.text(#"{"type":"notify","event_type":"x","channel_connections":1}"#)
            case 6: driver.text(#"{"type":"push","data":{"a":null}}"#)
            case 7: driver.text(#"{"type":"switched","ignore_disconnect_websocket":\#(draw(2) == 0)}"#)
            case 8: driver.text(["not JSON", #"{"type":"mystery"}"#, #"{"type":"ping","stats":true}"#][Int(draw(3))])
            case 9, 10: driver.peer(.stateChanged(draw(4) == 0 ? .disconnected : .connected))
            case 11, 12: open(driver)
            case 13, 14: message(driver)
            case 15: streams(driver)
            case 16: driver.advance(.milliseconds(Int(draw(3_000))))
            case 17: _ = channel.sendMessage(label: "#a", data: Data([1]))
            case 18: call(driver)
            case 19: rare(driver)
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
            case 9: task.cancel()
            case 10: driver.text(#"{"type":"close","code":1000,"reason":"bye"}"#)
            default: deliver()
            }
        }

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
                RemoteStream(id: $0, tracks: [])
            }
            driver.text(#"{"type":"re-offer","sdp":"v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"}"#)
        }

        private func call(_ driver: VirtualDriver) {
            guard let params = JSONText(object: ["x": 1]) else {
                Issue.record("the parameters are JSON")
                return
            }
            callsMade += 1
            let outcomes = outcomes
            let id = driver.call(
                RPCCall(
                    method: "m", params: params, isNotification: draw(4) == 0, timeout: 2)
            ) { _ in outcomes.add("done") }
            if draw(4) == 0 { driver.cancelCall(id) }
        }

        private func verdict() async -> [String] {
            var seen: [SoraEvent] = []
            for await event in events { seen.append(event) }
            var faults: [String] = []
            func check(_ condition: Bool, _ text: String) { if !condition { faults.append(text) } }
            let kinds = seen.map(\.kind.rawValue)
            reached = Set(kinds)
            if seen.contains(where: { $0.transportEpoch ?? 0 > 0 }) { reached.insert("redirected") }
            check(kinds == callbacks.entries, "callbacks \(callbacks.entries) are not events \(kinds)")
            check(seen.map(\.sequence) == seen.indices.map { UInt64($0 + 1) }, "numbers have a gap")
            check(
                kinds.filter { $0 == "disconnected" }.count == 1 && kinds.last == "disconnected", "the end is not last")
            check(kinds.filter { $0 == "connected" || $0 == "connectFailed" }.count == 1, "not one outcome")
            check(completions == 1, "\(completions) completions")
            let epochs = seen.compactMap(\.transportEpoch)
            check(zip(epochs, epochs.dropFirst()).allSatisfy { $0 <= $1 }, "an older epoch came later")
            for event in seen {
                if let data = event.dataChannelMessage, let text = String(data: data, encoding: .utf8),
                    text.hasPrefix("epoch")
                {
                    check(text == "epoch \(event.transportEpoch ?? -1)", "\(text) was delivered in another epoch")
                }
                if let id = event.connectionId {
                    check(id <= "epoch \(event.transportEpoch ?? -1)", "\(id) in epoch \(event.transportEpoch ?? -1)")
                }
            }
            check(outcomes.entries.count == callsMade, "\(outcomes.entries.count) outcomes of \(callsMade) calls")
            check(driverSlot.read()?.waitingCalls ?? 0 == 0, "calls wait for ever")
            check(channel.state == .disconnected && channel.streams.isEmpty, "state \(channel.state)")
            check(sora.mediaChannels.isEmpty, "the channel is still listed")
            switch task.state {
            case .connecting: faults.append("the task still connects")
            case .canceled: check(kinds.contains("connectFailed"), "cancelled and connected")
            case .completed: break
            }
            return faults
        }
    }

    @Test func aThousandSchedulesKeepEveryPromise() async {
        var reached: [String: Int] = [:]
        for seed in 0..<1_000 as Range<UInt64> {
            let schedule = Schedule(seed: seed)
            let faults = await schedule.run()
            #expect(faults == [], "seed \(seed)")
            if !faults.isEmpty { return }
            for name in schedule.reached { reached[name, default: 0] += 1 }
        }
        // The schedules would prove little if most of them ended before anything happened.
        for name in [
            "connected", "connectFailed", "dataChannelMessage", "dataChannelAvailable", "streamAdded", "redirected",
        ] {
            #expect(reached[name, default: 0] > 50, "\(name): \(reached)")
        }
    }
}
