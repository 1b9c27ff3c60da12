import Foundation
import LocalSora
import TestSupport
import Testing

@testable import Sora

/// The whole SDK against the local server: sockets, TLS-free signaling, ICE, DTLS, SCTP.
@Suite(.serialized, .leavesNoObjects) struct LiveMessagingTests {
    @Test func twoClientsExchangeMessages() async throws {
        try await withServer { server in
            let alice = LiveClient(LiveClient.messaging(server))
            #expect(await alice.connected())
            let bob = LiveClient(LiveClient.messaging(server))
            #expect(await bob.connected())
            for client in [alice, bob] {
                #expect(await client.isReadyForMessages())
            }
            #expect(alice.channel.sendMessage(label: "#spam", data: Data("hello".utf8)) == nil)
            #expect(await bob.journal.wait(for: "message #spam hello 5"))
            #expect(bob.channel.sendMessage(label: "#egg", data: Data()) == nil)
            #expect(await alice.journal.wait(for: "message #egg  0"))
            let big = Data(repeating: 0x61, count: 262_144)
            #expect(bob.channel.sendMessage(label: "#egg", data: big) == nil)
            #expect(await alice.journal.wait(for: "message #egg \(String(repeating: "a", count: 40)) 262144"))
            await alice.leave()
            await bob.leave()
            #expect(alice.journal.entries.last == "disconnect ok 1000 NO-ERROR")
        }
    }
}
