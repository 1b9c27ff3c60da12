import COpenSSL
import SoraCrypto
import SoraWire

/// One end of a DTLS 1.2 association with SRTP keying (RFC 6347, RFC 5764, RFC 8827), on OpenSSL.
///
/// Invariant: neither application data nor keys come out, and no application data goes in, before
/// the peer has proved to own a certificate that its description named.
///
/// The owner gives it every datagram of the validated pair whose first byte is 20...63, and drains
/// ``poll()`` after every call. Retransmission of the handshake starts at 50 ms and doubles up to
/// three seconds; a server waits for its ClientHello without a timer. OpenSSL measures that time
/// with `gettimeofday`; ``nextTimeout`` translates it to the owner's clock at every call.
///
/// A bad record is dropped: garbage, replays, cut-off or unauthenticated records never end an
/// association. Renegotiation and resumption are off.
package final class DTLSEndpoint {
    package enum Role: Sendable { case client, server }

    package enum Output: Equatable, Sendable {
        /// A datagram for the peer.
        case transmit([UInt8])
        /// The handshake is complete and the peer is who it should be. The keys are nil if no SRTP
        /// profile was negotiated and none was required.
        case connected(SRTPKeyingMaterial?)
        /// One record of the peer.
        case applicationData([UInt8])
        /// The association ended in order, by either side. Last output.
        case closed
        /// The association ended for a reason. Last output but for an alert to the peer before it.
        case failed(DTLSError)
    }

    /// new → handshaking → connected → ended; every state may go to ended.
    enum State { case new, handshaking, connected, ended }

    /// What ``init(certificate:role:remoteFingerprints:srtpProfiles:requiresSRTP:maximumDatagramSize:)`` accepts.
    /// OpenSSL wants 256 bytes at least, and assembles flights in a buffer of 4,096.
    package static let datagramSizes = 256...4096

    package let role: Role
    package let maximumDatagramSize: Int
    let remoteFingerprints: [DTLSFingerprint]
    let srtpProfiles: [SRTPProfile]
    let requiresSRTP: Bool

    private(set) var state = State.new
    /// Why the certificate was refused, set by ``verify(_:)`` in the middle of a handshake.
    private var rejection: DTLSError?
    private let ssl: OpaquePointer
    private let bio: DatagramBIO
    private var outputs: [Output] = []
    private var nextOutput = 0
    private var retransmissionDeadline: Instant?
    private var plainAlert: (code: UInt8, deadline: Instant)?
    private var earlyDatagrams: [[UInt8]] = []
    /// Counts up to ``busyFrom``.
    private var receivedDatagrams = 0

    /// - Parameters:
    ///   - remoteFingerprints: From the peer's description. One match is enough (RFC 8122 5).
    ///   - srtpProfiles: Offered or accepted, most wanted first. Empty: no SRTP.
    ///   - requiresSRTP: Whether a handshake without a common profile fails. Only a session that will
    ///     never carry media may do without.
    ///   - maximumDatagramSize: Limit for each datagram, in bytes of UDP payload.
    /// - Throws: `noUsableFingerprint`, `invalidDatagramSize`.
    package init(
        certificate: DTLSCertificate, role: Role, remoteFingerprints: [DTLSFingerprint], srtpProfiles: [SRTPProfile],
        requiresSRTP: Bool = true, maximumDatagramSize: Int = 1200
    ) throws(DTLSError) {
        guard remoteFingerprints.contains(where: \.isUsable) else { throw .noUsableFingerprint(remoteFingerprints) }
        guard Self.datagramSizes.contains(maximumDatagramSize) else {
            throw .invalidDatagramSize(maximumDatagramSize, allowed: Self.datagramSizes)
        }
        self.role = role
        self.maximumDatagramSize = maximumDatagramSize
        self.remoteFingerprints = remoteFingerprints
        self.srtpProfiles = srtpProfiles
        self.requiresSRTP = requiresSRTP && !srtpProfiles.isEmpty
        bio = DatagramBIO(maximumDatagramSize: maximumDatagramSize)
        guard let ssl = certificate.makeConnection() else { throw .cryptography(operation: "making a DTLS endpoint") }
        self.ssl = ssl
        try configure()
    }

    deinit { SSL_free(ssl) }

    // MARK: Input

    /// Begins. A client sends its ClientHello; a server waits for one.
    package func start(now: Instant) {
        guard state == .new else { return }
        state = .handshaking
        if role == .client { continueHandshake() }
        finishTurn(now: now)
    }

    /// Takes one datagram of the peer.
    package func handle(_ packet: [UInt8], now: Instant) {
        guard state == .handshaking || state == .connected else { return }
        process(packet, now: now)
        finishTurn(now: now)
    }

    /// Retransmits, or gives up, if ``nextTimeout`` has come.
    package func handleTimeout(now: Instant) {
        guard state == .handshaking else { return }
        if let plainAlert, plainAlert.deadline <= now {
            return fail(.peerAlert(code: plainAlert.code, name: Self.alertName(plainAlert.code)))
        }
        if let retransmissionDeadline, retransmissionDeadline <= now {
            ERR_clear_error()
            if sora_DTLSv1_handle_timeout(ssl) < 0 { fail(.timedOut) }
        }
        finishTurn(now: now)
    }

    /// When ``handleTimeout(now:)`` is to be called.
    package var nextTimeout: Instant? {
        guard state == .handshaking else { return nil }
        guard let plainAlert else { return retransmissionDeadline }
        return min(plainAlert.deadline, retransmissionDeadline ?? plainAlert.deadline)
    }

    /// Sends one record.
    package func send(_ applicationData: [UInt8]) throws(DTLSError) {
        guard state == .connected else { throw .notConnected }
        let maximum = maximumApplicationDataSize
        guard !applicationData.isEmpty, applicationData.count <= maximum else {
            throw .messageTooLarge(size: applicationData.count, maximum: maximum)
        }
        ERR_clear_error()
        SSL_alloc_buffers(ssl)
        let written = SSL_write(ssl, applicationData, Int32(truncatingIfNeeded: applicationData.count))
        guard written == applicationData.count else {
            let error = DTLSError.connectionFailed(reason: Self.libraryReason())
            fail(error)
            throw error
        }
        collectDatagrams()
    }

    /// The most bytes that ``send(_:)`` takes: what one record holds within the datagram limit.
    package var maximumApplicationDataSize: Int {
        state == .connected ? DTLS_get_data_mtu(ssl) : 0
    }

    /// Ends the association and tells the peer if it can.
    package func close() {
        guard state != .ended else { return }
        if state == .connected { sendCloseNotify() }
        end(.closed)
    }

    /// The next result, in order; nil when there is none.
    package func poll() -> Output? {
        guard nextOutput < outputs.count else { return nil }
        let output = outputs[nextOutput]
        nextOutput += 1
        if nextOutput == outputs.count {
            outputs.removeAll(keepingCapacity: outputs.capacity <= Self.keptCapacity)
            nextOutput = 0
        }
        return output
    }
}

