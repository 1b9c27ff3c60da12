import Foundation
import LocalSora
import Sora
import Testing

/// A view controller as iOS teams write it runs, too.
@MainActor @Suite struct ViewControllerTests {
    @Test func theEndAndTheSignalingAreShown() throws {
        let controller = VideoChatViewController()
        controller.viewDidLoad()
        #expect(controller.view.subviews.contains { $0 === controller.senderView })
        controller.show(.ok(code: 1000, reason: "NO-ERROR"))
        #expect(controller.statusText == "1000 NO-ERROR")
        controller.show(.error(SoraError.connectionTimeout))
        #expect(controller.statusText == "Connection is timeout")

        func receive(_ json: String) throws { controller.receive(try Signaling.decode(Data(json.utf8)).get()) }
        try receive(
            #"""
            {"type":"notify","event_type":"connection.created","role":"sendrecv","metadata":{"name":"alice"},
             "channel_sendrecv_connections":2,"channel_sendonly_connections":0,"channel_recvonly_connections":1}
            """#)
        #expect(controller.metadataName == "alice")
        try receive(
            #"""
            {"type":"offer","sdp":"v=0","client_id":"c","connection_id":"i",
             "data_channels":[{"label":"#chat","direction":"sendrecv",
                               "header":[{"type":"sender_connection_id","length":26}]}]}
            """#)
        #expect(controller.headerLengths == ["#chat": 26])
    }

    @Test(.timeLimit(.minutes(1))) func callbacksReachTheMainActor() async throws {
        let server = try await SoraServer.start()
        let controller = VideoChatViewController()
        var configuration = controller.configuration(url: try #require(URL(string: server.signalingURL)))
        configuration.videoEnabled = false
        configuration.audioEnabled = false
        let channel = try await Sora.shared.connect(configuration: configuration)
        try await channel.waitUntilOpen(label: "#chat")
        await channel.disconnect()
        while controller.statusText.isEmpty { await Task.yield() }
        #expect(controller.statusText == "1000 NO-ERROR")
        #expect(controller.headerLengths["#chat"] == 26)
        await server.stop()
    }
}
