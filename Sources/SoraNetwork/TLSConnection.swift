import COpenSSL
import SoraWire

/// TLS over another stream, which may be a fresh TCP connection, an accepted one, or a tunnel through a
/// proxy. Confined to its loop. It takes the stream over: the stream's `onEvent` is its own from then on.
///
/// ``StreamEvent/opened`` comes after the handshake, when the peer's certificate has been accepted; no
/// byte of the application passes before. An end without close_notify is a failure
/// (``NetworkError/reset``), since somebody may have cut the stream.
package final class TLSConnection: ByteStream {
    package let loop: EventLoop
    package var remoteAddress: SocketAddress { base.remoteAddress }
    package var localAddress: SocketAddress { base.localAddress }
    package var lowWaterMark = 64 * 1024 {
        didSet { base.lowWaterMark = lowWaterMark }
    }
    package var onEvent: ((StreamEvent) -> Void)? {
        didSet {
            readingChanged()
            if undelivered != nil, onEvent != nil { scheduleFlush() }
        }
    }
    package var isReadingPaused = false {
        didSet { readingChanged() }
    }

    private enum State {
        /// Waits for the stream below. → handshaking, closed
        case waiting
        /// → open, closed
        case handshaking
        /// → closed
        case open
        case closed
    }
    private var state = State.waiting
    private let base: any ByteStream
    private let context: TLSContext
    /// What the certificate must be valid for; nil on a server.
    private let serverName: String?
    private var ssl: OpaquePointer?
    /// What came from below, and what shall go there. Owned by `ssl`.
    private var input: OpaquePointer?
    private var output: OpaquePointer?
    /// Written by the application and not yet encrypted.
    private var plaintext: [UInt8] = []
    private var isFlushScheduled = false
    private var isAboveLowWater = false
    private var isFinishing = false
    private var isFinished = false
    private var peerEnded = false
    private var deadlineTimer: LoopTimer?
    /// The end came while nobody listened: told to the next who does.
    private var undelivered: StreamEvent?

    /// A client's end.
    /// - Parameters:
    ///   - serverName: DNS name or IP address that the certificate must be valid for; names are sent as SNI.
    ///   - deadline: When the handshake must be done.
    package convenience init(
        client context: TLSContext, serverName: String, over base: any ByteStream, deadline: Instant? = nil
    ) throws(TLSFailure) {
        try self.init(context, serverName, base, deadline)
    }

    /// A server's end.
    package convenience init(
        server context: TLSContext, over base: any ByteStream, deadline: Instant? = nil
    ) throws(TLSFailure) {
        try self.init(context, nil, base, deadline)
    }

    private init(
        _ context: TLSContext, _ serverName: String?, _ base: any ByteStream, _ deadline: Instant?
    ) throws(TLSFailure) {
        base.loop.assertOnLoop()
        loop = base.loop
        self.base = base
        self.context = context
        self.serverName = serverName
        try prepare()
        base.lowWaterMark = lowWaterMark
        base.isReadingPaused = false
        loop.addLayer(self)  // which keeps it alive until it is closed
        base.onEvent = { [weak self] in self?.handle($0) }
        if let deadline {
            deadlineTimer = loop.scheduleTimer(at: deadline) { [weak self] in
                self?.fail(.timedOut(stage: "TLS handshake with \(serverName ?? "client")"))
            }
        }
        if base.isOpen { scheduleFlush() }
    }

    deinit { SSL_free(ssl) }

    private func prepare() throws(TLSFailure) {
        guard let ssl = SSL_new(context.pointer) else { throw .badConfiguration(reason: openSSLErrors()) }
        self.ssl = ssl
        guard let input = BIO_new(BIO_s_mem()), let output = BIO_new(BIO_s_mem()) else {
            throw .badConfiguration(reason: openSSLErrors())
        }
        // Empty means "not yet", not "end".
        sora_BIO_set_mem_eof_return(input, -1)
        sora_BIO_set_mem_eof_return(output, -1)
        SSL_set_bio(ssl, input, output)
        self.input = input
        self.output = output
        guard context.isClient else { return SSL_set_accept_state(ssl) }
        SSL_set_connect_state(ssl)
        let name = serverName ?? ""
        let parameters = SSL_get0_param(ssl)
        if IPAddress(name) != nil {
            if context.verifiesPeer, X509_VERIFY_PARAM_set1_ip_asc(parameters, name) != 1 {
                throw .badConfiguration(reason: "\(name) cannot be checked as an address")
            }
        } else {
            let bare = name.hasSuffix(".") ? String(name.dropLast()) : name
            X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
            // An empty name would switch the check off.
            if context.verifiesPeer, bare.isEmpty || SSL_set1_host(ssl, bare) != 1 {
                throw .badConfiguration(reason: "\"\(bare)\" cannot be checked as a server name")
            }
            _ = sora_SSL_set_tlsext_host_name(ssl, bare)
        }
        ERR_clear_error()
    }

    package var isOpen: Bool { state == .open }
    package var bufferedAmount: Int { plaintext.count + base.bufferedAmount }
    /// `TLSv1.3` and the like; nil before the handshake is done.
    package var protocolVersion: String? {
        guard state == .open, let ssl else { return nil }
        return SSL_get_version(ssl).map { String(cString: $0) }
    }

    /// The negotiated cipher suite; nil before the handshake is done.
    package var cipherName: String? {
        guard state == .open, let ssl, let cipher = SSL_get_current_cipher(ssl) else { return nil }
        return SSL_CIPHER_get_name(cipher).map { String(cString: $0) }
    }
    /// The certificates that a server showed, in DER, the leaf first: of an open connection, or of one whose
    /// handshake failed, for reports. Empty if none came.
    package var peerCertificates: [[UInt8]] {
        ssl.map { TLSConnection.certificates(shownTo: $0) } ?? refusedCertificates
    }
    private var refusedCertificates: [[UInt8]] = []

    private static func certificates(shownTo ssl: OpaquePointer) -> [[UInt8]] {
        guard let chain = SSL_get_peer_cert_chain(ssl) else { return [] }
        return (0..<max(0, OPENSSL_sk_num(chain))).compactMap { index in
            guard let certificate = OPENSSL_sk_value(chain, index) else { return nil }
            let pointer = OpaquePointer(certificate)
            let count = i2d_X509(pointer, nil)
            guard count > 0 else { return nil }
            return [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, filled in
                var cursor = buffer.baseAddress
                filled = max(0, Int(i2d_X509(pointer, &cursor)))
            }
        }
    }

    package func write(_ bytes: [UInt8]) {
        loop.assertOnLoop()
        guard state != .closed, !isFinishing, !bytes.isEmpty else { return }
        plaintext += bytes
        if bufferedAmount > lowWaterMark { isAboveLowWater = true }
        if state == .open { scheduleFlush() }
    }

    package func finish() {
        loop.assertOnLoop()
        guard state != .closed, !isFinishing else { return }
        isFinishing = true
        if state == .open { scheduleFlush() }
    }

    package func close() {
        loop.assertOnLoop()
        onEvent = nil
        if state == .open {
            encrypt()
            if !isFinished, let ssl { SSL_shutdown(ssl) }
            forward()
        }
        undelivered = nil
        if state != .closed { shut() }
    }

    /// Forgets everything and closes the stream below.
    private func shut() {
        state = .closed
        deadlineTimer?.cancel()
        deadlineTimer = nil
        onEvent = nil
        plaintext = []
        SSL_free(ssl)
        ssl = nil
        input = nil
        output = nil
        base.close()
        loop.removeLayer(self)
    }

    private func fail(_ error: NetworkError?) {
        guard state != .closed else { return }
        forward()  // the alert that tells the peer why
        let handler = onEvent
        shut()
        if let handler { handler(.closed(error)) } else { undelivered = .closed(error) }
    }

    private func scheduleFlush() {
        guard !isFlushScheduled else { return }
        isFlushScheduled = true
        loop.flushAtEndOfTurn(self)
    }

    private func readingChanged() {
        guard state == .open else { return }  // the handshake reads in any case
        let stops = isReadingPaused || onEvent == nil
        if base.isReadingPaused != stops { base.isReadingPaused = stops }
        if !stops { scheduleFlush() }  // what is decrypted or waits to be
    }

    // MARK: The stream below

    private func handle(_ event: StreamEvent) {
        switch event {
        case .opened: startHandshake()
        case .data(let bytes):
            guard let input else { return }
            _ = BIO_write(input, bytes, Int32(clamping: bytes.count))
            pump()
        case .writable: reportWritable()
        case .ended:
            // In order only behind close_notify.
            if !peerEnded {
                fail(state == .open ? .reset : .tls(.protocolError(reason: "the peer ended the handshake")))
            }
        case .closed(let error): fail(peerEnded && isFinished ? error : error ?? .reset)
        }
    }

    private func startHandshake() {
        guard state == .waiting else { return }
        state = .handshaking
        pump()
    }

    /// Goes on with whatever the bytes at hand allow.
    private func pump() {
        if state == .handshaking { shakeHands() }
        if state == .open { decrypt() }
        if state != .closed { forward() }
    }

    private func shakeHands() {
        guard let ssl else { return }
        ERR_clear_error()
        let result = SSL_do_handshake(ssl)
        if result == 1 {
            state = .open
            deadlineTimer?.cancel()
            deadlineTimer = nil
            forward()
            onEvent?(.opened)
            guard state == .open else { return }
            readingChanged()
            if !plaintext.isEmpty || isFinishing { scheduleFlush() }
            return
        }
        guard SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ else { return forward() }
        if context.isClient { refusedCertificates = TLSConnection.certificates(shownTo: ssl) }
        fail(.tls(TLSFailure(of: ssl, serverName: serverName)))
    }

    private func decrypt() {
        while state == .open, !peerEnded, let ssl, let handler = onEvent, !isReadingPaused {
            let buffer = loop.buffers.stream
            ERR_clear_error()
            let count = SSL_read(ssl, buffer.baseAddress, Int32(buffer.count))
            if count > 0 {
                handler(.data(Array(buffer[..<Int(count)])))
                continue
            }
            switch SSL_get_error(ssl, count) {
            case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return
            case SSL_ERROR_ZERO_RETURN:
                peerEnded = true
                handler(.ended)
            default: fail(.tls(TLSFailure(of: ssl, serverName: serverName)))
            }
        }
    }

    private func encrypt() {
        guard let ssl, !plaintext.isEmpty else { return }
        ERR_clear_error()
        let size = min(plaintext.count, 1 << 30)
        let written = Int(SSL_write(ssl, plaintext, Int32(size)))
        guard written > 0 else { return fail(.tls(TLSFailure(of: ssl, serverName: serverName))) }
        plaintext.removeFirst(written)
    }

    /// Hands what OpenSSL produced to the stream below.
    private func forward() {
        guard let output, BIO_ctrl_pending(output) > 0 else { return }
        base.write(PEM.drain(output))
    }

    private func reportWritable() {
        guard state == .open, isAboveLowWater, bufferedAmount <= lowWaterMark else { return }
        isAboveLowWater = false
        onEvent?(.writable)
    }
}