// MARK: - Turns of the machine

extension DTLSEndpoint {
    /// Queues up to this size are kept when they are empty.
    private static let keptCapacity = 16
    /// How many datagrams with data that overtook the end of the handshake are kept.
    private static let maximumEarlyDatagrams = 16
    /// From how many datagrams on an endpoint counts as one that carries much.
    private static let busyFrom = 1000
    /// How long a plain alert waits for the handshake to prove it a forgery.
    private static let plainAlertPatience = Duration.seconds(1)

    private func process(_ packet: [UInt8], now: Instant) {
        let records = DTLSRecords(of: packet, isConnected: state == .connected)
        if let code = records.plainFatalAlert, plainAlert == nil {
            plainAlert = (code, now + Self.plainAlertPatience)
        }
        if !records.early.isEmpty, earlyDatagrams.count < Self.maximumEarlyDatagrams {
            earlyDatagrams.append(records.early)
        }
        guard !records.accepted.isEmpty else { return }
        bio.inbound = records.accepted
        if state == .handshaking { continueHandshake() }
        if state == .connected { readRecords(upTo: records.accepted.count) }
        bio.inbound = nil
    }

    private func continueHandshake() {
        ERR_clear_error()
        let status = SSL_do_handshake(ssl)
        if status == 1 {
            completeHandshake()
        } else {
            switch SSL_get_error(ssl, status) {
            case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return
            default: fail(rejection ?? Self.failure(isHandshake: true))
            }
        }
    }

