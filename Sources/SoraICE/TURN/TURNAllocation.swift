import SoraWire

/// One allocation on one TURN server (RFC 8656), from the first request to the last refresh.
///
/// Sans-IO: packets of the server go into ``receive(_:now:)``, packets for it come out of ``poll()``, one message
/// each; whoever owns it brings them over UDP or a stream. Invariant: once there are credentials,
/// only answers signed with them count, except 401 and 438, which lead to nothing but a repetition.
final class TURNAllocation {
    enum State: Equatable {
        /// Goes to `allocated`, `ended`.
        case allocating
        /// Goes to `ended`.
        case allocated(relayed: SocketAddress, mapped: SocketAddress?)
        /// Refused, lost or released. Final.
        case ended
    }

    enum Output: Equatable {
        case send([UInt8])
        case allocated(relayed: SocketAddress, mapped: SocketAddress?)
        /// The allocation cannot be had, or is gone.
        case ended(reason: String)
        /// The server wants us to go elsewhere (300).
        case redirected(SocketAddress)
        /// The server does not relay to this address.
        case permissionRefused(IPAddress, reason: String)
    }

    enum Request: Equatable {
        case allocate
        case refresh(lifetime: UInt32)
        case permission(IPAddress)
        case bind(SocketAddress)
    }

    struct Transaction {
        var request: Request
        var packet: [UInt8]
        var schedule: STUNRetransmission
        /// Repetitions because of 401 or 438.
        var retries = 0
        var sentAt: Instant
    }

    static let permissionLifetime = Duration.seconds(300)
    static let channelLifetime = Duration.seconds(600)
    /// Repetitions of one request because of stale nonces.
    static let retryLimit = 4

    let isStream: Bool
    private(set) var state = State.allocating
    private(set) var credentials: LongTermCredentials
    var random: RandomSource
    var transactions: [STUNTransactionID: Transaction] = [:]
    var permissions = TURNPermissions()
    var channels = TURNChannels()
    private var refreshAt: Instant?
    private var family: STUNAddressFamily?
    private var outputs: [Output] = []
    /// Round trip of the latest answered request that was sent once.
    private(set) var roundTripTime: Duration?

    init(username: String, credential: String, isStream: Bool, random: RandomSource) {
        credentials = LongTermCredentials(username: username, password: credential)
        self.isStream = isStream
        self.random = random
    }

    var relayedAddress: SocketAddress? {
        if case .allocated(let relayed, _) = state { relayed } else { nil }
    }

    // MARK: Life

    /// Sends the first request, without credentials: the server's answer says what it wants.
    func start(now: Instant) { send(.allocate, now: now) }

    /// Gives the allocation back.
    func release(now: Instant) {
        guard case .allocated = state else {
            end()
            return
        }
        transactions = [:]
        send(.refresh(lifetime: 0), now: now)
        end()
    }

    /// Its connection is gone: nothing more to send.
    func abandon() {
        end()
        outputs = []
    }

    private func end() {
        state = .ended
        transactions = [:]
        refreshAt = nil
    }

    private func end(_ reason: String) {
        guard state != .ended else { return }
        end()
        outputs.append(.ended(reason: reason))
    }

    func poll() -> Output? { outputs.isEmpty ? nil : outputs.removeFirst() }

    func emit(_ output: Output) { outputs.append(output) }

    // MARK: Time

    var nextTimeout: Instant? {
        guard state != .ended else { return nil }
        let times =
            transactions.values.map(\.schedule.next)
            + [refreshAt, permissions.nextRefresh, channels.nextEvent].compactMap { $0 }
        return times.min()
    }

    func handleTimeout(now: Instant) {
        for (id, transaction) in transactions {
            var transaction = transaction
            guard let event = transaction.schedule.handleTimeout(now: now) else { continue }
            switch event {
            case .retransmit:
                transactions[id] = transaction
                outputs.append(.send(transaction.packet))
            case .timeout:
                transactions[id] = nil
                fail(transaction.request, "no answer from the TURN server", now: now)
            }
        }
        guard case .allocated = state else { return }
        if let refreshAt, now >= refreshAt {
            self.refreshAt = nil
            send(.refresh(lifetime: 600), now: now)
        }
        for ip in permissions.due(now: now) { send(.permission(ip), now: now) }
        for peer in channels.due(now: now) { send(.bind(peer), now: now) }
    }

    /// Finds out whether the server still has the allocation.
    func probe(now: Instant) {
        guard case .allocated = state, refreshAt != nil else { return }
        refreshAt = nil
        send(.refresh(lifetime: 600), now: now)
    }

    // MARK: Requests

