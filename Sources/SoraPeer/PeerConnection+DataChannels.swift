import SoraSCTP
import SoraSDP
import SoraSecureTransport
import SoraWire

extension PeerConnection {
    /// Opens a data channel in band (RFC 8832). It is announced by `dataChannelOpened` when both sides
    /// know it; messages may be sent at once.
    package func openDataChannel(
        label: String, protocolName: String = "", ordered: Bool = true, reliability: Reliability = .reliable,
        now: Instant
    ) throws(PeerError) -> StreamID {
        guard let sctp else { throw .dataChannelsUnavailable }
        defer { pump(now: now) }
        do {
            return try sctp.open(
                label: label, protocolName: protocolName, ordered: ordered, reliability: reliability, now: now)
        } catch { throw .dataChannel(error) }
    }

    /// Queues one message. - Throws: what ``DataChannelTransport/send(_:isBinary:on:now:)`` refuses;
    /// nothing of the message was sent then.
    package func send(message: [UInt8], isBinary: Bool, on id: StreamID, now: Instant) throws(PeerError) {
        guard let sctp else { throw .dataChannelsUnavailable }
        do { try sctp.send(message, isBinary: isBinary, on: id, now: now) } catch { throw .dataChannel(error) }
        pump(now: now)
    }

    /// Closes a channel after what was accepted for it has been delivered.
    package func closeDataChannel(_ id: StreamID, now: Instant) {
        sctp?.close(id, now: now)
        pump(now: now)
    }

    /// Bytes accepted for a channel and not yet acknowledged as sent (W3C `bufferedAmount`).
    package func bufferedAmount(of id: StreamID) -> Int { sctp?.bufferedAmount(of: id) ?? 0 }

    package func setBufferedAmountLowThreshold(_ bytes: Int, of id: StreamID) {
        sctp?.setBufferedAmountLowThreshold(bytes, of: id)
    }

    /// Bytes of messages that were given out and not yet processed. The receive window shrinks by them, so that a peer
    /// that sends faster than the application reads is slowed down.
    package func setUnreadBytes(_ bytes: Int, now: Instant) {
        sctp?.setUnreadBytes(bytes, now: now)
        pump(now: now)
    }

    func makeDataChannelTransport(remote: MediaDescription) {
        guard sctp == nil else { return }
        var settings = SCTPConfiguration()
        settings.localPort = 5000
        settings.remotePort = remote.sctpPort ?? remote.formats.first.flatMap { UInt16($0) } ?? 5000
        settings.maximumMessageSize = configuration.maximumMessageSize
        settings.remoteMaximumMessageSize = remote.effectiveMaxMessageSize
        // A DTLS 1.2 record adds 13 bytes of header, 8 of nonce and 16 of tag.
        settings.maximumPacketSize = configuration.maximumDatagramSize - 40
        sctp = DataChannelTransport(
            configuration: settings, isDTLSClient: dtlsRole == .client, random: random.split())
    }
}
