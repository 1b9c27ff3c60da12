import CDtlsTestClock
import SoraWire

@testable import SoraSecureTransport

/// Two endpoints, a network with a delay between them, and a clock that jumps from event to event.
final class DTLSPair {
    enum Direction: Hashable { case toServer, toClient }
    struct Sent {
        var time: Instant
        var direction: Direction
        var bytes: [UInt8]
    }
    /// One copy of a datagram that arrives `delay` later than the network's own delay.
    struct Delivery {
        var delay = Duration.zero
        var bytes: [UInt8]
    }

    let client: DTLSEndpoint
    let server: DTLSEndpoint
    var now = Instant.zero
    var latency = Duration.milliseconds(5)
    /// What becomes of a datagram, given how many went this way before it.
    var network: (Direction, Int, [UInt8]) -> [Delivery] = { _, _, bytes in [Delivery(bytes: bytes)] }
    private(set) var sent: [Sent] = []
    private(set) var clientOutputs: [DTLSEndpoint.Output] = []
    private(set) var serverOutputs: [DTLSEndpoint.Output] = []
    private var counts: [Direction: Int] = [:]
    private var queue: [(time: Instant, order: Int, direction: Direction, bytes: [UInt8])] = []
    private var order = 0

    init(client: DTLSEndpoint, server: DTLSEndpoint) {
        self.client = client
        self.server = server
    }

    /// Two endpoints that expect each other, unless told otherwise.
    static func make(
        clientCertificate: DTLSCertificate = TestCertificates.first,
        serverCertificate: DTLSCertificate = TestCertificates.second,
        expectedByClient: [DTLSFingerprint]? = nil, expectedByServer: [DTLSFingerprint]? = nil,
        clientProfiles: [SRTPProfile] = SRTPProfile.allCases, serverProfiles: [SRTPProfile] = SRTPProfile.allCases,
        requiresSRTP: Bool = true, maximumDatagramSize: Int = 1200
    ) throws -> DTLSPair {
        DTLSPair(
            client: try DTLSEndpoint(
                certificate: clientCertificate, role: .client,
                remoteFingerprints: expectedByClient ?? [serverCertificate.fingerprint],
                srtpProfiles: clientProfiles, requiresSRTP: requiresSRTP, maximumDatagramSize: maximumDatagramSize),
            server: try DTLSEndpoint(
                certificate: serverCertificate, role: .server,
                remoteFingerprints: expectedByServer ?? [clientCertificate.fingerprint],
                srtpProfiles: serverProfiles, requiresSRTP: requiresSRTP, maximumDatagramSize: maximumDatagramSize))
    }

    deinit { dtls_test_clock_reset() }

    func start() {
        turn { server.start(now: now) }
        turn { client.start(now: now) }
    }

    /// Runs one input and moves the outputs on.
    func turn(_ body: () throws -> Void) rethrows {
        dtls_test_clock_set(now.nanoseconds)
        try body()
        while let output = client.poll() {
            if case .transmit(let bytes) = output { enqueue(bytes, .toServer) } else { clientOutputs.append(output) }
        }
        while let output = server.poll() {
            if case .transmit(let bytes) = output { enqueue(bytes, .toClient) } else { serverOutputs.append(output) }
        }
    }

    /// Delivers everything and fires all timers until `end` or until nothing is left to happen.
    func run(for duration: Duration = .seconds(120)) {
        let end = now + duration
        while let next = nextEvent(), next <= end {
            now = max(now, next)
            if let due = queue.indices.filter({ queue[$0].time <= now }).min(by: { earlier($0, $1) }) {
                let event = queue.remove(at: due)
                turn {
                    switch event.direction {
                    case .toServer: server.handle(event.bytes, now: now)
                    case .toClient: client.handle(event.bytes, now: now)
                    }
                }
            }
            if let timeout = client.nextTimeout, timeout <= now { turn { client.handleTimeout(now: now) } }
            if let timeout = server.nextTimeout, timeout <= now { turn { server.handleTimeout(now: now) } }
        }
    }

    func inject(_ bytes: [UInt8], _ direction: Direction) {
        turn {
            switch direction {
            case .toServer: server.handle(bytes, now: now)
            case .toClient: client.handle(bytes, now: now)
            }
        }
    }

    var clientKeys: SRTPKeyingMaterial? { Self.keys(clientOutputs) }
    var serverKeys: SRTPKeyingMaterial? { Self.keys(serverOutputs) }
    var isConnected: Bool { clientKeys != nil && serverKeys != nil }
    var clientData: [[UInt8]] { Self.data(clientOutputs) }
    var serverData: [[UInt8]] { Self.data(serverOutputs) }

    /// Both ends have keys, and they fit.
    var agrees: Bool {
        guard let ours = clientKeys, let theirs = serverKeys else { return false }
        return ours.profile == theirs.profile && ours.localKey == theirs.remoteKey
            && ours.remoteKey == theirs.localKey && ours.localSalt == theirs.remoteSalt
            && ours.remoteSalt == theirs.localSalt && ours.localKey != ours.remoteKey
            && ours.localKey.count == ours.profile.keyLength && ours.localSalt.count == ours.profile.saltLength
    }

    func sentTimes(_ direction: Direction) -> [Int64] {
        sent.filter { $0.direction == direction }.map { $0.time.nanoseconds / 1_000_000 }
    }

    private static func keys(_ outputs: [DTLSEndpoint.Output]) -> SRTPKeyingMaterial? {
        for case .connected(let material) in outputs { return material }
        return nil
    }

    private static func data(_ outputs: [DTLSEndpoint.Output]) -> [[UInt8]] {
        outputs.compactMap { if case .applicationData(let bytes) = $0 { bytes } else { nil } }
    }

    private func enqueue(_ bytes: [UInt8], _ direction: Direction) {
        sent.append(Sent(time: now, direction: direction, bytes: bytes))
        let index = counts[direction, default: 0]
        counts[direction] = index + 1
        for delivery in network(direction, index, bytes) {
            order += 1
            queue.append((now + latency + delivery.delay, order, direction, delivery.bytes))
        }
    }

    private func nextEvent() -> Instant? {
        [queue.map(\.time).min(), client.nextTimeout, server.nextTimeout].compactMap { $0 }.min()
    }

    private func earlier(_ a: Int, _ b: Int) -> Bool {
        (queue[a].time, queue[a].order) < (queue[b].time, queue[b].order)
    }
}

/// Certificates shared by the tests, which need valid ones, not new ones.
enum TestCertificates {
    static let first = make(.ecdsaP256)
    static let second = make(.ecdsaP256)
    static let third = make(.ecdsaP256)
    static let rsa = make(.rsa(bits: 4096))

    private static func make(_ type: DTLSCertificate.KeyType) -> DTLSCertificate {
        do { return try DTLSCertificate.selfSigned(type) } catch {
            preconditionFailure("no test certificate: \(error)")
        }
    }
}
