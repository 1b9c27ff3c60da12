import SoraWire

/// Re-configuration requests under way in both directions (RFC 6525). One of ours at a time; numbers
/// advance in order.
struct StreamResets {
    struct Request {
        var number: UInt32
        var lastTSN: TSN
        var streams: [UInt16]

        func chunk(response: UInt32) -> ReconfigurationChunk {
            ReconfigurationChunk(parameters: [
                .outgoingReset(request: number, response: response, lastTSN: lastTSN, streams: streams)
            ])
        }
    }

    private(set) var nextRequest: UInt32
    /// The number of the peer's next request.
    private(set) var expected: UInt32 = 0
    /// What its latest request was answered.
    private(set) var lastResult: UInt32?
    private(set) var current: Request?
    /// The current request belongs into the next packet.
    private(set) var isDue = false
    /// Streams to reset once everything on them has been acknowledged.
    var waiting: [UInt16] = []
    var timer: Instant?

    init(firstRequest: UInt32) { nextRequest = firstRequest }

    mutating func expectRequest(_ number: UInt32) { expected = number }

    mutating func begin(streams: [UInt16], lastTSN: TSN) {
        current = Request(number: nextRequest, lastTSN: lastTSN, streams: streams)
        nextRequest &+= 1
        isDue = true
    }

    mutating func sent(now: Instant, wait: Duration) {
        isDue = false
        timer = now + wait
    }

    mutating func repeatRequest() {
        isDue = current != nil
        timer = nil
    }

    /// The current request is answered for good.
    mutating func finish() -> Request? {
        timer = nil
        isDue = false
        return current.take()
    }

    /// The peer's expected request was taken.
    mutating func accepted(result: UInt32) {
        expected &+= 1
        lastResult = result
    }

    mutating func revised(result: UInt32) { lastResult = result }
}

extension SCTPAssociation {
    // MARK: Ours

    /// Closes our direction of a stream after everything queued on it has arrived. Ends with
    /// ``Event/outgoingReset(_:)``. New messages on it must not be queued any more.
    mutating func resetOutgoing(_ stream: UInt16, now: Instant) {
        self.now = now
        guard !isEnded, !resets.waiting.contains(stream) else { return }
        beginBurst()
        resets.waiting.append(stream)
        startResets()
    }

    /// Puts the streams that are ready into a request, if none is under way.
    mutating func startResets() {
        guard state == .established, resets.current == nil else { return }
        var ready: [UInt16] = []
        resets.waiting.removeAll { id in
            guard ready.count < configuration.resetLimit else { return false }
            if let stream = queue.stream(id), !stream.queue.isEmpty || stream.outstanding > 0 { return false }
            ready.append(id)
            return true
        }
        guard !ready.isEmpty else { return }
        guard peerFeatures.contains(.reconfiguration) else {
            // The peer cannot be told; both directions count as closed.
            for id in ready { queue.remove(id) }
            emit(.outgoingReset(ready))
            emit(.incomingReset(ready))
            return
        }
        resets.begin(streams: ready, lastTSN: window.next + -1)
    }

    mutating func resetTimedOut() {
        resets.timer = nil
        guard resets.current != nil, countTimeout() else { return }
        timeout.backOff()
        resets.repeatRequest()
    }

    // MARK: The peer's

    mutating func handleReconfiguration(_ chunk: ReconfigurationChunk) {
        for parameter in chunk.parameters {
            switch parameter {
            case .outgoingReset(let request, _, let lastTSN, let streams):
                handleRequest(request) { association in
                    let reset = Reassembly.PendingReset(request: request, lastTSN: lastTSN, streams: streams)
                    guard association.reassembly.pendingReset == nil else { return nil }
                    guard association.reassembly.reset(reset) else { return ReconfigurationChunk.Result.inProgress }
                    association.emit(.incomingReset(streams))
                    return ReconfigurationChunk.Result.performed
                }
            case .incomingReset(let request, let streams):
                handleRequest(request) { association in
                    // The owner closes these channels, which resets our direction.
                    association.emit(.incomingReset(streams.isEmpty ? association.queue.ids : streams))
                    return ReconfigurationChunk.Result.performed
                }
            case .otherRequest(_, let request): handleRequest(request) { _ in ReconfigurationChunk.Result.denied }
            case .response(let request, let result): handleResponse(request, result)
            }
        }
    }

    /// Answers a request: a new one by carrying it out, the latest one by repeating the answer.
    /// `perform` returns nil if the request has to come again later.
    private mutating func handleRequest(_ request: UInt32, perform: (inout SCTPAssociation) -> UInt32?) {
        if request == resets.expected {
            guard let result = perform(&self) else {
                return respond(request, ReconfigurationChunk.Result.requestInProgress)
            }
            resets.accepted(result: result)
            respond(request, result)
        } else if request == resets.expected &- 1, let result = resets.lastResult {
            respond(request, result)
        } else {
            respond(request, ReconfigurationChunk.Result.badSequenceNumber)
        }
    }

    private mutating func respond(_ request: UInt32, _ result: UInt32) {
        queueControl {
            ReconfigurationChunk(parameters: [.response(request: request, result: result)]).write(to: &$0)
        }
    }

    private mutating func handleResponse(_ request: UInt32, _ result: UInt32) {
        guard let current = resets.current, current.number == request else { return }
        consecutiveTimeouts = 0
        switch result {
        case ReconfigurationChunk.Result.inProgress, ReconfigurationChunk.Result.requestInProgress:
            resets.sent(now: now, wait: timeout.current)
        default:
            guard let done = resets.finish() else { return }
            for id in done.streams { queue.remove(id) }
            emit(.outgoingReset(done.streams))
            startResets()
        }
    }

    /// A reset of the peer's that waited for data may have been carried out: say so without being asked.
    mutating func resetMayHaveCompleted() {
        guard let reset = reassembly.takeCompletedReset() else { return }
        emit(.incomingReset(reset.streams))
        if resets.expected &- 1 == reset.request { resets.revised(result: ReconfigurationChunk.Result.performed) }
        respond(reset.request, ReconfigurationChunk.Result.performed)
    }
}
