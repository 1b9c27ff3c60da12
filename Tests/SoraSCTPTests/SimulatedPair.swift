import SoraWire

@testable import SoraSCTP

/// One direction of a simulated path.
struct Link {
    var delay: Duration = .milliseconds(5)
    var jitter: Duration = .zero
    var loss = 0.0
    var duplication = 0.0
    /// Bits a second; nil for no limit.
    var rate: Double?
    /// Longest wait in the queue in front of a limited rate.
    var queue: Duration = .milliseconds(100)
}

/// Two transports joined by simulated links, in virtual time. Each step checks that data in flight implies a
/// timer (SCT2).
final class SimulatedPair {
    enum Side: Int { case a, b }
    enum Verdict { case pass, drop, duplicate, delay(Duration) }

    struct Received: Equatable {
        var stream: UInt16
        var payload: [UInt8]
        var isBinary: Bool
        var at: Instant
    }

    final class End {
        let transport: DataChannelTransport
        var received: [Received] = []
        var opened: [DataChannelInfo] = []
        var closed: [UInt16] = []
        var low: [UInt16] = []
        var isConnected = false
        var ending: SCTPError??
        var log: [String] = []
        init(_ transport: DataChannelTransport) { self.transport = transport }
        func payloads(_ id: StreamID) -> [[UInt8]] {
            received.filter { $0.stream == id.rawValue }.map(\.payload)
        }
    }

    private struct Flight {
        var at: Instant
        var number: Int
        var to: Side
        var packet: [UInt8]
    }

    let a: End
    let b: End
    var link: [Link]
    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    private var random: RandomSource
    private var flights: [Flight] = []
    private var number = 0
    private var busyUntil: [Instant] = [.zero, .zero]
    /// Packets seen from each side, including dropped ones.
    private(set) var sent = [0, 0]
    var keepsPackets = false
    private(set) var packets: [(from: Side, packet: [UInt8])] = []
    /// Decides over each packet: sender, its number from that sender, bytes.
    var filter: ((Side, Int, [UInt8]) -> Verdict)?
    var onMessage: ((Side, Received) -> Void)?
    private(set) var invariantFailures: [String] = []

    init(
        seed: UInt64 = 1, link: Link = Link(), a configurationA: SCTPConfiguration = SCTPConfiguration(),
        b configurationB: SCTPConfiguration? = nil
    ) {
        a = End(
            DataChannelTransport(
                configuration: configurationA, isDTLSClient: true, random: RandomSource(seed: seed &* 2 &+ 1)))
        b = End(
            DataChannelTransport(
                configuration: configurationB ?? configurationA, isDTLSClient: false,
                random: RandomSource(seed: seed &* 2 &+ 2)))
        self.link = [link, link]
        random = RandomSource(seed: seed &+ 77)
    }

    func end(_ side: Side) -> End { side == .a ? a : b }

    func start() {
        a.transport.start(now: now)
        b.transport.start(now: now)
    }

    /// Starts both and runs until both are connected.
    @discardableResult
    func connect(within: Duration = .seconds(30)) -> Bool {
        start()
        return run(for: within) { self.a.isConnected && self.b.isConnected }
    }

    /// Advances virtual time. True if `condition` became true.
    @discardableResult
    func run(for duration: Duration, until condition: () -> Bool = { false }) -> Bool {
        let end = now + duration
        while true {
            drain(.a)
            drain(.b)
            if condition() { return true }
            var next = end + .nanoseconds(1)
            if let flight = flights.last { next = min(next, flight.at) }
            for side in [a, b] { if let timeout = side.transport.nextTimeout { next = min(next, timeout) } }
            guard next <= end else {
                now = end
                return condition()
            }
            now = max(now, next)
            while let flight = flights.last, flight.at <= now {
                flights.removeLast()
                self.end(flight.to).transport.handle(flight.packet, now: now)
                drain(flight.to)
            }
            for side in [a, b] {
                if let timeout = side.transport.nextTimeout, timeout <= now { side.transport.handleTimeout(now: now) }
            }
        }
    }

    func inject(_ packet: [UInt8], to side: Side) {
        end(side).transport.handle(packet, now: now)
        drain(side)
    }

    func drain(_ side: Side) {
        let end = end(side)
        while let output = end.transport.poll() {
            switch output {
            case .transmit(let packet): transmit(packet, from: side)
            case .connected:
                end.isConnected = true
                end.log.append("connected")
            case .channelOpened(let info):
                end.opened.append(info)
                end.log.append("opened \(info.id)")
            case .message(let id, let payload, let isBinary):
                let received = Received(stream: id.rawValue, payload: payload, isBinary: isBinary, at: now)
                end.received.append(received)
                onMessage?(side, received)
            case .channelClosed(let id):
                end.closed.append(id.rawValue)
                end.log.append("closed \(id)")
            case .bufferedAmountLow(let id): end.low.append(id.rawValue)
            case .closed(let error):
                end.ending = .some(error)
                end.log.append("ended")
            }
        }
        let association = end.transport.association
        if !association.window.isEmpty && association.retransmissionTimer == nil && association.isEstablished {
            invariantFailures.append("\(side) at \(now): data in flight without a timer")
        }
    }

    private func transmit(_ packet: [UInt8], from side: Side) {
        let index = sent[side.rawValue]
        sent[side.rawValue] += 1
        if keepsPackets { packets.append((side, packet)) }
        let link = link[side.rawValue]
        var extra = Duration.zero
        switch filter?(side, index, packet) ?? .pass {
        case .drop: return
        case .duplicate: schedule(packet, from: side, link, extra: .zero)
        case .delay(let more): extra = more
        case .pass: break
        }
        if link.loss > 0, Double.random(in: 0..<1, using: &random) < link.loss { return }
        schedule(packet, from: side, link, extra: extra)
        if link.duplication > 0, Double.random(in: 0..<1, using: &random) < link.duplication {
            schedule(packet, from: side, link, extra: .milliseconds(3))
        }
    }

    private func schedule(_ packet: [UInt8], from side: Side, _ link: Link, extra: Duration) {
        var departure = now
        if let rate = link.rate {
            let start = max(busyUntil[side.rawValue], now)
            if start - now > link.queue { return }
            departure = start + .nanoseconds(Int64(Double(packet.count + 28) * 8e9 / rate))
            busyUntil[side.rawValue] = departure
        }
        var arrival = departure + link.delay + extra
        if link.jitter > .zero {
            arrival += .nanoseconds(Int64.random(in: 0...link.jitter.wholeNanoseconds, using: &random))
        }
        number += 1
        let flight = Flight(at: arrival, number: number, to: side == .a ? .b : .a, packet: packet)
        // Sorted latest first, so that the next one is at the end.
        var low = 0
        var high = flights.count
        while low < high {
            let middle = (low + high) / 2
            if (flights[middle].at, flights[middle].number) > (flight.at, flight.number) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        flights.insert(flight, at: low)
    }
}
