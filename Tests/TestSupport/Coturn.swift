import Foundation

/// Debian's coturn for one test, ready for requests: user `user`, password `pass`. It is killed with this object.
package final class Coturn: Sendable {
    package static let path = "/usr/bin/turnserver"

    /// A certificate with its key, in PEM, and the port where they are shown.
    package struct TLS: Sendable {
        package var port: UInt16
        package var certificate: String
        package var key: String

        package init(port: UInt16, certificate: String, key: String) {
            self.port = port
            self.certificate = certificate
            self.key = key
        }
    }

    package let port: UInt16
    private let folder: URL
    private let program: Companion

    /// - Parameters:
    ///   - host: Where it listens, and from where it relays.
    ///   - launcher: A program with arguments that starts it.
    package init(
        host: String = "127.0.0.1", port: UInt16, tls: TLS? = nil, _ more: [String] = [],
        through launcher: [String] = []
    ) throws {
        self.port = port
        folder = FileManager.default.temporaryDirectory.appending(path: "coturn-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        var command =
            launcher + [
                Self.path, "-n", "--listening-ip=\(host)", "--relay-ip=\(host)", "--listening-port=\(port)",
                "--lt-cred-mech", "--user=user:pass", "--realm=example.org", "--allow-loopback-peers", "--no-cli",
                "--no-dtls", "--no-stdout-log", "--log-file=\(folder.path)/log", "--simple-log",
                "--pidfile=\(folder.path)/pid", "--userdb=\(folder.path)/db",
            ] + more
        if let tls {
            let (certificate, key) = (folder.appending(path: "cert.pem"), folder.appending(path: "key.pem"))
            try Data(tls.certificate.utf8).write(to: certificate)
            try Data(tls.key.utf8).write(to: key)
            command += ["--tls-listening-port=\(tls.port)", "--cert=\(certificate.path)", "--pkey=\(key.path)"]
        } else {
            command.append("--no-tls")
        }
        program = try Companion(command.removeFirst(), command, ready: .notification)
    }

    deinit {
        end()
        try? FileManager.default.removeItem(at: folder)
    }

    package func end() { program.end() }
}
