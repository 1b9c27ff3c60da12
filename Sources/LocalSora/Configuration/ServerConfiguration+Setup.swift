import Foundation
import SoraHTTP
import SoraMessages
import SoraNetwork
import SoraSecureTransport
import SoraWire

// What a configuration means for the parts of the server.

extension ServerConfiguration {
    var hasTLS: Bool { transportSecurity != .none }

    func url(_ scheme: String, port: UInt16, path: String) -> String {
        let reachable = host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : host
        return "\(scheme)://\(reachable.contains(":") ? "[\(reachable)]" : reachable):\(port)\(path)"
    }

    func signalingURL(port: UInt16) -> String { url(hasTLS ? "wss" : "ws", port: port, path: "/signaling") }

    /// The certificate and key for TLS; nil without.
    func tlsIdentity(host: IPAddress) throws -> TLSIdentity? {
        switch transportSecurity {
        case .none: return nil
        case .pem(let certificate, let key):
            return TLSIdentity(certificateChain: certificate, privateKey: key)
        case .files(let certificate, let key):
            return TLSIdentity(certificateChain: try text(of: certificate), privateKey: try text(of: key))
        case .selfSigned(let names):
            var all = names + ["localhost"]
            all += host.isUnspecified ? ["127.0.0.1", "::1"] : [self.host]
            if host.isUnspecified {
                let present = NetworkInterfaces.current(includesLoopback: true).map(\.address)
                all += SoraServer.reachableAddresses(present, like: host).map(\.description)
            }
            var seen = Set<String>()
            do {
                return try TLSIdentity.generate(names: all.filter { seen.insert($0).inserted })
            } catch {
                throw ServerError.certificate("\(error)")
            }
        }
    }

    private func text(of path: String) throws -> String {
        do {
            return try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw ServerError.certificate("'\(path)' cannot be read")
        }
    }

    func webhookLocations() throws -> Webhooks.Locations {
        Webhooks.Locations(
            auth: try location(authWebhook), session: try location(sessionWebhook), event: try location(eventWebhook))
    }

    private func location(_ text: String?) throws -> HTTPLocation? {
        guard let text else { return nil }
        guard let location = HTTPLocation(text), location.scheme == .http || location.scheme == .https else {
            throw ServerError.invalidURL(text)
        }
        return location
    }
}

extension ChannelSettings {
    init(_ configuration: ServerConfiguration) throws {
        let certificate: DTLSCertificate
        do {
            certificate = try DTLSCertificate.selfSigned()
        } catch {
            throw ServerError.certificate("\(error)")
        }
        let origin = Date().timeIntervalSince1970 - Double(EventLoop.clock().nanoseconds) / 1e9
        self.init(certificate: certificate, wallClockOrigin: origin)
        dataChannelSignaling = configuration.dataChannelSignaling
        ignoreDisconnectWebSocket = configuration.ignoreDisconnectWebSocket
        compressesSystemChannels = configuration.compressesDataChannels
        videoCodec = configuration.videoCodec
        videoBitRate = configuration.videoBitRate
        if let methods = configuration.rpcMethods { rpcMethods = methods }
        spotlightNumber = configuration.spotlightNumber
        records = configuration.recordingDirectory != nil
        maximumMembers = configuration.maximumConnectionsPerChannel
        maximumMessageSize = configuration.maximumMessageSize
        maximumBufferedMessages = configuration.maximumBufferedMessageBytes
        maximumMessagesPerSecond = configuration.maximumDataMessagesPerSecond
        maximumBytesPerSecond = configuration.maximumDataBytesPerSecond
        silenceTimeout = configuration.silenceTimeout
        answerTimeout = configuration.answerTimeout
        pingInterval = configuration.pingInterval
        statsInterval = configuration.statsInterval
        updateInterval = configuration.updateInterval
        iceServers = configuration.turnServers.map {
            .init(urls: $0.urls, username: $0.username, credential: $0.credential)
        }
        iceTransportPolicy = configuration.forcesRelay ? "relay" : "all"
    }
}
