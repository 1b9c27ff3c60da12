import Foundation
import LocalSora
import SoraLocking
import Synchronization
import TestSupport
import Testing

@testable import Sora

/// Everything is called out of every handler, one of which ends the connection.
@Suite(.serialized, .leavesNoObjects) struct HandlerMisuseTests {
    static let handlers = [
        "connect", "json", "add", "available", "opened", "message", "completion", "added", "none",
    ]

    private final class Ended: Sendable {
        let calls = Atomic(0)
        let ends = Atomic(0)
        let channel = Locked<Transfer<MediaChannel>?>(nil)
    }

    /// Nothing here may trap, wait for itself or change the order of what is told.
    private static func callEverything(_ channel: MediaChannel, _ ended: Ended) {
        ended.calls.add(1, ordering: .relaxed)
        _ = channel.sendMessage(label: "#spam", data: Data("again".utf8).prefix(ended.calls.load(ordering: .relaxed)))
        _ = channel.sendMessage(label: "", data: Data())
        _ = channel.sendMessage(label: "signaling", data: Data([0xff]))
        _ = channel.setAudioSoftMute(true)
        _ = channel.setAudioHardMute(true)
        _ = channel.setVideoSoftMute(false)
        channel.getStats { _ in }
        channel.getStatsSnapshot { _ in }
        _ = channel.subscribeEvents()
        _ = channel.streams.map(\.streamId)
        _ = (channel.connectionId, channel.state, channel.connectionCount, channel.configuration.channelId)
    }

    @Test(.timeLimit(.minutes(1)), arguments: handlers)
    func everythingMayBeCalledOutOfEveryHandler(ending: String) async throws {
        try await withServer { server in
            let other = LiveClient(LiveClient.messaging(server))
            #expect(await other.isReadyForMessages())
            let journal = Journal()
            let ended = Ended()
            let sora = Sora()
            do {
                var configuration = LiveClient.messaging(server)
                configuration.audioEnabled = true
                configuration.signalingConnectMetadata = [String: [Double]]()
                let act: @Sendable (String) -> Void = { name in
                    guard let channel = ended.channel.withLock({ $0?.value }) else { return }
                    Self.callEverything(channel, ended)
                    guard name == ending else { return }
                    for _ in 0..<3 { channel.disconnect(error: nil) }
                    channel.disconnect(error: SoraError.connectionBusy(reason: "later ones count for nothing"))
                    Self.callEverything(channel, ended)
                    // The handlers go away while one of them runs.
                    channel.handlers.onDataChannelMessage = nil
                }
                let handlers = configuration.mediaChannelHandlers
                handlers.onConnect = { _ in act("connect") }
                handlers.onReceiveSignalingJSON = { _ in act("json") }
                handlers.onAddStream = { _ in act("add") }
                handlers.onDataChannel = { _ in act("available") }
                handlers.onDataChannelOpened = { _, _ in act("opened") }
                handlers.onDataChannelMessage = { _, _, _ in act("message") }
                handlers.onDisconnect = { event in
                    act("disconnect")
                    ended.ends.add(1, ordering: .relaxed)
                    journal.add("disconnect \(Stage.text(event))")
                }
                sora.handlers.onAddMediaChannel = { channel in
                    ended.channel.withLock { $0 = Transfer(channel) }
                    act("added")
                }
                let task = sora.connect(configuration: configuration) { channel, _ in
                    act("completion")
                    journal.add("completion")
                    // Nothing has ended it in a handler that never runs (`add` without senders).
                    if ending == "none" || ending == "add" { channel?.disconnect(error: nil) }
                }
                #expect(await journal.wait(for: "completion", seconds: 20))
                for _ in 0..<2000 where ending == "message" && ended.ends.load(ordering: .relaxed) == 0 {
                    _ = other.send("#spam", "x")
                    if await journal.wait(seconds: 0.02, until: { $0.contains { $0.hasPrefix("disconnect") } }) {
                        break
                    }
                }
                if ending != "added" {
                    #expect(await journal.wait(seconds: 20) { $0.contains { $0.hasPrefix("disconnect") } })
                }
                task.cancel()
                ended.channel.withLock { $0 = nil }
                handlers.onDisconnect = nil
            }
            let ends = ended.ends.load(ordering: .relaxed)
            // An attempt that is called off as it begins is told by its completion.
            #expect(ends == 1 || ending == "added" && ends == 0)
            #expect(ended.calls.load(ordering: .relaxed) > 0)
            await other.leave()
            #expect(await server.waitForEvent(.left, count: 1) != nil)
        }
    }
}
