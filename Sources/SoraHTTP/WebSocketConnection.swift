import SoraWire

/// One end of an open WebSocket (RFC 6455), as a state machine without a socket or clock.
///
/// Feed it what the stream delivers (``handle(_:now:)``, ``handleEnd(now:)``), call
/// ``handleTimeout(now:)`` at ``nextTimeout``, and drain ``poll()`` after every call.
///
/// Invariants: ``Output/closed(_:)`` comes exactly once, no message follows it, and
/// ``Output/closeStream`` comes exactly once as the last output. Memory is bounded by the largest
/// message plus what is fed at once.
package struct WebSocketConnection: Sendable {
    package enum Role: Sendable { case client, server }

    package struct Configuration: Sendable, Equatable {
        /// Bytes of one message; longer ones fail the connection with 1009. Default 4 MiB.
        package var maximumMessageSize = 4 << 20
        /// From our Close frame until we give up waiting for the peer's, and from the end of the handshake
        /// until a client gives up waiting for the server to end the stream. Default 3 s.
        package var closeTimeout: Duration = .seconds(3)
        /// Frames of one message; more fail the connection with 1008. Empty fragments would never reach the size.
        package var maximumFragments = 65_536
        package init() {}
        package init(maximumMessageSize: Int = 4 << 20, closeTimeout: Duration = .seconds(3)) {
            self.maximumMessageSize = maximumMessageSize
            self.closeTimeout = closeTimeout
        }
    }

    package enum Output: Sendable, Equatable {
        /// Bytes for the stream.
        case transmit([UInt8])
        case text(String)
        case binary([UInt8])
        /// The peer pinged; it is answered already.
        case ping([UInt8])
        case pong([UInt8])
        case closed(WebSocketClosure)
        /// End the stream, gracefully behind what was transmitted.
        case closeStream
    }

    private enum State {
        /// → closing (our Close frame), draining (the peer's, or a failure), ended
        case open
        /// Our Close frame is out, messages still come in. → draining, ended
        case closing
        /// Closed; a client waits for the server to end the stream. Input is ignored. → ended
        case draining
        case ended
    }

    package let role: Role
    private let configuration: Configuration
    private var random: RandomSource
    private var state = State.open
    private var outputs: [Output] = []
    private var nextOutput = 0
    package private(set) var nextTimeout: Instant?

    // Reading.
    private var buffer: [UInt8] = []
    private var position = 0
    private var frame: WebSocketFrameHeader?
    /// Bytes of the frame's payload already taken.
    private var framePosition = 0
    private var control: [UInt8] = []
    /// Opcode of the message whose fragments are coming in.
    private var messageKind: WebSocketOpcode?
    private var message: [UInt8] = []
    private var fragments = 0
    private var validator = UTF8Validator()

    /// - Parameter random: Source of a client's masking keys.
    package init(role: Role, configuration: Configuration = Configuration(), random: RandomSource) {
        self.role = role
        self.configuration = configuration
        self.random = random
    }

    /// Whether messages can be sent.
    package var isOpen: Bool { if case .open = state { true } else { false } }

    // MARK: Output

    package mutating func poll() -> Output? {
        guard nextOutput < outputs.count else {
            if nextOutput > 0 {
                outputs.removeAll(keepingCapacity: nextOutput < 1024)
                nextOutput = 0
            }
            return nil
        }
        defer { nextOutput += 1 }
        let output = outputs[nextOutput]
        outputs[nextOutput] = .closeStream  // lets go of the payload
        return output
    }

    // MARK: Sending

    package mutating func send(text: String) throws(WebSocketError) {
        try send(.text, Array(text.utf8))
    }

    package mutating func send(binary: [UInt8]) throws(WebSocketError) {
        try send(.binary, binary)
    }

    /// - Parameter payload: At most 125 bytes; more are cut off.
    package mutating func ping(_ payload: [UInt8] = []) throws(WebSocketError) {
        try send(.ping, Array(payload.prefix(125)))
    }

    private mutating func send(_ opcode: WebSocketOpcode, _ payload: [UInt8]) throws(WebSocketError) {
        guard case .open = state else { throw .notOpen }
        transmit(opcode, payload)
    }

    /// Begins the closing handshake. Repeated calls do nothing.
    /// - Parameters:
    ///   - code: A sendable one, or nil for a Close frame without code.
    ///   - reason: Cut to 123 bytes of UTF-8.
    package mutating func close(code: UInt16? = 1000, reason: String = "", now: Instant) throws(WebSocketError) {
        if let code, !WebSocketCloseCode.isSendable(code) { throw .forbiddenCloseCode(code) }
        guard case .open = state else { return }
        sendClose(code, reason)
        state = .closing
        nextTimeout = now + configuration.closeTimeout
    }

    private mutating func sendClose(_ code: UInt16?, _ reason: String) {
        var writer = ByteWriter()
        if let code {
            writer.write(code)
            writer.write(Array(WebSocketCloseCode.fitting(reason).utf8))
        }
        transmit(.close, writer.bytes)
    }

    private mutating func transmit(_ opcode: WebSocketOpcode, _ payload: [UInt8]) {
        let mask = role == .client ? UInt32(truncatingIfNeeded: random.next()) : nil
        outputs.append(.transmit(WebSocketFrameHeader.frame(opcode, mask: mask, payload: payload)))
    }

    // MARK: Ends

    /// The stream delivers no more.
    package mutating func handleEnd(now: Instant) {
        switch state {
        case .open: finish(WebSocketClosure(code: 1006, error: .streamEnded, isLocal: false))
        case .closing: finish(WebSocketClosure(code: 1006, error: .streamEnded, isLocal: true))
        case .draining: end()
        case .ended: break
        }
    }

    package mutating func handleTimeout(now: Instant) {
        guard let deadline = nextTimeout, deadline <= now else { return }
        nextTimeout = nil
        switch state {
        case .closing: finish(WebSocketClosure(code: 1006, error: .closeTimeout, isLocal: true))
        case .draining: end()
        case .open, .ended: break
        }
    }

    /// Tells how it ended and ends the stream at once.
    private mutating func finish(_ closure: WebSocketClosure) {
        outputs.append(.closed(closure))
        end()
    }

    private mutating func end() {
        state = .ended
        nextTimeout = nil
        outputs.append(.closeStream)
        release()
    }

    private mutating func release() {
        buffer = []
        position = 0
        frame = nil
        control = []
        message = []
        messageKind = nil
    }

    /// "Fail the WebSocket connection" (RFC 6455, 7.1.7).
    private mutating func fail(_ error: WebSocketError) {
        // Whoever writes a client is told what was wrong with it; servers get the code alone.
        if case .open = state { sendClose(error.closeCode, role == .server ? "\(error)" : "") }
        finish(WebSocketClosure(code: error.closeCode, error: error, isLocal: true))
    }

    // MARK: Reading

    /// Takes bytes of the stream, in any pieces.
    package mutating func handle(_ bytes: [UInt8], now: Instant) {
        guard isReading else { return }
        if position == buffer.count {
            buffer = bytes
        } else {
            buffer.removeFirst(position)
            buffer += bytes
        }
        position = 0
        do throws(WebSocketError) {
            while isReading, try advance(now: now) {}
        } catch {
            fail(error)
        }
    }

    private var isReading: Bool {
        switch state {
        case .open, .closing: true
        case .draining, .ended: false
        }
    }

    /// One step: a header, or a piece of payload. False if more bytes are needed.
    private mutating func advance(now: Instant) throws(WebSocketError) -> Bool {
        guard let frame else {
            var reader = ByteReader(buffer, in: position..<buffer.count)
            guard let header = try WebSocketFrameHeader.read(from: &reader) else { return false }
            position = reader.position
            try begin(header)
            self.frame = header
            framePosition = 0
            return true
        }
        let count = min(frame.payloadLength - framePosition, buffer.count - position)
        if count == 0, framePosition < frame.payloadLength { return false }
        if frame.opcode.isControl {
            append(count, of: frame, to: \.control)
        } else {
            let start = message.count
            append(count, of: frame, to: \.message)
            if messageKind == .text, !validator.check(message[start...]) { throw .invalidUTF8 }
        }
        position += count
        framePosition += count
        guard framePosition == frame.payloadLength else { return false }
        self.frame = nil
        try finish(frame, now: now)
        return true
    }

    private mutating func append(
        _ count: Int, of frame: WebSocketFrameHeader, to target: WritableKeyPath<WebSocketConnection, [UInt8]>
    ) {
        var taken: [UInt8] = []
        swap(&taken, &self[keyPath: target])  // grows in place
        let start = taken.count
        taken += buffer[position..<(position + count)]
        if let mask = frame.mask {
            WebSocketFrameHeader.applyMask(mask, to: &taken, from: start, phase: framePosition)
        }
        swap(&taken, &self[keyPath: target])
    }

    /// Checks a header against role, place and limits, before any of its payload is stored.
    private mutating func begin(_ header: WebSocketFrameHeader) throws(WebSocketError) {
        let isMasked = header.mask != nil
        guard isMasked == (role == .server) else { throw .wrongMasking(isMasked: isMasked) }
        switch header.opcode {
        case .close, .ping, .pong: control = []
        case .text, .binary:
            guard messageKind == nil else { throw .misplacedFrame(header.opcode) }
            messageKind = header.opcode
            message = []
            fragments = 1
            validator = UTF8Validator()
        case .continuation:
            guard messageKind != nil else { throw .misplacedFrame(.continuation) }
            fragments += 1
            guard fragments <= configuration.maximumFragments else {
                throw .tooManyFragments(limit: configuration.maximumFragments)
            }
        }
        if !header.opcode.isControl {
            guard header.payloadLength <= configuration.maximumMessageSize - message.count else {
                throw .messageTooLarge(limit: configuration.maximumMessageSize)
            }
        }
    }

    private mutating func finish(_ header: WebSocketFrameHeader, now: Instant) throws(WebSocketError) {
        switch header.opcode {
        case .ping:
            if case .open = state { transmit(.pong, control) }
            outputs.append(.ping(control))
        case .pong: outputs.append(.pong(control))
        case .close: try finishClose(now: now)
        case .text, .binary, .continuation:
            guard header.isFinal else { return }
            let payload = message
            let isText = messageKind == .text
            message = []
            messageKind = nil
            if isText {
                guard validator.isComplete else { throw .invalidUTF8 }
                outputs.append(.text(String(decoding: payload, as: UTF8.self)))
            } else {
                outputs.append(.binary(payload))
            }
        }
    }

    private mutating func finishClose(now: Instant) throws(WebSocketError) {
        var closure = WebSocketClosure(code: 1005, isLocal: false)
        if control.count == 1 { throw .truncatedCloseFrame }
        if control.count >= 2 {
            closure.code = UInt16(control[0]) << 8 | UInt16(control[1])
            guard WebSocketCloseCode.isSendable(closure.code) else { throw .forbiddenCloseCode(closure.code) }
            var check = UTF8Validator()
            guard check.check(control[2...]), check.isComplete else { throw .invalidUTF8 }
            closure.reason = String(decoding: control[2...], as: UTF8.self)
        }
        if case .closing = state {
            closure.isLocal = true
        } else {
            // The echo carries the code alone.
            sendClose(closure.code == 1005 ? nil : closure.code, "")
        }
        outputs.append(.closed(closure))
        release()
        // The server ends the stream first, so that the waiting state of TCP stays with it (7.1.1).
        if role == .server { return end() }
        state = .draining
        nextTimeout = now + configuration.closeTimeout
    }
}
