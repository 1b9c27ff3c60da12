import Foundation
import Glibc
import LocalSora
import SoraNetwork
import Testing

@testable import SoraDiagnostics

/// The doctor and Debian's coturn, over each transport.
@Suite(
    .serialized,
    .enabled(if: FileManager.default.isExecutableFile(atPath: Coturn.path), "apt install coturn"))
struct DoctorCoturnTests {
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
        let coturn = try await Coturn(identity: identity)
        let urls = [
            "turn:127.0.0.1:\(coturn.port)?transport=udp", "turn:127.0.0.1:\(coturn.port)?transport=tcp",
            "turns:127.0.0.1:\(coturn.tlsPort)?transport=tcp",
        ]
        let diagnosis = try await diagnose(coturn, urls: urls) {
            $0.certificateAuthorities = authority.certificateChain
        }
        coturn.kill()
        #expect(diagnosis.isHealthy, "\(diagnosis.allText)")
        let turn = try #require(diagnosis.report(.turn))
        #expect(turn.verdict == .passed, "\(diagnosis.allText)")
        for transport in ["(udp)", "(tcp)", "(tls)"] {
            #expect(turn.details.contains { $0.contains(transport) && $0.contains("works, relays at 127.0.0.1") })
        }
        #expect(diagnosis.report(.ice)?.summary.hasPrefix("relay ") == true, "\(diagnosis.allText)")
    }

    @Test func namesAWrongCredential() async throws {
        let coturn = try await Coturn(identity: nil)
        let urls = ["turn:127.0.0.1:\(coturn.port)?transport=udp"]
        let diagnosis = try await diagnose(coturn, urls: urls, credential: "wrong-credential")
        coturn.kill()
        expect(diagnosis, failsAt: .turn, summary: urls[0], advice: "user name and password", failure: .refused)
        #expect(!diagnosis.allText.contains("wrong-credential"))
    }
}

/// A coturn of its own for one test; it dies with this object.
private final class Coturn {
    static let path = "/usr/bin/turnserver"
    let port: UInt16
    let tlsPort: UInt16
    private let process = Process()
    private let folder: URL

    init(identity: TLSIdentity?) async throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("coturn-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        port = try await Coturn.freePort()
        tlsPort = try await Coturn.freePort()
        var arguments = [
            "-n", "--listening-ip=127.0.0.1", "--relay-ip=127.0.0.1", "--listening-port=\(port)",
            "--tls-listening-port=\(tlsPort)", "--lt-cred-mech", "--user=user:pass", "--realm=example.org",
            "--allow-loopback-peers", "--no-cli", "--no-dtls", "--log-file=\(folder.path)/log", "--simple-log",
            "--pidfile=\(folder.path)/pid", "--userdb=\(folder.path)/db",
        ]
        if let identity {
            try Data(identity.certificateChain.utf8).write(to: folder.appendingPathComponent("cert.pem"))
            try Data(identity.privateKey.utf8).write(to: folder.appendingPathComponent("key.pem"))
            arguments += ["--cert=\(folder.path)/cert.pem", "--pkey=\(folder.path)/key.pem"]
        } else {
            arguments.append("--no-tls")
        }
        process.executableURL = URL(fileURLWithPath: Coturn.path)
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        let listens = await Coturn.waits(for: port)
        try #require(listens, "coturn did not begin to listen")
    }

    deinit {
        kill()
        try? FileManager.default.removeItem(at: folder)
    }

    func kill() { Glibc.kill(process.processIdentifier, SIGKILL) }

    /// A port that was free a moment ago.
    private static func freePort() async throws -> UInt16 {
        let server = try await BrokenServer.start(.silent)
        let port = await server.port
        await server.stop()
        return port
    }

    /// Dials until somebody answers, with a bound.
    private static func waits(for port: UInt16) async -> Bool {
        let deadline = ContinuousClock.now + .seconds(20)
        while ContinuousClock.now < deadline {
            let answer = try? await examine("ws://127.0.0.1:\(port)/", timeout: .milliseconds(50))
            if let answer, answer.failure?.stage != .tcp { return true }
            try? await Task.sleep(for: .milliseconds(20))
        }
        return false
    }
}
