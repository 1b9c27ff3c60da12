import Foundation
import LocalSora
import Testing

@testable import SoraCLI

@Suite struct ServeCommandTests {
    private func configuration(_ words: String...) throws -> ServerConfiguration {
        let root = CommandDefinition(name: "sora", abstract: "", subcommands: [ServeCommand.definition])
        guard case .run(_, _, let arguments) = try ArgumentParser(root: root).parse(["serve"] + words) else {
            throw CommandFailure(.usage, "no run")
        }
        return try ServeCommand.configuration(arguments)
    }

    private func complaint(_ words: String...) -> String {
        let root = CommandDefinition(name: "sora", abstract: "", subcommands: [ServeCommand.definition])
        do {
            guard case .run(_, _, let arguments) = try ArgumentParser(root: root).parse(["serve"] + words) else {
                return ""
            }
            _ = try ServeCommand.configuration(arguments)
            return ""
        } catch let failure as CommandFailure {
            return failure.status == .usage ? failure.message : "not a usage error"
        } catch {
            return "\(error)"
        }
    }

    @Test func defaultsAreALocalServerOnPort5000() throws {
        let configuration = try configuration()
        #expect(configuration.host == "127.0.0.1")
        #expect(configuration.port == 5000)
        #expect(configuration.apiPort == nil)
        #expect(configuration.transportSecurity == .none)
        #expect(configuration.servesPage)
        #expect(configuration.dataChannelSignaling)
        #expect(configuration.faults.isEmpty)
    }

    @Test func wordsReachTheConfiguration() throws {
        let configuration = try configuration(
            "--host", "0.0.0.0", "--port", "0", "--api-port", "3000", "--api-allow-origin", "*", "--no-page",
            "--tls-self-signed", "--tls-name", "sora.test", "--data-channel-signaling", "off", "--rpc-method", "none",
            "--jwt-secret", "s", "--auth-webhook", "http://127.0.0.1:1/", "--max-connections", "7",
            "--answer-timeout", "2.5", "--max-channels", "3", "--max-signaling-rate", "9", "--max-message-size", "5000",
            "--connect-timeout", "1.5", "--fault", "fault=redirect", "--fault", "fault=drop,types=ping+notify")
        #expect(configuration.host == "0.0.0.0")
        #expect(configuration.port == 0)
        #expect(configuration.apiPort == 3000)
        #expect(configuration.apiAllowedOrigin == "*")
        #expect(!configuration.servesPage)
        #expect(configuration.transportSecurity == .selfSigned(names: ["sora.test"]))
        #expect(!configuration.dataChannelSignaling)
        #expect(configuration.rpcMethods == [])
        #expect(configuration.tokenSecret == "s")
        #expect(configuration.authWebhook == "http://127.0.0.1:1/")
        #expect(configuration.maximumConnectionsPerChannel == 7)
        #expect(configuration.answerTimeout == .milliseconds(2500))
        #expect(configuration.maximumChannels == 3)
        #expect(configuration.maximumMessagesPerSecond == 9)
        #expect(configuration.maximumMessageSize == 5000)
        #expect(configuration.connectTimeout == .milliseconds(1500))
        #expect(configuration.faults == [Fault(.redirect(to: nil)), Fault(.dropMessages(types: ["ping", "notify"]))])
    }

