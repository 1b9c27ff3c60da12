import Foundation
import LocalSora
import Testing

@testable import Sora

/// Every misuse is answered by the documented error, and those that can be known beforehand before any socket opens.
@Suite(.serialized, .leavesNoObjects) struct MisuseTests {
    /// A socket that listens and never accepts, and can tell whether anybody came.
    private final class Ear {
        private let socket: Int32
        let port: Int

        init() throws {
            socket = Foundation.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = inet_addr("127.0.0.1")
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let socket = socket
            let status = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    bind(socket, pointer, length) | listen(socket, 16) | getsockname(socket, pointer, &length)
                        | fcntl(socket, F_SETFL, O_NONBLOCK)
                }
            }
            try #require(status == 0)
            port = Int(UInt16(bigEndian: address.sin_port))
        }
        deinit { close(socket) }

        /// Whether a connection has come in.
        func hasHeard() -> Bool {
            let accepted = accept(socket, nil, nil)
            if accepted >= 0 { close(accepted) }
            return accepted >= 0
        }
    }

    private struct Unencodable: Encodable {
        struct Refusal: Error {}
        func encode(to encoder: any Encoder) throws { throw Refusal() }
    }

    /// The error of the one completion, and whether a connection was added.
    private func attempt(
        _ url: String, _ change: (inout Configuration) -> Void
    ) async -> (text: String, wasAdded: Bool) {
        let sora = Sora()
        let journal = Journal()
        sora.handlers.onAddMediaChannel = { _ in journal.add("added") }
        var configuration = Configuration(url: URL(string: url)!, channelId: "room", role: .sendrecv)
        configuration.videoEnabled = false
        configuration.audioEnabled = false
        change(&configuration)
        configuration.mediaChannelHandlers.onDisconnect = { _ in journal.add("end") }
        sora.connect(configuration: configuration) { channel, error in
            #expect(channel == nil)
            journal.add("completion \(error?.localizedDescription ?? "nil")")
        }
        #expect(await journal.wait { $0.contains { $0.hasPrefix("completion") } })
        let wasAdded = journal.entries.contains("added")
        if wasAdded { #expect(await journal.wait(for: "end")) }
        let text = journal.entries.first { $0.hasPrefix("completion ") }.map { String($0.dropFirst(11)) } ?? ""
        return (text, wasAdded)
    }

    @Test func settingsThatCannotBeUsedOpenNoSocket() async throws {
        let ear = try Ear()
        let url = "ws://127.0.0.1:\(ear.port)/signaling"
        typealias Change = (inout Configuration) -> Void
        func video(
            _ codec: VideoCodec, _ name: String, _ parameters: WritableKeyPath<Configuration, (any Encodable)?>
        ) -> (String, Change) {
            (
                "video \(name) params could not be encoded",
                {
                    $0.videoEnabled = true
                    $0.videoCodec = codec
                    $0[keyPath: parameters] = Double.nan
                }
            )
        }
        let cases: [(String, Change)] = [
            ("signaling connect metadata could not be encoded", { $0.signalingConnectMetadata = Double.nan }),
            ("signaling connect metadata could not be encoded", { $0.signalingConnectMetadata = Decimal.nan }),
            (
                "signaling connect metadata could not be encoded",
                { $0.signalingConnectMetadata = ["a": Float.infinity] }
            ),
            ("signaling connect metadata could not be encoded", { $0.signalingConnectMetadata = Unencodable() }),
            ("signaling notify metadata could not be encoded", { $0.signalingConnectNotifyMetadata = [Double.nan] }),
            ("data channels are not JSON-serializable", { $0.dataChannels = [["label": Date()]] }),
            ("data channels are not JSON-serializable", { $0.dataChannels = [["label": Double.nan]] }),
            ("data channels are not JSON-serializable", { $0.dataChannels = 7 }),
            (
                "forwarding filter metadata could not be encoded",
                { $0.forwardingFilter = ForwardingFilter(rules: [], metadata: Double.nan) }
            ),
            (
                "forwarding filter metadata could not be encoded",
                {
                    $0.forwardingFilters = [
                        ForwardingFilter(rules: []), ForwardingFilter(rules: [], metadata: Unencodable()),
                    ]
                }
            ),
            video(.vp9, "vp9", \.videoVp9Params),
            video(.av1, "av1", \.videoAv1Params),
            video(.h264, "h264", \.videoH264Params),
            video(.h265, "h265", \.videoH265Params),
            (
                "audio opus params could not be encoded",
                {
                    $0.audioEnabled = true
                    $0.audioCodec = .opus
                    $0.audioOpusParams = Double.nan
                }
            ),
            (
                "audioStereoOutputEnabled requires audioEnabled to be true", { $0.audioStereoOutputEnabled = true }
            ),
            (
                "audioStereoOutputEnabled does not support PCMU",
                {
                    $0.audioEnabled = true
                    $0.audioCodec = .pcmu
                    $0.audioStereoOutputEnabled = true
                }
            ),
        ]
        for (reason, change) in cases {
            let (text, wasAdded) = await attempt(url, change)
            #expect(text == "Configuration error (\(reason))")
            #expect(!wasAdded, "\(reason)")
        }
        // These are found when the socket is to be opened: the connection was added.
        let later: [(String, Change)] = [
            ("urlCandidates is empty", { $0.urlCandidates = [] }),
            ("caCertificate contains no valid PEM blocks", { $0.caCertificate = "" }),
            (
                "failed to create SecCertificate from DER data",
                { $0.caCertificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----" }
            ),
        ]
        for (reason, change) in later {
            let (text, wasAdded) = await attempt(url, change)
            #expect(text == "Configuration error (\(reason))")
            #expect(wasAdded, "\(reason)")
        }
        for port in [0, -1, 65_536, .max] {
            let (text, _) = await attempt(url) { $0.proxy = Proxy(host: "127.0.0.1", port: port) }
            #expect(text == "SignalingChannel error (proxy port \(port) is not a port)")
        }
        #expect(!ear.hasHeard())
        // The ear is no deaf one.
        _ = await attempt(url) { $0.connectionTimeout = 1 }
        #expect(ear.hasHeard())
    }

    /// Numbers at the end of their range are clamped, not trapped upon.
    @Test func extremeNumbersAreTaken() async throws {
        try await withServer { server in
            for value in [Int.max, Int.min, 0] {
                let client = LiveClient(
                    LiveClient.messaging(server) {
                        $0.audioEnabled = true
                        $0.videoEnabled = true
                        $0.cameraSettings = CameraSettings(frameRate: value, isEnabled: false)
                        $0.initialMicrophoneEnabled = false
                        $0.connectionTimeout = value == .max ? value : 20
                        $0.videoBitRate = value
                        $0.audioBitRate = value
                        $0.spotlightNumber = value
                    })
                #expect(
                    await client.journal.wait(seconds: 20) { $0.contains { $0.hasPrefix("connect ") } },
                    "\(client.journal.entries)")
                client.channel.disconnect(error: nil)
                #expect(await client.journal.wait(seconds: 20) { $0.contains { $0.hasPrefix("disconnect") } })
            }
        }
    }

    @Test(.needsCodecs) func operationsThatAreNotPossibleSaySo() async throws {
        try await withServer { server in
            let client = LiveClient(
                LiveClient.messaging(server, .recvonly) {
                    $0.dataChannelSignaling = false
                    $0.dataChannels = nil
                    $0.audioEnabled = true
                })
            #expect(client.send("#spam", "x") == "Messaging error: DataChannel is not open yet")
            #expect(await client.connected())
            let channel = client.channel
            #expect(client.send("#spam", "x") == "Messaging error: DataChannel is not open yet")
            func text(_ body: () async throws -> Void) async -> String {
                do {
                    try await body()
                    return "success"
                } catch { return error.localizedDescription }
            }
            let unavailable = await text {
                _ = try await channel.rpc(
                    method: RequestSimulcastRid.self, params: RequestSimulcastRidParams(rid: .r0))
            }
            #expect(unavailable == "RPC unavailable: rpc channel is not available")
            #expect(
                channel.setAudioSoftMute(true)?.localizedDescription == "MediaChannel error (role is not sender)")
            #expect(
                channel.setVideoSoftMute(true)?.localizedDescription == "MediaChannel error (videoEnabled is false)")
            #expect(
                await text { try await channel.startScreenCapture() } == "MediaChannel error (videoEnabled is false)")
            await channel.stopScreenCapture()
            await client.leave()
            let closed = "MediaChannel error (MediaChannel is not connected (state: disconnected))"
            #expect(channel.setAudioHardMute(true)?.localizedDescription == closed)
            #expect(await text { try await channel.setVideoHardMute(true) } == closed)
            #expect(client.send("#spam", "x") == "Messaging error: DataChannel is not open yet")
            let statistics = await text { _ = try await channel.getStatsSnapshot() }
            #expect(statistics == "PeerChannel error (MediaChannel is not connected (state: disconnected))")
        }
    }
}
