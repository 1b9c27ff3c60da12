import SoraWire

/// How many bytes may be in flight: slow start and fast recovery of RFC 9260, 7.2, with the growth of
/// CUBIC (RFC 9438) in congestion avoidance, so that long fat paths refill within seconds after a loss.
///
/// Invariant: the window never falls below one packet nor rises above the configured maximum.
struct CongestionController {
    private let packet: Int
    private let maximumWindow: Int
    private let minimumWindow: Int
    /// CUBIC's constants: packets per second cubed, and the share kept after a loss.
    private static let aggressiveness = 0.4
    private static let reduction = 0.7

    private(set) var window: Int
    private(set) var slowStartThreshold: Int
    /// TSN that must be acknowledged to leave fast recovery; nil outside.
    private(set) var recoveryPoint: TSN?

    /// Proportional rate reduction (RFC 6937): flight when the loss was found, and since then bytes delivered
    /// and sent.
    private var flightAtLoss = 1
    private var deliveredInRecovery = 0
    private var sentInRecovery = 0
    /// Round trips in a row that show a queue building up, and that show none (HyStart++, RFC 9406).
    private var delayedSamples = 0
    private var promptSamples = 0
    /// While a queue is suspected slow start grows at a quarter of its pace; it ends when this many bytes
    /// have been acknowledged. Nil otherwise.
    private var conservativeBytes: Int?

    private var windowBeforeLoss = 0.0
    private var epochStart: Instant?
    private var timeToPlateau = 0.0
    private var renoWindow = 0.0
    private var fraction = 0.0

    init(configuration: SCTPConfiguration) {
        packet = configuration.packetLimit
        maximumWindow = max(configuration.maximumCongestionWindow, 4 * packet)
        minimumWindow = min(max(configuration.minimumWindowPackets, 1) * packet, maximumWindow)
        window = min(max(configuration.initialWindowPackets, 1) * packet, maximumWindow)
        slowStartThreshold = maximumWindow
    }

    var isInSlowStart: Bool { window <= slowStartThreshold }
    var isInRecovery: Bool { recoveryPoint != nil }

    /// `bytes` were newly acknowledged. `flight` is what was outstanding before that.
    mutating func acknowledged(
        bytes: Int, flight: Int, cumulative: TSN, advanced: Bool, roundTrip: Duration?, now: Instant
    ) {
        if let point = recoveryPoint {
            guard cumulative - point >= 0 else { return }
            recoveryPoint = nil
            window = slowStartThreshold
            return
        }
        // A window that the sender did not fill says nothing about the path.
        guard advanced, bytes > 0, flight + packet > window else { return }
        if isInSlowStart {
            guard let left = conservativeBytes else {
                window = min(window + min(bytes, 16 * packet), maximumWindow)
                return
            }
            window = min(window + min(bytes / 4, 4 * packet), maximumWindow)
            conservativeBytes = left - bytes
            if left <= bytes {
                conservativeBytes = nil
                slowStartThreshold = window
            }
            return
        }
        let size = Double(window) / Double(packet)
        if epochStart == nil {
            epochStart = now
            if windowBeforeLoss < size { windowBeforeLoss = size }
            timeToPlateau = CongestionController.cubeRoot(
                (windowBeforeLoss - size) / CongestionController.aggressiveness)
            renoWindow = size
            fraction = 0
        }
        let trip = (roundTrip ?? .milliseconds(100)).inSeconds
        let time = (now - (epochStart ?? now)).inSeconds + trip - timeToPlateau
        let cubic = windowBeforeLoss + CongestionController.aggressiveness * time * time * time
        let acked = Double(bytes) / Double(packet)
        renoWindow += 0.529 * acked / size
        let target = min(max(cubic, renoWindow), size * 1.5)
        guard target > size else { return }
        fraction += (target - size) * acked / size * Double(packet)
        let whole = Int(min(fraction, Double(bytes)))
        fraction -= Double(whole)
        window = min(window + max(whole, 0), maximumWindow)
    }

    /// A measured round trip in slow start: once a queue has built up, growth slows down before it overflows.
    mutating func measured(_ roundTrip: Duration, shortest: Duration) {
        guard isInSlowStart, recoveryPoint == nil, window >= 16 * packet else { return }
        let margin = min(max(shortest / 8, .milliseconds(4)), .milliseconds(16))
        if roundTrip > shortest + margin {
            delayedSamples += 1
            promptSamples = 0
            if delayedSamples >= 8, conservativeBytes == nil { conservativeBytes = 5 * window }
        } else {
            delayedSamples = 0
            promptSamples += 1
            if promptSamples >= 8 { conservativeBytes = nil }
        }
    }

    /// Gaps show a loss. Reduces once per window in flight; `highest` is the last TSN sent and `flight` what
    /// was outstanding before the loss was known.
    mutating func lossDetected(highest: TSN, flight: Int) {
        guard recoveryPoint == nil else { return }
        recoveryPoint = highest
        flightAtLoss = max(flight, 1)
        deliveredInRecovery = 0
        sentInRecovery = 0
        reduce()
        window = slowStartThreshold
    }

    /// In recovery each acknowledgement lets out a share of what it delivered, so that repetitions go on even
    /// where much of the flight is lost without our knowing. `flight` is what is outstanding now.
    mutating func continueRecovery(delivered: Int, flight: Int) {
        guard recoveryPoint != nil else { return }
        deliveredInRecovery += delivered
        let allowed: Int
        if flight > slowStartThreshold {
            let share = Double(deliveredInRecovery) * Double(slowStartThreshold) / Double(flightAtLoss)
            allowed = Int(share) - sentInRecovery
        } else {
            let room = max(deliveredInRecovery - sentInRecovery, delivered) + packet
            allowed = min(slowStartThreshold - flight, room)
        }
        window = max(flight + max(allowed, 0), packet)
    }

    /// Data left in recovery.
    mutating func sent(bytes: Int) {
        if recoveryPoint != nil { sentInRecovery += bytes }
    }

    /// The retransmission timer ran out (RFC 9260, 6.3.3). The window falls to the configured minimum, not to
    /// one packet: with a single packet in flight every loss costs another timeout, twice as long.
    mutating func timedOut() {
        reduce()
        recoveryPoint = nil
        window = min(window, minimumWindow)
    }

    /// Nothing was sent for a while: what was learnt about the path is old (RFC 9260, 7.2.1).
    mutating func idle(initialWindow: Int) {
        window = max(min(window, slowStartThreshold), min(window, initialWindow * packet))
        epochStart = nil
    }

    private mutating func reduce() {
        windowBeforeLoss = Double(window) / Double(packet)
        slowStartThreshold = max(Int(Double(window) * CongestionController.reduction), 4 * packet)
        epochStart = nil
        conservativeBytes = nil
        delayedSamples = 0
        promptSamples = 0
    }

    /// Newton's method; the core has no Foundation.
    private static func cubeRoot(_ value: Double) -> Double {
        guard value > 0 else { return 0 }
        var root = max(value / 3, 1)
        for _ in 0..<40 { root -= (root * root * root - value) / (3 * root * root) }
        return root
    }
}
