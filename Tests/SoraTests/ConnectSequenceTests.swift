import Foundation
import LocalSora
import SoraLocking
import Testing

@testable import Sora

/// How attempts succeed, fail and are given up (api 3.1 to 3.3), on the real engine: each stage with the whole order
/// of callbacks and events.
@Suite(.serialized, .leavesNoObjects) struct ConnectSequenceTests {
    private struct Reason: LocalizedError {
        var errorDescription: String? { "the application's own reason" }
    }

    // MARK: Success (3.1)

    @Test func successTellsEverythingInOrder() async throws {
        try await withServer { server in
            let witness = Witness(
                LiveClient.settings([server.signalingURL]) {
                    $0.dataChannels = [["label": "#a", "direction": "sendrecv"]]
                    $0.audioEnabled = true
                })
            #expect(await witness.connected())
            let channel = witness.channel
            #expect(channel.state == .connected && channel.isAvailable && witness.task.state == .completed)
            #expect(channel.connectionStartTime != nil && channel.connectionTime != nil)
            try await channel.waitUntilOpen(label: "#a")
            channel.disconnect(error: nil)
            #expect(await witness.ended())
            #expect(
                witness.bracket
                    == Witness.beginning + Witness.success + Witness.end("nil", "ok 1000 NO-ERROR"))
            #expect(witness.faults == [])
            // The offer is told before it is acted upon, and as a value after its synchronous effects; then the stream.
            let entries = witness.entries
            #expect(
                Array(entries.dropFirst(2).prefix(5)) == [
                    "json offer", "e:signalingReceivedJSON", "signaling offer", "stream+ mainStream",
                    "e:streamAdded mainStream",
                ])
            let events = witness.events.read()
            #expect(events.first?.connectionId == nil && events.dropFirst().allSatisfy { $0.connectionId != nil })
            #expect(events.allSatisfy { $0.transportEpoch == 0 })
            #expect(await server.connectionIDs(channelID: "room").isEmpty)
        }
    }

    // 3.1.8: what the handler of the offer reads.
    @Test func theOffersEffectsAreThereWhenItsValueIsTold() async throws {
        try await withServer { server in
            let seen = Journal()
            let witness = Witness(LiveClient.settings([server.signalingURL]) { $0.clientId = "me" }) { entry, channel in
                guard entry == "json offer" || entry == "signaling offer" else { return }
                seen.add(
                    "\(entry): \(channel.clientId ?? "-") \(channel.connectionId == nil) \(channel.native == nil) "
                        + "\(channel.connectedUrl == nil) \(channel.contactUrl == nil) \(channel.state)")
            }
            #expect(await witness.connected())
            #expect(
                seen.entries == [
                    "json offer: - true true true false connecting",
                    "signaling offer: me false false false false connecting",
                ])
            witness.channel.disconnect(error: nil)
            #expect(await witness.ended())
        }
    }

    // MARK: Failure at every stage (3.2.2)

    @Test func failuresBeforeTheNetwork() async {
        await expectFailure(Witness(LiveClient.settings([])), "Configuration error (urlCandidates is empty)")
        for (pem, reason) in [
            ("no blocks", "caCertificate contains no valid PEM blocks"),
            ("-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----", "failed to decode Base64 in PEM block"),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
                "failed to create SecCertificate from DER data"
            ),
        ] {
            let witness = Witness(LiveClient.settings(["wss://127.0.0.1:1/signaling"]) { $0.caCertificate = pem })
            await expectFailure(witness, "Configuration error (\(reason))")
        }
    }

    @Test func failuresOfTheWebSocket() async throws {
        await expectFailure(
            Witness(LiveClient.settings(["ws://127.0.0.1:1/signaling"])), "WebSocket error (", isPrefix: true)
        await expectFailure(
            Witness(LiveClient.settings(["ws://no-such-host.invalid/signaling"])), "WebSocket error (", isPrefix: true)
        try await withServer { server in
            // TLS to a server that speaks none.
            let secure = server.signalingURL.replacingOccurrences(of: "ws://", with: "wss://")
            await expectFailure(Witness(LiveClient.settings([secure])), "WebSocket error (", isPrefix: true)
            // No proxy at all, and one that is no port.
            for port in [Int(server.port), 70_000, 1] {
                let witness = Witness(
                    LiveClient.settings(["ws://example.invalid/signaling"]) {
                        $0.proxy = Proxy(host: "127.0.0.1", port: port)
                    })
                await expectFailure(witness, "SignalingChannel error (", isPrefix: true)
            }
            await server.inject(Fault(.refuse(.http, code: 404), times: 1))
            await expectFailure(
                Witness(LiveClient.settings([server.signalingURL])), "WebSocket error (", isPrefix: true)
        }
    }

    @Test func failuresOfSignaling() async throws {
        let action = Locked(ScriptAction.pass)
        try await withServer({ $0.script = { $0.type == "offer" ? [action.read()] : [.pass] } }) { server in
            func attempt(_ wanted: ScriptAction) -> Witness {
                action.write(wanted)
                return Witness(LiveClient.settings([server.signalingURL]))
            }
            await expectFailure(
                attempt(.closeWebSocket(code: 4401, reason: "AUTH")), "WebSocket is closed (4401 AUTH)",
                close: "ok 4401 AUTH")
            await expectFailure(
                attempt(.closeWebSocket(code: 1000, reason: "")), "WebSocket is closed (1000 Unknown reason)",
                close: "ok 1000 ")
            await expectFailure(attempt(.resetWebSocket), "WebSocket error (", isPrefix: true)
            await expectFailure(
                attempt(.send(#"{"type":"redirect","location":"no url"}"#)),
                "SignalingChannel error (invalid message: no url)")
            await expectFailure(
                attempt(.send(#"{"type":"redirect","location":"http://example.com/"}"#)),
                "SignalingChannel error (invalid message: http://example.com/)")
        }
    }

    @Test func failuresOfNegotiation() async throws {
        let change = Locked<@Sendable (inout [String: Any]) -> Void>({ _ in })
        try await withServer({
            $0.script = { message in
                message.type == "offer" ? [.send(edited(message.text) { change.read()(&$0) })] : [.pass]
            }
        }) { server in
            func attempt(_ body: @escaping @Sendable (inout [String: Any]) -> Void) -> Witness {
                change.write(body)
                return Witness(
                    LiveClient.settings([server.signalingURL]) {
                        $0.audioEnabled = true
                        $0.videoEnabled = true
                        $0.cameraSettings.isEnabled = false
                        $0.initialMicrophoneEnabled = false
                    })
            }
            await expectFailure(
                attempt { $0["sdp"] = "nonsense" }, "the session description cannot be used", isPrefix: true)
            await expectFailure(attempt { $0["mid"] = nil }, "PeerChannel error (mid not found)")
            await expectFailure(
                attempt { $0["mid"] = ["audio": "nowhere"] }, "PeerChannel error (transceiver for audio not found)")
            await expectFailure(
                attempt { offer in
                    var mids = offer["mid"] as? [String: String] ?? [:]
                    mids["video"] = "nowhere"
                    offer["mid"] = mids
                }, "PeerChannel error (transceiver for video not found)")
            for name in ["audio", "video"] {
                await expectFailure(
                    attempt { offer in
                        let mids = offer["mid"] as? [String: String] ?? [:]
                        offer["mid"] = [name: mids[name == "audio" ? "video" : "audio"] ?? ""]
                    }, "PeerChannel error (failed to set direction to transceiver for \(name))")
            }
            // The peer's certificate is another one than announced.
            let start = ContinuousClock.now
            await expectFailure(
                attempt { offer in
                    let sdp = offer["sdp"] as? String ?? ""
                    offer["sdp"] = sdp.replacing(/a=fingerprint:sha-256 ..:../, with: "a=fingerprint:sha-256 00:00")
                }, "PeerChannel error (peer connection state: failed)")
            #expect(ContinuousClock.now - start < .seconds(10))
        }
    }

    @Test func attemptsEndByTheClockAtAnyStage() async throws {
        for stage in [Fault.Stage.http, .connect, .answer, .media] {
            try await withServer { server in
                await server.inject(Fault(.silence(stage)))
                let witness = Witness(LiveClient.settings([server.signalingURL]) { $0.connectionTimeout = 1 })
                await expectFailure(witness, "Connection is timeout")
            }
        }
    }

    // MARK: Given up (3.3, 3.2.2)

    /// Where an attempt is given up: in `connect` itself, after it, or inside of a handler.
    private static let moments = [
        "added connecting", "at once", "json offer", "signaling offer", "stream+ mainStream",
    ]

    @Test(arguments: moments) func cancellationAtAnyMoment(_ moment: String) async throws {
        try await withServer { server in
            let task = Locked<Transfer<ConnectionTask>?>(nil)
            let hasTask = DispatchSemaphore(value: 0)
            let witness = Witness(LiveClient.settings([server.signalingURL])) { entry, _ in
                guard entry == moment, moment != "added connecting" else { return }
                hasTask.wait()
                task.read()?.value.cancel()
                task.read()?.value.cancel()
            }
            task.write(Transfer(witness.task))
            hasTask.signal()
            // The task exists only once `connect` has returned.
            if moment == "added connecting" || moment == "at once" { witness.task.cancel() }
            await expectFailure(witness, "Connection is cancelled", task: "canceled")
            witness.task.cancel()
            #expect(witness.task.state == .canceled)
            if moment == "at once" { #expect(!witness.entries.contains("signaling offer")) }
        }
    }

    @Test(arguments: moments) func disconnectAtAnyMoment(_ moment: String) async throws {
        for error in [nil, Reason()] as [Reason?] {
            try await withServer { server in
                let witness = Witness(LiveClient.settings([server.signalingURL])) { entry, channel in
                    if entry == moment {
                        channel.disconnect(error: error)
                        channel.disconnect(error: SoraError.rpcTimeout)
                    }
                }
                if moment == "at once" { witness.channel.disconnect(error: error) }
                await expectFailure(
                    witness, error == nil ? "nil" : "the application's own reason",
                    close: error == nil ? "ok 1000 NO-ERROR" : nil)
                if moment == "added connecting" {
                    #expect(witness.channel.connectionStartTime == nil)
                    #expect(server.recordedEvents.isEmpty)
                }
            }
        }
    }

    /// Cancelling in the tick of the connect: whatever wins, there is one result.
    @Test func cancellationRacesWithTheConnection() async throws {
        try await withServer { server in
            for round in 0..<20 {
                let witness = Witness(LiveClient.settings([server.signalingURL]))
                let task = Transfer(witness.task)
                async let cancelled: Void = Task.detached {
                    for _ in 0..<(round * 200) { await Task.yield() }
                    task.value.cancel()
                }.value
                #expect(await witness.journal.wait { $0.contains { $0.hasPrefix("e:connect") } })
                await cancelled
                let isConnected = witness.entries.contains("e:connected")
                #expect(witness.task.state == (isConnected ? .completed : .canceled))
                if isConnected { witness.channel.disconnect(error: nil) }
                #expect(await witness.ended())
                #expect(
                    witness.bracket == Witness.beginning
                        + (isConnected ? Witness.success : Witness.failure("Connection is cancelled", "canceled"))
                        + (isConnected
                            ? Witness.end("nil", "ok 1000 NO-ERROR")
                            : Witness.end("Connection is cancelled", "error Connection is cancelled")))
                #expect(witness.faults == [])
            }
        }
    }
}
