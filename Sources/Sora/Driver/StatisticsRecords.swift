import Foundation
internal import SoraICE
internal import SoraPeer
internal import SoraSCTP
internal import SoraSDP
internal import SoraSecureTransport
internal import SoraWire

/// Turns the counters of a peer connection into records of the W3C webrtc-stats vocabulary.
struct StatisticsRecords {
    /// Microseconds since 1970.
    var timestamp: Double
    private(set) var records: [StatisticsRecord] = []

    init(timestamp: Double) { self.timestamp = timestamp }

    mutating func add(_ id: String, _ type: String, _ values: [String: JSONValue?]) {
        records.append(
            StatisticsRecord(id: id, type: type, timestamp: timestamp, values: values.compactMapValues { $0 }))
    }

    /// Adds values to a record that is there already.
    mutating func extend(_ id: String, _ values: [String: JSONValue]) {
        guard let index = records.firstIndex(where: { $0.id == id }) else { return }
        records[index].values.merge(values) { $1 }
    }

    mutating func add(_ statistics: PeerStatistics) {
        for stream in statistics.inbound {
            let id = "inbound-rtp-\(stream.ssrc)"
            let codec = addCodec(stream.codec, stream.kind)
            add(
                id, "inbound-rtp",
                [
                    "ssrc": .number(stream.ssrc.rawValue), "kind": .string("\(stream.kind)"),
                    "mid": stream.mid.map { .string($0.rawValue) }, "rid": stream.rid.map { .string($0.rawValue) },
                    "codecId": codec, "transportId": .string("transport"),
                    "packetsReceived": .number(stream.packetsReceived), "bytesReceived": .number(stream.bytesReceived),
                    "packetsLost": .number(stream.packetsLost), "jitter": .fraction(stream.jitter),
                    "retransmittedPacketsReceived": .number(stream.retransmittedPackets),
                    "nackCount": .number(stream.nackCount), "pliCount": .number(stream.keyFrameRequests),
                ])
        }
        for stream in statistics.outbound {
            let id = "outbound-rtp-\(stream.ssrc)"
            let codec = addCodec(stream.codec, stream.kind)
            add(
                id, "outbound-rtp",
                [
                    "ssrc": .number(stream.ssrc.rawValue), "kind": .string("\(stream.kind)"),
                    "mid": stream.mid.map { .string($0.rawValue) }, "rid": stream.rid.map { .string($0.rawValue) },
                    "codecId": codec, "transportId": .string("transport"), "packetsSent": .number(stream.packetsSent),
                    "bytesSent": .number(stream.bytesSent),
                    "retransmittedPacketsSent": .number(stream.retransmittedPackets),
                    "retransmittedBytesSent": .number(stream.retransmittedBytes),
                    "nackCount": .number(stream.nackCount), "pliCount": .number(stream.keyFrameRequests),
                ])
            guard let lost = stream.packetsLost else { continue }
            add(
                "remote-inbound-rtp-\(stream.ssrc)", "remote-inbound-rtp",
                [
                    "ssrc": .number(stream.ssrc.rawValue), "kind": .string("\(stream.kind)"),
                    "localId": .string(id), "codecId": codec, "transportId": .string("transport"),
                    "packetsLost": .number(lost), "fractionLost": stream.fractionLost.map { .fraction($0) },
                    "jitter": stream.jitter.map { .fraction($0) },
                    "roundTripTime": stream.roundTripTime.map { .fraction($0.seconds) },
                ])
        }
        for channel in statistics.channels {
            add(
                "data-channel-\(channel.info.id.rawValue)", "data-channel",
                [
                    "label": .string(channel.info.label), "protocol": .string(channel.info.protocolName),
                    "dataChannelIdentifier": .number(channel.info.id.rawValue), "state": .string("open"),
                    "messagesSent": .number(channel.counters.messagesSent),
                    "bytesSent": .number(channel.counters.bytesSent),
                    "messagesReceived": .number(channel.counters.messagesReceived),
                    "bytesReceived": .number(channel.counters.bytesReceived),
                ])
        }
    }

    private mutating func addCodec(_ codec: CodecDescription?, _ kind: MediaKind) -> JSONValue? {
        guard let codec else { return nil }
        let id = "codec-\(codec.payloadType)"
        if !records.contains(where: { $0.id == id }) {
            add(
                id, "codec",
                [
                    "payloadType": .number(codec.payloadType.rawValue),
                    "mimeType": .string("\(kind)/\(codec.name)"),
                    "clockRate": .number(codec.clockRate), "channels": codec.channels.map { .number($0) },
                    "transportId": .string("transport"),
                ])
        }
        return .string(id)
    }
}