    func send(_ request: Request, retries: Int = 0, now: Instant) {
        let id = STUNTransactionID(random: &random)
        var message = STUNMessage(.request, .allocate, transactionID: id)
        switch request {
        case .allocate:
            message.attributes = [.requestedTransport(17)]
            if let family { message.attributes.append(.requestedAddressFamily(family)) }
        case .refresh(let lifetime):
            message.method = .refresh
            message.attributes = [.lifetime(lifetime)]
        case .permission(let ip):
            message.method = .createPermission
            message.attributes = [.xorPeerAddress(SocketAddress(ip, port: 0))]
        case .bind(let peer):
            guard let number = channels.number(for: peer) else { return }
            message.method = .channelBind
            message.attributes = [.channelNumber(number), .xorPeerAddress(peer)]
        }
        message.attributes += credentials.attributes
        let packet = message.serialized(integrity: credentials.integrity)
        transactions[id] = Transaction(
            request: request, packet: packet, schedule: STUNRetransmission(now: now, isReliable: isStream),
            retries: retries, sentAt: now)
        outputs.append(.send(packet))
    }

    // MARK: Answers

    /// True if the message answers a request of this allocation.
    func isExpecting(_ message: STUNMessage) -> Bool { transactions[message.transactionID] != nil }

    func handleAnswer(_ message: STUNMessage, now: Instant) {
        guard let transaction = transactions[message.transactionID], message.unknownRequired.isEmpty else { return }
        if message.messageClass == .error {
            handleError(message, transaction, now: now)
            return
        }
        if let integrity = credentials.integrity, !message.isAuthentic(integrity) { return }
        transactions[message.transactionID] = nil
        credentials.noteSuccess()
        if transaction.schedule.sent == 1 { roundTripTime = now - transaction.sentAt }
        switch transaction.request {
        case .allocate:
            guard let relayed = message.relayedAddress else {
                end("the TURN server's answer has no relayed address")
                return
            }
            state = .allocated(relayed: relayed, mapped: message.mappedAddress)
            scheduleRefresh(message.lifetime, now: now)
            outputs.append(.allocated(relayed: relayed, mapped: message.mappedAddress))
        case .refresh(let lifetime):
            if lifetime > 0 { scheduleRefresh(message.lifetime, now: now) }
        case .permission(let ip):
            for packet in permissions.noteGranted(
                ip, repeatHeld: transaction.retries > 0 || transaction.schedule.sent > 1, now: now)
            {
                outputs.append(.send(packet))
            }
        case .bind(let peer):
            channels.noteBound(peer, now: now)
        }
    }

    private func scheduleRefresh(_ lifetime: UInt32?, now: Instant) {
        let seconds = Int64(min(max(lifetime ?? 600, 2), 86_400))
        // Early enough for a whole round of retransmissions.
        refreshAt = now + (seconds > 120 ? .seconds(seconds - 60) : .seconds(seconds) / 2)
    }

    private func handleError(_ message: STUNMessage, _ transaction: Transaction, now: Instant) {
        let error = message.errorCode ?? STUNErrorCode(500, "")
        let isSigned = credentials.integrity.map { message.isAuthentic($0) } ?? false
        switch error.code {
        case 401, 438:
            transactions[message.transactionID] = nil
            let verdict = credentials.update(from: message)
            if case .refused(let reason) = verdict {
                // Unsigned, it must not end what works: the request fails like one without answer.
                fail(transaction.request, reason, now: now)
            } else if transaction.retries >= TURNAllocation.retryLimit {
                fail(transaction.request, "the TURN server keeps refusing the nonce it gave (\(error))", now: now)
            } else {
                // ICE8: on every kind of request.
                send(transaction.request, retries: transaction.retries + 1, now: now)
            }
        case 300 where transaction.request == .allocate:
            transactions[message.transactionID] = nil
            guard let alternate = message.alternateServer else {
                end("the TURN server redirects (300) without saying where to")
                return
            }
            outputs.append(.redirected(alternate))
        case 440 where transaction.request == .allocate && family == nil:
            transactions[message.transactionID] = nil
            family = .ipv6
            send(.allocate, now: now)
        default:
            // SAF2: a running allocation ends by signed answers only.
            if case .allocated = state, credentials.integrity != nil, !isSigned { return }
            transactions[message.transactionID] = nil
            if error.code == 437, case .allocated = state {
                end("the TURN server has lost the allocation (437)")
                return
            }
            fail(transaction.request, "the TURN server answered \(error)", now: now)
        }
    }

    private func fail(_ request: Request, _ reason: String, now: Instant) {
        switch request {
        case .allocate: end(reason)
        case .refresh(let lifetime): if lifetime > 0 { end(reason) }
        case .permission(let ip):
            permissions.noteRefused(ip)
            outputs.append(.permissionRefused(ip, reason: reason))
        case .bind(let peer): channels.noteRefused(peer, now: now)
        }
    }
}
