import SoraHTTP
import SoraICE
import SoraMessages
import SoraNetwork
import SoraPeer
import SoraWire

/// The examination of one URL: a connection made step by step, each step reported.
///
/// Pinned to its event loop. Sockets and machines change its state from the loop; the walk waits for conditions on
/// that state (``until(_:_:)``).
actor Examination {
    /// The walk ends here; the reason has been reported.
    struct Stop: Error {}

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    let configuration: DoctorConfiguration
    private let onReport: @Sendable (StageReport) -> Void

    /// The URL that is examined now: behind a redirect, another than at the beginning.
    var url: String
    private let firstURL: String
    private var reports: [StageReport] = []
    /// What no report may show.
    var secrets: [String]
    var random = RandomSource.system

    // The waiting walk.
    private(set) var isInterrupted = false
    private var waiting: (condition: () -> Bool, continuation: CheckedContinuation<Bool, Never>, timer: LoopTimer)?

    // Signaling.
    var dialing = Dialing()
    var stream: (any ByteStream)?
    var socket: WebSocketConnection?
    var socketTimer: LoopTimer?
    var inbox: [Incoming] = []
    /// How the WebSocket ended, once it has.
    var closure: WebSocketClosure?
    var isSwitched = false
    var mayLoseWebSocket = false

    // The peer connection.
    var offer: OfferMessage?
    var peer: PeerConnection?
    var peerTimer: LoopTimer?
    var network: DoctorNetwork?
    var course = PeerCourse()

    init(
        of url: String, configuration: DoctorConfiguration, loop: EventLoop,
        onReport: @escaping @Sendable (StageReport) -> Void
    ) {
        self.url = url
        firstURL = url
        self.configuration = configuration
        self.loop = loop
        self.onReport = onReport
        secrets = configuration.secrets
    }

    var now: Instant { EventLoop.clock() }

    func run() async -> Diagnosis {
        do {
            try await walk()
        } catch {
            // The last report says why.
        }
        await leave()
        return Diagnosis(url: Masking.url(firstURL), stages: reports, wasInterrupted: isInterrupted)
    }

    /// Ends the walk: nothing is waited for or reported any more, and the server is left in order.
    func interrupt() {
        isInterrupted = true
        endWaiting(false)
    }

    private func walk() async throws(Stop) {
        let offer = try await reachOffer()
        try await negotiate(offer)
        try await examineServers()
        try await examineICE()
        try await examineDTLS()
        try await examineDataChannels()
        try await examineMedia()
    }

    // MARK: Reports

    func report(
        _ stage: DoctorStage, _ verdict: StageReport.Verdict, since start: Instant, _ summary: String,
        details: [String] = [], advice: String = "", failure: StageReport.Failure? = nil, until end: Instant? = nil
    ) {
        guard !isInterrupted else { return }
        func clean(_ text: String) -> String { Masking.line(Masking.removing(secrets, from: text), limit: 1000) }
        let report = StageReport(
            url: Masking.url(url), stage: stage, verdict: verdict, failure: failure,
            duration: max(.zero, (end ?? now) - start), summary: clean(summary), details: details.map(clean),
            advice: clean(advice))
        reports.append(report)
        onReport(report)
    }

    func fail(
        _ stage: DoctorStage, since start: Instant, _ summary: String, details: [String] = [], advice: String,
        failure: StageReport.Failure = .other
    ) -> Stop {
        report(stage, .failed, since: start, summary, details: details, advice: advice, failure: failure)
        return Stop()
    }

    // MARK: Waiting

    var limit: Instant { now + configuration.timeout }
    var limitText: String {
        let parts = configuration.timeout.components
        return "\(Double(parts.seconds) + (Double(parts.attoseconds) / 1e17).rounded() / 10) s"
    }

    /// Waits until `condition` holds or the deadline has passed; says whether it holds.
    func until(_ deadline: Instant, _ condition: @escaping () -> Bool) async -> Bool {
        if condition() { return true }
        if isInterrupted { return false }
        return await waitingFor(condition, until: deadline)
    }

    /// The same, also after an interruption.
    func waitingFor(_ condition: @escaping () -> Bool, until deadline: Instant) async -> Bool {
        await withCheckedContinuation { continuation in
            let timer = loop.scheduleTimer(at: deadline) { self.endWaiting(false) }
            waiting = (condition, continuation, timer)
        }
    }

    /// Something happened that the walk may be waiting for.
    func changed() {
        if let waiting, waiting.condition() { endWaiting(true) }
    }

    private func endWaiting(_ result: Bool) {
        guard let ended = waiting else { return }
        waiting = nil
        ended.timer.cancel()
        ended.continuation.resume(returning: result)
    }
}