extension JSONValue {
    static func number(_ value: some BinaryInteger) -> JSONValue { .decimal(Decimal(string: "\(value)") ?? 0) }
    static func fraction(_ value: Double) -> JSONValue {
        JSONValue(foundationObject: NSNumber(value: value.isFinite ? value : 0)) ?? .decimal(0)
    }
}

extension Duration {
    /// In seconds.
    var seconds: Double { Double(wholeNanoseconds) / 1e9 }
}

extension StatisticsRecords {
    /// The identities of both ends, as far as they are known.
    mutating func add(local: DTLSCertificate, remote: [DTLSFingerprint]) {
        addCertificate("certificate-local", local.fingerprint, base64: Data(local.der).base64EncodedString())
        // Of the other end only the announced hash is kept.
        if let remote = remote.first { addCertificate("certificate-remote", remote, base64: nil) }
    }

    private mutating func addCertificate(_ id: String, _ fingerprint: DTLSFingerprint, base64: String?) {
        let parts = fingerprint.sdp.split(separator: " ", maxSplits: 1)
        guard parts.count == 2 else { return }
        add(
            id, "certificate",
            [
                "fingerprintAlgorithm": .string(String(parts[0])), "fingerprint": .string(String(parts[1])),
                "base64Certificate": base64.map { .string($0) },
            ])
    }

    /// - Parameter availableBitrate: what the way out can carry, in bit/s; nil before it was estimated.
    mutating func add(_ ice: ICEStatistics, peerState: PeerConnectionState, availableBitrate: Int?) {
        let selected = ice.pairs.first { $0.isSelected }
        func certificate(_ id: String) -> JSONValue? { records.contains { $0.id == id } ? .string(id) : nil }
        add(
            "transport", "transport",
            [
                "iceRole": .string("\(ice.role)"), "iceState": .string(ice.state.rawValue),
                "dtlsState": .string(peerState == .connected ? "connected" : "connecting"),
                "localCertificateId": certificate("certificate-local"),
                "remoteCertificateId": certificate("certificate-remote"),
                "selectedCandidatePairId": selected.map { .string("candidate-pair-\($0.id)") },
                "bytesSent": .number(ice.pairs.reduce(0) { $0 + $1.counters.bytesSent }),
                "bytesReceived": .number(ice.pairs.reduce(0) { $0 + $1.counters.bytesReceived }),
                "packetsSent": .number(ice.pairs.reduce(0) { $0 + $1.counters.packetsSent }),
                "packetsReceived": .number(ice.pairs.reduce(0) { $0 + $1.counters.packetsReceived }),
            ])
        for (index, candidate) in ice.localCandidates.enumerated() { add(candidate, "local-candidate", index) }
        for (index, candidate) in ice.remoteCandidates.enumerated() { add(candidate, "remote-candidate", index) }
        for pair in ice.pairs {
            add(
                "candidate-pair-\(pair.id)", "candidate-pair",
                [
                    "transportId": .string("transport"), "state": .string(pair.state),
                    "nominated": .bool(pair.isNominated), "priority": .number(pair.priority),
                    "localCandidateId": ice.localCandidates.firstIndex(of: pair.local).map {
                        .string("local-candidate-\($0)")
                    },
                    "remoteCandidateId": ice.remoteCandidates.firstIndex(of: pair.remote).map {
                        .string("remote-candidate-\($0)")
                    },
                    "bytesSent": .number(pair.counters.bytesSent),
                    "bytesReceived": .number(pair.counters.bytesReceived),
                    "packetsSent": .number(pair.counters.packetsSent),
                    "packetsReceived": .number(pair.counters.packetsReceived),
                    "requestsSent": .number(pair.counters.requestsSent),
                    "requestsReceived": .number(pair.counters.requestsReceived),
                    "responsesSent": .number(pair.counters.responsesSent),
                    "responsesReceived": .number(pair.counters.responsesReceived),
                    "consentRequestsSent": .number(pair.counters.consentRequestsSent),
                    "availableOutgoingBitrate": pair.isSelected ? availableBitrate.map { .number($0) } : nil,
                    "currentRoundTripTime": pair.counters.currentRoundTripTime.map { .fraction($0.seconds) },
                    "totalRoundTripTime": .fraction(pair.counters.totalRoundTripTime.seconds),
                ])
        }
    }

    private mutating func add(_ candidate: SoraICE.ICECandidate, _ type: String, _ index: Int) {
        let host: String =
            switch candidate.address {
            case .ip(let address): address.ip.description
            case .name(let name, _): name
            }
        add(
            "\(type)-\(index)", type,
            [
                "transportId": .string("transport"), "address": .string(host),
                "port": .number(candidate.address.port), "protocol": .string(candidate.transport.rawValue),
                "candidateType": .string(candidate.type.rawValue), "priority": .number(candidate.priority),
            ])
    }
}