    private func completeHandshake() {
        // The callback has refused every other certificate; keys must not depend on that alone.
        guard rejection == nil, let certificate = SSL_get1_peer_certificate(ssl) else {
            return fail(rejection ?? .handshakeFailed(reason: "the peer showed no certificate"))
        }
        let der = DTLSCertificate.der(of: certificate)
        X509_free(certificate)
        guard let der, DTLSFingerprint.matches(remoteFingerprints, certificate: der) else {
            return fail(.handshakeFailed(reason: "the peer's certificate cannot be read"))
        }
        let material = exportKeys()
        guard material != nil || !requiresSRTP else { return fail(.noCommonSRTPProfile(offered: srtpProfiles)) }
        state = .connected
        plainAlert = nil
        // Sizes of data records are computed in full, so the whole datagram is free for them.
        _ = sora_SSL_set_mtu(ssl, maximumDatagramSize)
        collectDatagrams()
        outputs.append(.connected(material))
        let early = earlyDatagrams
        earlyDatagrams = []
        let rest = bio.inbound
        for datagram in early where state == .connected {
            bio.inbound = datagram
            readRecords(upTo: datagram.count)
        }
        bio.inbound = rest
    }

    /// Reads all records of the datagram at hand, which together have at most `limit` bytes.
    private func readRecords(upTo limit: Int) {
        while state == .connected, bio.inbound != nil || SSL_has_pending(ssl) == 1 {
            ERR_clear_error()
            var status: Int32 = 0
            let data = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
                status = SSL_read(ssl, buffer.baseAddress, Int32(truncatingIfNeeded: limit))
                count = max(Int(status), 0)
            }
            if status > 0 {
                outputs.append(.applicationData(data))
                continue
            }
            switch SSL_get_error(ssl, status) {
            case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return
            case SSL_ERROR_ZERO_RETURN:
                sendCloseNotify()
                end(.closed)
            default: fail(Self.failure(isHandshake: false))
            }
        }
    }

    private func finishTurn(now: Instant) {
        collectDatagrams()
        guard state == .handshaking else {
            retransmissionDeadline = nil
            releaseBuffersIfQuiet()
            return
        }
        var left: Int64 = 0
        // Never longer than the longest wait, should the system's clock be set back.
        retransmissionDeadline =
            sora_DTLSv1_get_timeout(ssl, &left) == 1
            ? now + .microseconds(min(max(left, 0), Int64(Self.longestTimeout))) : nil
    }

    /// OpenSSL's record buffers hold tens of kilobytes and are made anew when it reads. An endpoint
    /// that carries little (media, a few messages) keeps none; one that carries much keeps them.
    private func releaseBuffersIfQuiet() {
        guard state == .connected, receivedDatagrams < Self.busyFrom else { return }
        receivedDatagrams += 1
        SSL_free_buffers(ssl)
    }

    private func collectDatagrams() {
        guard !bio.outbound.isEmpty else { return }
        for datagram in bio.outbound { outputs.append(.transmit(datagram)) }
        bio.outbound.removeAll(keepingCapacity: bio.outbound.capacity <= Self.keptCapacity)
    }

    private func sendCloseNotify() {
        ERR_clear_error()
        SSL_alloc_buffers(ssl)
        SSL_shutdown(ssl)
        collectDatagrams()
    }

    private func fail(_ error: DTLSError) {
        guard state != .ended else { return }
        end(.failed(error))
    }

    private func end(_ output: Output) {
        collectDatagrams()
        state = .ended
        retransmissionDeadline = nil
        plainAlert = nil
        earlyDatagrams = []
        bio.inbound = nil
        outputs.append(output)
        SSL_free_buffers(ssl)
    }
}

// MARK: - OpenSSL

extension DTLSEndpoint {
    /// First wait for an answer, and the longest.
    private static let firstTimeout: UInt32 = 50_000
    private static let longestTimeout: UInt32 = 3_000_000