extension TLSConnection: LoopLayer {
    func loopStops() {
        if state != .closed { shut() }
    }
}

extension TLSConnection: TurnFlushing {
    func flush() {
        isFlushScheduled = false
        if let event = undelivered, let handler = onEvent {
            undelivered = nil
            onEvent = nil
            handler(event)
        }
        if state == .waiting, base.isOpen { startHandshake() }
        guard state == .open else { return }
        while state == .open, !plaintext.isEmpty { encrypt() }
        forward()
        if state == .open, isFinishing, !isFinished, let ssl {
            isFinished = true
            SSL_shutdown(ssl)
            forward()
            base.finish()
        }
        if state == .open { decrypt() }
        if state == .open { forward() }
        reportWritable()
    }
}

extension TLSFailure {
    /// Reads why the last operation on `ssl` failed.
    init(of ssl: OpaquePointer, serverName: String?) {
        let verification = SSL_get_verify_result(ssl)
        let code = ERR_peek_error()
        let reason = openSSLErrors()
        // Alerts are numbered 1000 + the alert's number.
        let number = Int(code & 0x7F_FFFF)
        if (1000..<1256).contains(number) {
            self = .refusedByPeer(alert: reason)
            return
        }
        guard verification != Int(X509_V_OK), SSL_get_verify_mode(ssl) & SSL_VERIFY_PEER != 0 else {
            self = .protocolError(reason: reason)
            return
        }
        let text = X509_verify_cert_error_string(verification).map { String(cString: $0) } ?? "error \(verification)"
        switch Int32(truncatingIfNeeded: verification) {
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_UNTRUSTED:
            self = .unknownAuthority(reason: text)
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            self = .wrongName(expected: serverName ?? "")
        case X509_V_ERR_CERT_HAS_EXPIRED: self = .expired
        case X509_V_ERR_CERT_NOT_YET_VALID: self = .notYetValid
        default: self = .badCertificate(reason: text)
        }
    }
}
