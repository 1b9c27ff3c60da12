import Foundation
internal import SoraLocking
internal import SoraNetwork
internal import SoraPeer
internal import SoraSDP
internal import SoraSecureTransport
internal import SoraWire

/// The parts of the engine that exist once per process: the event loop, the certificate, the drivers that live.
enum Engine {
    private struct State {
        var loop: EventLoop?
        var certificate: DTLSCertificate?
        var drivers: [ObjectIdentifier: ClientDriver] = [:]
        var capabilityOffer: String?
        var interfaceWatch: InterfaceWatch?
    }
    private static let state = Locked(State())

    /// Makes the driver of a connection.
    static let makeDriver: ConnectionDriverFactory = { settings, core in
        do {
            return try state.withLock { state in
                let loop = try state.loop ?? EventLoop(name: "sora-client")
                state.loop = loop
                let driver = ClientDriver(loop: loop, settings: settings, core: core)
                // Kept from the first moment on, so that its loop stays, and until ``letGo(_:)``, also when nobody else
                // knows it any more: it still has to say farewell.
                state.drivers[ObjectIdentifier(driver)] = driver
                return driver
            }
        } catch {
            return UnavailableDriver(core: core, reason: "\(error)")
        }
    }

    /// The identity of this process in DTLS; made on first use.
    static func certificate() throws -> DTLSCertificate {
        try state.withLock { state in
            if let certificate = state.certificate { return certificate }
            let certificate = try DTLSCertificate.selfSigned()
            state.certificate = certificate
            return certificate
        }
    }

    /// An offer that nobody will answer: it shows the server what this client can do.
    static func capabilityOffer(now: Instant) throws -> String {
        if let known = state.withLock({ $0.capabilityOffer }) { return known }
        let peer = PeerConnection(
            configuration: PeerConfiguration(
                certificate: try certificate(), media: ClientCapabilities.media(playsStereo: false)), now: now)
        _ = peer.addTransceiver(kind: .audio, direction: .sendrecv)
        _ = peer.addTransceiver(kind: .video, direction: .sendrecv)
        let text = try peer.makeOffer(now: now).serialized()
        peer.close(now: now)
        state.withLock { $0.capabilityOffer = text }
        return text
    }

    /// The watch over the machine's addresses; to be called and used on the loop.
    static func interfaceWatch(on loop: EventLoop) -> InterfaceWatch {
        state.withLock { state in
            if let watch = state.interfaceWatch { return watch }
            let watch = InterfaceWatch(loop: loop)
            state.interfaceWatch = watch
            return watch
        }
    }

    static func letGo(_ driver: ClientDriver) {
        let released = state.withLock { $0.drivers.removeValue(forKey: ObjectIdentifier(driver)) }
        withExtendedLifetime(released) {}
    }

    /// Drivers that live.
    static var driverCount: Int { state.withLock { $0.drivers.count } }

    /// Ends the event loop if no connection lives. A later connection starts another.
    static func finish() {
        let loop = state.withLock { state -> EventLoop? in
            guard state.drivers.isEmpty else { return nil }
            defer {
                state.loop = nil
                state.interfaceWatch = nil
            }
            return state.loop
        }
        loop?.stop()
    }
}

/// The driver when the machine has no event loop to give: every attempt fails with the error for a peer connection
/// that cannot be made.
final class UnavailableDriver: ConnectionDriver {
    private let core: ChannelCore
    private let reason: String
    init(core: ChannelCore, reason: String) {
        self.core = core
        self.reason = reason
    }

    func start() {
        Logger.error(type: .peerChannel, message: "cannot start an event loop: \(reason)")
        if core.beginEnd(SoraError.peerChannelError(reason: "createNativePeerChannel failed")) { core.finish() }
    }
    func end(_ cause: EndCause) { core.finish() }
    func abandon() {}
    func outgoingMessagesAvailable() {}
    func call(_ call: RPCCall, completion: @escaping @Sendable (Result<RPCAnswer?, any Error>) -> Void) -> RPCCallID {
        completion(.failure(SoraError.rpcUnavailable(reason: "rpc channel is not available")))
        return RPCCallID(number: 0)
    }
    func cancelCall(_ id: RPCCallID) {}
    func statistics(completion: @escaping @Sendable (Result<[StatisticsRecord], any Error>) -> Void) {
        completion(.success([]))
    }
    func setMicrophoneHardMute(_ isMuted: Bool) -> SoraError? {
        .mediaChannelError(reason: "setAudioHardMute is not supported")
    }
}
