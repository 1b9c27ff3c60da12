import Glibc
import LocalSora
import SoraICE
import SoraMessages
import SoraPeer
import SoraRTP
import SoraSDP
import SoraSecureTransport
import SoraWire

/// Cost of forwarding in the server's channel, without the network: from a publisher's datagram to the
/// datagrams of all receivers, SRTP of both sides included, in CPU time of one thread.
///
/// The fastest of several rounds is reported: the machine's other work only ever adds.
enum ForwardingBenchmark {
    struct Result: Sendable {
        var receivers: Int
        var payloadLength: Int
        /// Microseconds for one packet to one receiver.
        var microsecondsPerForwardedPacket: Double
        /// Forwarded packets of one round.
        var packets: Int
    }

    enum Failure: Error {
        case setup(String)
    }

    /// - Parameter packets: of the publisher, in each of `rounds` rounds.
    static func run(receivers: Int = 100, payloadLength: Int = 1100, packets: Int = 300, rounds: Int = 7) throws
        -> Result
    {
        let room = try Room(receivers: receivers)
        var best = Double.infinity
        var count = 0
        for _ in 0..<rounds {
            let datagrams = try room.publish(packets, payloadLength: payloadLength)
            var forwarded = 0
            let start = cpuSeconds()
            for datagram in datagrams { forwarded += room.forward(datagram) }
            let elapsed = cpuSeconds() - start
            guard forwarded >= receivers * packets else {
                throw Failure.setup("\(forwarded) packets left of \(receivers * packets)")
            }
            best = min(best, elapsed * 1e6 / Double(forwarded))
            count = forwarded
        }
        return Result(
            receivers: receivers, payloadLength: payloadLength, microsecondsPerForwardedPacket: best, packets: count)
    }

    private static func cpuSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// A channel with one publisher and many receivers, all connected.
    private final class Room {
        private final class Client {
            let id: ConnectionID
            let peer: PeerConnection
            let address: SocketAddress
            var sending: Transceiver?

            init(id: ConnectionID, peer: PeerConnection, address: SocketAddress) {
                self.id = id
                self.peer = peer
                self.address = address
            }
        }

        private let channel: Channel
        private var clients: [Client] = []
        private var now = Instant.zero
        private var texts: [(ConnectionID, String)] = []
        private var frame = 0
        private let server = SocketAddress(.v4(0x0A00_0001), port: 5000)

        init(receivers: Int) throws {
            let certificate = try DTLSCertificate.selfSigned()
            let settings = ChannelSettings(certificate: certificate, wallClockOrigin: 1_700_000_000)
            channel = Channel(id: "bench", settings: settings, random: RandomSource(seed: 1))
            var random = RandomSource(seed: 2)
            for number in 0...receivers {
                let role: ConnectionRole = number == 0 ? .sendonly : .recvonly
                var connect = ConnectMessage(role: role, channelID: "bench")
                connect.audio = .enabled(false)
                connect.dataChannelSignaling = false
                var wishes = VideoWishes()
                wishes.codecType = "VP8"
                connect.video = .wishes(wishes)
                let id = ConnectionID(SignalingID.generate(using: &random))
                let address = SocketAddress(.v4(0x0A01_0000 + UInt32(number)), port: 2000)
                let peer = PeerConnection(
                    configuration: PeerConfiguration(
                        iceRole: .controlling, certificate: certificate, media: Self.capabilities),
                    random: random.split(), now: now)
                peer.addLocalSocket(SocketID(0), address: address, now: now)
                clients.append(Client(id: id, peer: peer, address: address))
                let grant = ConnectionGrant(connect, connectionID: id, settings: settings)
                _ = try channel.join(
                    id, connect: connect, grant: grant, sockets: [(SocketID(0), server)], now: now)
                settle()
            }
            for _ in 0..<200 where clients.contains(where: { $0.peer.state != .connected }) {
                now += .milliseconds(10)
                settle()
            }
            guard clients.allSatisfy({ $0.peer.state == .connected }) else { throw Failure.setup("not connected") }
        }

