import Foundation
import LocalSora
import Sora
import Testing

@Test func aGreetingReachesTheOthers() async throws {
    let server = try await SoraServer.start()
    let url = try #require(URL(string: server.signalingURL))
    let alice = try await Sora.shared.connect(configuration: messagingConfiguration(url))
    let bob = try await Sora.shared.connect(configuration: messagingConfiguration(url))
    let heard = bob.texts(label: "#chat")
    try await alice.waitUntilOpen(label: "#chat")
    try await bob.waitUntilOpen(label: "#chat")
    try alice.send("hello", label: "#chat")
    #expect(await heard.first { _ in true } == "hello")
    await alice.disconnect()
    await bob.disconnect()
    await server.stop()
}

@Test func aBusyServerIsToldToTheUser() async throws {
    var settings = ServerConfiguration()
    settings.script = { message in
        message.type == "offer" ? [.closeWebSocket(code: 4490, reason: "BUSY")] : [.pass]
    }
    let server = try await SoraServer.start(settings)
    let url = try #require(URL(string: server.signalingURL))
    await #expect {
        _ = try await Sora.shared.connect(configuration: messagingConfiguration(url))
    } throws: { error in
        explain(error) == "the server refused: 4490 BUSY"
    }
    await server.stop()
}

@Test func anOrderOfTheServerIsFollowed() async throws {
    let server = try await SoraServer.start()
    let url = try #require(URL(string: server.signalingURL))
    let channel = try await Sora.shared.connect(configuration: messagingConfiguration(url))
    try await channel.waitUntilOpen(label: "#chat")
    let events = channel.subscribeEvents()
    let id = try #require(channel.connectionId)
    #expect(await server.disconnect(channelID: "room", connectionID: id))
    let end = await events.first { $0.kind == .disconnected }?.closeEvent
    #expect(end.map(describe) == "ended in order: 1000 DISCONNECTED-API")
    await server.stop()
}

@Test func aLossyNetworkIsSurvived() async throws {
    let server = try await SoraServer.start()
    var conditions = Fault.NetworkConditions()
    conditions.delay = .milliseconds(40)
    conditions.loss = 0.05
    await server.inject(Fault(.network(upload: conditions, download: conditions)))
    let url = try #require(URL(string: server.signalingURL))
    let channel = try await Sora.shared.connect(configuration: messagingConfiguration(url))
    try await channel.waitUntilOpen(label: "#chat")
    #expect(server.recordedEvents.contains { $0.kind == .joined })
    await channel.disconnect()
    await server.stop()
}
