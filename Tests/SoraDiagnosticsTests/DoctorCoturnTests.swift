import Foundation
import Glibc
import LocalSora
import SoraNetwork
import TestSupport
import Testing

@testable import SoraDiagnostics

/// The doctor and Debian's coturn, over each transport.
@Suite(
    .serialized, .leavesNoObjects,
    .enabled(if: FileManager.default.isExecutableFile(atPath: Coturn.path), "apt install coturn"))
struct DoctorCoturnTests {
    /// A port that was free a moment ago.
    private func freePort() async throws -> UInt16 {
        let server = try await BrokenServer.start(.silent)
        let port = await server.port
        await server.stop()
        return port
    }

    private func diagnose(
        _ coturn: Coturn, urls: [String], credential: String = "pass",
        _ doctor: (inout DoctorConfiguration) -> Void = { _ in }
    ) async throws -> Diagnosis {
        var configuration = ServerConfiguration()
        configuration.turnServers = [.init(urls: urls, username: "user", credential: credential)]
        configuration.forcesRelay = true
        let server = try await SoraServer.start(configuration)
        let diagnosis = try await examine(server.signalingURL, timeout: .seconds(10), doctor)
        await server.stop()
        return diagnosis
    }

    @Test func relaysOverEachTransport() async throws {
        let authority = try TLSIdentity.generate(names: ["Test CA"], isAuthority: true)
        let identity = try TLSIdentity.generate(names: ["127.0.0.1"], issuer: authority)
        let (port, tlsPort) = (try await freePort(), try await freePort())
        let coturn = try Coturn(
            port: port,
            tls: .init(port: tlsPort, certificate: identity.certificateChain, key: identity.privateKey))
        let urls = [
            "turn:127.0.0.1:\(port)?transport=udp", "turn:127.0.0.1:\(port)?transport=tcp",
            "turns:127.0.0.1:\(tlsPort)?transport=tcp",
        ]
        let diagnosis = try await diagnose(coturn, urls: urls) {
            $0.certificateAuthorities = authority.certificateChain
        }
        coturn.end()
        #expect(diagnosis.isHealthy, "\(diagnosis.allText)")
        let turn = try #require(diagnosis.report(.turn))
        #expect(turn.verdict == .passed, "\(diagnosis.allText)")
        for transport in ["(udp)", "(tcp)", "(tls)"] {
            #expect(turn.details.contains { $0.contains(transport) && $0.contains("works, relays at 127.0.0.1") })
        }
        #expect(diagnosis.report(.ice)?.summary.hasPrefix("relay ") == true, "\(diagnosis.allText)")
    }

    @Test func namesAWrongCredential() async throws {
        let port = try await freePort()
        let coturn = try Coturn(port: port)
        let urls = ["turn:127.0.0.1:\(port)?transport=udp"]
        let diagnosis = try await diagnose(coturn, urls: urls, credential: "wrong-credential")
        coturn.end()
        expect(diagnosis, failsAt: .turn, summary: urls[0], advice: "user name and password", failure: .refused)
        #expect(!diagnosis.allText.contains("wrong-credential"))
    }
}
