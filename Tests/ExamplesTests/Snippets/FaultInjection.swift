import Foundation
import LocalSora
import Sora
import Testing

@Test(.timeLimit(.minutes(2))) func comesBackWhenTheServerCutsIt() async throws {
    let server = try await SoraServer.start()
    let url = try #require(URL(string: server.signalingURL))
    let app = Task {  // what is tested: here `stayConnected` of the article on errors
        try await stayConnected(messagingConfiguration(url)) { channel in
            for await event in channel.subscribeEvents() where event.kind == .disconnected { return }
        }
    }
    await server.inject(Fault(.reset(after: .milliseconds(100)), times: 1))
    #expect(await server.waitForEvent(.joined, count: 1) != nil)
    #expect(await server.waitForEvent(.joined, count: 2, within: .seconds(30)) != nil)
    app.cancel()
    await server.stop()
}

@Test func theLogOfTheServerTellsWhatHappened() async throws {
    var settings = ServerConfiguration()
    settings.seed = 42  // the same ids in every run
    let server = try await SoraServer.start(settings)
    let url = try #require(URL(string: server.signalingURL))
    let channel = try await Sora.shared.connect(configuration: messagingConfiguration(url))
    let joined = await server.waitForEvent(.joined, channelID: "room")
    #expect(joined?.connectionID == channel.connectionId)
    try await channel.waitUntilOpen(label: "#chat")
    try channel.send("hello", label: "#chat")
    #expect(await server.waitForEvent(.messageRelayed)?.detail == "#chat 5 bytes")
    await channel.disconnect()
    #expect(await server.waitForEvent(.left) != nil)
    await server.stop()
}