    @Test func fileGivesOptionsAndWordsWin() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "serve-\(UUID().uuidString).conf")
        defer { try? FileManager.default.removeItem(at: path) }
        let text = """
            # a comment
            port 6000
            video-codec = H264
            tls-self-signed

            fault fault=drop,types=ping
            """
        try Data(text.utf8).write(to: path)
        let root = CommandDefinition(name: "sora", abstract: "", subcommands: [ServeCommand.definition])
        func read(_ words: String...) throws -> ServerConfiguration {
            guard case .run(_, _, let arguments) = try ArgumentParser(root: root).parse(["serve"] + words) else {
                throw CommandFailure(.usage, "no run")
            }
            return try ServeCommand.configuration(try ServeCommand.withFile(arguments))
        }
        let configuration = try read("--config", path.path, "--video-codec", "VP8")
        #expect(configuration.port == 6000)
        #expect(configuration.videoCodec == "VP8")
        #expect(configuration.transportSecurity == .selfSigned())
        #expect(configuration.faults == [Fault(.dropMessages(types: ["ping"]))])
        try Data("prot 5".utf8).write(to: path)
        #expect(throws: CommandFailure.self) { try read("--config", path.path) }
        #expect(throws: CommandFailure.self) { try read("--config", "/nowhere.conf") }
    }

    @Test func recordingsNeedADirectoryThatIsThere() throws {
        #expect(try configuration().recordingDirectory == nil)
        #expect(try configuration("--recordings", "/").recordingDirectory == "/")
        #expect(throws: CommandFailure.self) { try configuration("--recordings", "/no/such/place") }
        #expect(throws: CommandFailure.self) { try configuration("--recordings", #filePath) }
    }

    @Test func certificateHasAShortAndALongName() throws {
        let files = ServerConfiguration.TransportSecurity.files(certificate: "c.pem", key: "k.pem")
        #expect(try configuration("--cert", "c.pem", "--key", "k.pem").transportSecurity == files)
        #expect(try configuration("--tls-cert", "c.pem", "--tls-key", "k.pem").transportSecurity == files)
    }

    @Test func turnNeedsItsCredentials() throws {
        let configuration = try configuration(
            "--turn", "turn:10.0.0.1:3478", "--turn", "turns:10.0.0.1:5349", "--turn-user", "u", "--turn-password", "p",
            "--turn-policy", "relay")
        #expect(configuration.turnServers.first?.urls == ["turn:10.0.0.1:3478", "turns:10.0.0.1:5349"])
        #expect(configuration.turnServers.first?.username == "u")
        #expect(configuration.turnServers.first?.credential == "p")
        #expect(configuration.forcesRelay)
        #expect(complaint("--turn", "turn:10.0.0.1", "--turn-user", "u").contains("--turn-password"))
        #expect(complaint("--turn", "http://10.0.0.1").contains("no turn: or turns: URI"))
        #expect(complaint("--turn-policy", "relay").contains("needs a --turn server"))
    }

    @Test func urlsOfTheWrongKindAreNamedWithTheirOption() throws {
        for option in ["--auth-webhook", "--session-webhook", "--event-webhook"] {
            for url in ["hook", "ws://127.0.0.1/", "http://", ""] {
                #expect(complaint(option, url) == "\(option) takes a URL with http:// or https://, not '\(url)'")
            }
        }
        #expect(complaint("--redirect", "foo") == "--redirect takes a URL with ws:// or wss://, not 'foo'")
        #expect(complaint("--redirect", "http://127.0.0.1/signaling").contains("ws:// or wss://"))
        #expect(try configuration("--redirect", "wss://sora.test/signaling").redirectLocation != nil)
    }

    @Test func emptySecretIsNoSecret() {
        #expect(complaint("--jwt-secret", "").contains("is empty"))
        #expect(complaint("--jwt-secret", "s").isEmpty)
    }

    @Test func whatCannotStartTellsWhoseFaultItIs() throws {
        let wrongHost = try CommandTests.run("serve", "--port", "0", "--host", "nowhere")
        #expect(wrongHost.status == ExitStatus.usage.rawValue)
        let noFile = try CommandTests.run("serve", "--port", "0", "--cert", "/nowhere.pem", "--key", "/nowhere.pem")
        #expect(noFile.status == ExitStatus.noInput.rawValue)
        #expect(CommandTests.isOneSentence(wrongHost.errors) && CommandTests.isOneSentence(noFile.errors))
    }

    @Test func wrongCombinationsSayWhatBelongsTogether() {
        #expect(complaint("--tls-cert", "c.pem").contains("belong together"))
        #expect(complaint("--tls-key", "k.pem").contains("belong together"))
        #expect(complaint("--cert", "c.pem").contains("belong together"))
        #expect(complaint("--tls-self-signed", "--tls-cert", "c.pem").contains("makes a certificate"))
        #expect(complaint("--fault", "fault=flood").contains("there is no fault 'flood'"))
        #expect(complaint("--spotlight-number", "9").contains("9"))
    }
}