        private static let capabilities = MediaCapabilities(
            audioCodecs: [],
            videoCodecs: [
                CodecDescription(
                    payloadType: PayloadType(96), name: "VP8", clockRate: 90_000,
                    rtcpFeedback: ["nack", "nack pli", "transport-cc"]),
                CodecDescription(
                    payloadType: PayloadType(97), name: "rtx", clockRate: 90_000,
                    formatParameters: FormatParameters([SDPAttribute("apt", "96")])),
            ], audioExtensions: [],
            videoExtensions: [RTPExtensionKind.mid, .transportSequenceNumber, .absoluteSendTime].enumerated().map {
                HeaderExtensionDescription(id: UInt8($0.offset + 1), uri: $0.element.uri)
            })

        /// Delivers everything between channel and clients until nobody has more to say.
        private func settle() {
            var isBusy = true
            while isBusy {
                isBusy = false
                if let due = channel.nextTimeout, due <= now { channel.handleTimeout(now: now) }
                while let output = channel.poll() {
                    isBusy = true
                    switch output {
                    case .transmit(let id, let datagram):
                        guard let client = clients.first(where: { $0.id == id }) else { continue }
                        client.peer.handle(
                            Datagram(socket: SocketID(0), remote: server, payload: datagram.payload), now: now)
                    case .text(let id, let text): receive(text, of: id)
                    default: break
                    }
                }
                for client in clients {
                    if let due = client.peer.nextTimeout, due <= now { client.peer.handleTimeout(now: now) }
                    while let output = client.peer.poll() {
                        guard case .transmit(let datagram) = output else { continue }
                        isBusy = true
                        channel.handle(
                            Datagram(socket: SocketID(0), remote: client.address, payload: datagram.payload),
                            for: client.id, now: now)
                    }
                }
            }
        }

        private func receive(_ text: String, of id: ConnectionID) {
            guard let client = clients.first(where: { $0.id == id }),
                let message = try? SignalingMessage(parsing: text)
            else { return }
            switch message {
            case .offer(let offer): answer(offer.sdp, type: "answer", sendsOn: offer.mid?.video, client)
            case .reOffer(let offer): answer(offer.sdp, type: "re-answer", sendsOn: nil, client)
            default: break
            }
        }

        private func answer(_ sdp: String, type: String, sendsOn mid: String?, _ client: Client) {
            guard let description = try? SessionDescription(parsing: sdp) else { return }
            try? client.peer.acceptOffer(description, now: now)
            if let mid, let transceiver = client.peer.transceiver(mid: Mid(mid)) {
                transceiver.direction = .sendonly
                transceiver.encodings = [client.peer.makeEncoding()]
                client.sending = transceiver
            }
            guard let answer = try? client.peer.makeAnswer(now: now) else { return }
            let message: JSONObject = ["type": .string(type), "sdp": .string(answer.serialized())]
            channel.receive(text: message.text, from: client.id, now: now)
        }

        /// Encrypted packets of the publisher, each a frame of its own; the first is a key frame.
        func publish(_ count: Int, payloadLength: Int) throws -> [Datagram] {
            let publisher = clients[0]
            guard let sending = publisher.sending else { throw Failure.setup("nothing to send on") }
            var datagrams: [Datagram] = []
            for index in 0..<count {
                frame += 1
                var payload: [UInt8] = [
                    0x90, 0x80, 0x80 | UInt8(frame >> 8 & 0x7F), UInt8(frame & 0xFF), index == 0 ? 0x10 : 0x11,
                ]
                payload += [UInt8](repeating: 7, count: payloadLength - payload.count)
                let packet = RTPPacket(
                    marker: true, payloadType: sending.primaryCodec?.payloadType ?? PayloadType(120),
                    sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: frame)),
                    timestamp: RTPTimestamp(UInt32(frame) * 3000), ssrc: SSRC(0), payload: payload
                ).serialized()
                try publisher.peer.send(rtp: packet, header: RTPHeader(parsing: packet), on: sending, now: now)
                while let output = publisher.peer.poll() {
                    if case .transmit(let datagram) = output {
                        datagrams.append(
                            Datagram(socket: SocketID(0), remote: publisher.address, payload: datagram.payload))
                    }
                }
            }
            return datagrams
        }

        /// Gives one datagram to the channel; returns how many leave.
        func forward(_ datagram: Datagram) -> Int {
            now += .microseconds(100)
            channel.handle(datagram, for: clients[0].id, now: now)
            var count = 0
            while let output = channel.poll() {
                if case .transmit(_, let sent) = output, DatagramKind(sent.payload) == .rtp { count += 1 }
            }
            _ = channel.nextTimeout
            return count
        }
    }
}