    private func configure() throws(DTLSError) {
        guard let channel = bio.makeBIO() else { throw .cryptography(operation: "making a BIO") }
        SSL_set_bio(ssl, channel, channel)  // takes the reference, for both ways
        SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
        if role == .client { SSL_set_connect_state(ssl) } else { SSL_set_accept_state(ssl) }
        sora_DTLS_set_link_mtu(ssl, maximumDatagramSize)
        sora_SSL_set_max_send_fragment(ssl, max(512, maximumDatagramSize))  // sizes the write buffer
        DTLS_set_timer_cb(ssl) { _, elapsed in
            elapsed == 0 ? DTLSEndpoint.firstTimeout : min(elapsed &* 2, DTLSEndpoint.longestTimeout)
        }
        if !srtpProfiles.isEmpty {
            let names = srtpProfiles.map(\.openSSLName).joined(separator: ":")
            guard SSL_set_tlsext_use_srtp(ssl, names) == 0 else {
                throw .cryptography(operation: "offering SRTP profiles")
            }
        }
    }

    private var negotiatedProfile: SRTPProfile? {
        guard let selected = SSL_get_selected_srtp_profile(ssl) else { return nil }
        return srtpProfiles.first { UInt($0.number) == selected.pointee.id }
    }

    /// RFC 5764 4.2: client key, server key, client salt, server salt.
    private func exportKeys() -> SRTPKeyingMaterial? {
        guard let profile = negotiatedProfile else { return nil }
        let (key, salt) = (profile.keyLength, profile.saltLength)
        var block = [UInt8](repeating: 0, count: 2 * (key + salt))
        let label = "EXTRACTOR-dtls_srtp"
        guard SSL_export_keying_material(ssl, &block, block.count, label, label.utf8.count, nil, 0, 0) == 1 else {
            return nil
        }
        let clientKey = Array(block[0..<key])
        let serverKey = Array(block[key..<2 * key])
        let clientSalt = Array(block[2 * key..<2 * key + salt])
        let serverSalt = Array(block[(2 * key + salt)...])
        let isClient = role == .client
        return SRTPKeyingMaterial(
            profile: profile,
            localKey: isClient ? clientKey : serverKey, localSalt: isClient ? clientSalt : serverSalt,
            remoteKey: isClient ? serverKey : clientKey, remoteSalt: isClient ? serverSalt : clientSalt)
    }

    /// Called by OpenSSL in place of its own chain verification: a peer is known by its fingerprint,
    /// before its proof of the key is even looked at, and before it is answered.
    static func verify(_ store: OpaquePointer?) -> Bool {
        guard let store,
            let ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
            let owner = SSL_get_ex_data(OpaquePointer(ssl), 0),
            let certificate = X509_STORE_CTX_get0_cert(store),
            let der = DTLSCertificate.der(of: certificate)
        else { return false }
        let endpoint = Unmanaged<DTLSEndpoint>.fromOpaque(owner).takeUnretainedValue()
        if !DTLSFingerprint.matches(endpoint.remoteFingerprints, certificate: der) {
            endpoint.rejection = .fingerprintMismatch(
                received: DTLSFingerprint(algorithm: "sha-256", bytes: hash(.sha256, der)))
            X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED)  // alert: bad_certificate
            return false
        }
        if endpoint.requiresSRTP && endpoint.negotiatedProfile == nil {
            endpoint.rejection = .noCommonSRTPProfile(offered: endpoint.srtpProfiles)
            X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION)  // alert: handshake_failure
            return false
        }
        return true
    }

    private static func failure(isHandshake: Bool) -> DTLSError {
        let code = ERR_peek_error()
        // OpenSSL numbers the reason "the peer sent alert n" 1000 + n (SSL_AD_REASON_OFFSET).
        let reason = Int(code & 0x7F_FFFF)
        if code != 0, code >> 31 & 1 == 0, (1000..<1256).contains(reason) {
            let alert = UInt8(truncatingIfNeeded: reason - 1000)
            return .peerAlert(code: alert, name: alertName(alert))
        }
        if code >> 31 & 1 == 0, reason == Int(SSL_R_READ_TIMEOUT_EXPIRED) { return .timedOut }
        let text = libraryReason()
        return isHandshake ? .handshakeFailed(reason: text) : .connectionFailed(reason: text)
    }

    /// OpenSSL's words for the first error in this thread's queue.
    private static func libraryReason() -> String {
        guard let text = ERR_reason_error_string(ERR_peek_error()) else { return "unknown reason" }
        return String(cString: text)
    }

    private static func alertName(_ code: UInt8) -> String {
        SSL_alert_desc_string_long(Int32(code)).map { String(cString: $0) } ?? "unknown"
    }
}
