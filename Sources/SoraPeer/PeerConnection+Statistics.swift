import SoraICE
import SoraRTP
import SoraSCTP
import SoraSDP
import SoraWire

/// Counters of one peer connection at one moment, in the terms of W3C WebRTC statistics.
package struct PeerStatistics: Sendable {
    package struct Inbound: Sendable {
        package var ssrc: SSRC
        package var kind: MediaKind
        package var mid: Mid?
        package var rid: RestrictionID?
        package var codec: CodecDescription?
        package var packetsReceived: UInt64
        package var bytesReceived: UInt64
        package var packetsLost: Int64
        /// Seconds.
        package var jitter: Double
        package var retransmittedPackets: UInt64
        package var nackCount: Int
        package var keyFrameRequests: Int
        package var lastPacketReceived: Instant?
    }
    package struct Outbound: Sendable {
        package var ssrc: SSRC
        package var kind: MediaKind
        package var mid: Mid?
        package var rid: RestrictionID?
        package var codec: CodecDescription?
        package var packetsSent: UInt64
        package var bytesSent: UInt64
        package var retransmittedPackets: UInt64
        package var retransmittedBytes: UInt64
        package var nackCount: Int
        package var keyFrameRequests: Int
        /// From the receiver's reports; nil before the first.
        package var roundTripTime: Duration?
        package var packetsLost: Int?
        /// 0...1.
        package var fractionLost: Double?
        /// Seconds.
        package var jitter: Double?
    }
    package struct Channel: Sendable {
        package var info: DataChannelInfo
        package var counters: DataChannelStatistics
    }
    package var inbound: [Inbound] = []
    package var outbound: [Outbound] = []
    package var channels: [Channel] = []
    /// What the way out is thought to carry, in bit/s; nil when nothing is sent.
    package var availableBitrate: Int?
    /// Packets that SRTP did not authenticate or that were malformed.
    package var rejectedPackets: UInt64 = 0
    /// Packets of no m-line.
    package var unroutablePackets: UInt64 = 0
}

extension PeerConnection {
    /// SRTP and SRTCP packets that were authentic, and their bytes once decrypted; cheap, unlike ``statistics(now:)``.
    package var decryptedTraffic: (packets: UInt64, bytes: UInt64) { (rtp.decryptedPackets, rtp.decryptedBytes) }

    package func statistics(now: Instant) -> PeerStatistics {
        var result = PeerStatistics()
        result.rejectedPackets = rtp.rejectedPackets
        result.unroutablePackets = rtp.unroutablePackets
        for stream in rtp.inbound.values.sorted(by: { $0.ssrc.rawValue < $1.ssrc.rawValue }) {
            guard case .media = stream.role else { continue }
            result.inbound.append(
                .init(
                    ssrc: stream.ssrc, kind: stream.transceiver.kind, mid: stream.transceiver.mid, rid: stream.rid,
                    codec: stream.transceiver.primaryCodec, packetsReceived: stream.packets,
                    bytesReceived: stream.bytes, packetsLost: stream.reception.packetsLost,
                    jitter: stream.reception.jitterInSeconds, retransmittedPackets: stream.retransmittedPackets,
                    nackCount: stream.nackRequests, keyFrameRequests: stream.keyFrameRequests,
                    lastPacketReceived: stream.lastArrival))
        }
        for stream in rtp.outbound.values.sorted(by: { $0.ssrc.rawValue < $1.ssrc.rawValue }) {
            result.outbound.append(
                .init(
                    ssrc: stream.ssrc, kind: stream.transceiver.kind, mid: stream.transceiver.mid, rid: stream.rid,
                    codec: stream.transceiver.primaryCodec, packetsSent: stream.packets, bytesSent: stream.bytes,
                    retransmittedPackets: stream.history?.repeatedPackets ?? 0,
                    retransmittedBytes: stream.history?.repeatedBytes ?? 0, nackCount: stream.nacksReceived,
                    keyFrameRequests: stream.keyFrameRequests, roundTripTime: stream.roundTripTime,
                    packetsLost: stream.lastReport.map { Int($0.cumulativeLost) },
                    fractionLost: stream.lastReport.map { Double($0.fractionLost) / 256 },
                    jitter: stream.lastReport.map { Double($0.jitter) / Double(stream.clockRate) }))
        }
        for id in sctp?.openChannels ?? [] {
            guard let info = sctp?.info(of: id), let counters = sctp?.statistics(of: id) else { continue }
            result.channels.append(.init(info: info, counters: counters))
        }
        if !result.outbound.isEmpty { result.availableBitrate = rtp.estimator.targetBitrate }
        return result
    }
}
