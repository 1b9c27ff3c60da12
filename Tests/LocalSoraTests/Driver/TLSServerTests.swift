import Foundation
import LocalSora
import SoraHTTP
import SoraNetwork
import TestSupport
import Testing

@Suite("Server: TLS", .serialized, .leavesNoObjects) struct TLSServerTests {
    @Test func selfSignedCertificateServesSecureSignalingAndPage() async throws {
        try await withServer {
            $0.transportSecurity = .selfSigned()
        } _: { server in
            #expect(server.signalingURL == "wss://127.0.0.1:\(server.port)/signaling")
            #expect(server.pageURL == "https://127.0.0.1:\(server.port)/")
            let certificate = try #require(server.certificate)
            try await withClient { client in
                try await client.join(server.signalingURL, ChannelHarness.messaging(), certificate: certificate)
                #expect(await client.isUp())
            }
            try await withClient { client in
                try await client.dial(port: server.port, host: "localhost", certificate: certificate)
                #expect(await client.request("GET", "/")?.head.status == 200)
            }
        }
    }

    @Test func certificateAndKeyComeFromFiles() async throws {
        let identity = try TLSIdentity.generate(names: ["127.0.0.1"])
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let paths = ["cert.pem", "key.pem"].map { folder.appendingPathComponent($0) }
        try Data(identity.certificateChain.utf8).write(to: paths[0])
        try Data(identity.privateKey.utf8).write(to: paths[1])
        try await withServer {
            $0.transportSecurity = .files(certificate: paths[0].path, key: paths[1].path)
            $0.apiPort = 0
        } _: { server in
            #expect(server.certificate == identity.certificateChain)
            let answer = try await server.call("Sora_20201013.ListConnections", port: server.apiPort)
            #expect(answer.status == 200)
        }
    }

    @Test func keyOfAnotherCertificateIsRefusedAtTheStart() async throws {
        let (one, other) = (try TLSIdentity.generate(names: ["a"]), try TLSIdentity.generate(names: ["b"]))
        var configuration = ServerConfiguration()
        configuration.transportSecurity = .pem(certificate: one.certificateChain, key: other.privateKey)
        await #expect(throws: ServerError.self) { try await SoraServer.start(configuration) }
    }

    @Test func plainTextOnASecurePortDisturbsNobody() async throws {
        try await withServer {
            $0.transportSecurity = .selfSigned()
        } _: { server in
            try await withClient { client in
                try await client.dial(port: server.port)
                await client.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(await client.wait { $0.isGone })
            }
            try await withClient { client in
                try await client.dial(port: server.port, certificate: server.certificate)
                #expect(await client.request("GET", "/metrics")?.head.status == 200)
            }
        }
    }
}
