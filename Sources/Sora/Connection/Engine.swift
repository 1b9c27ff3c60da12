import Foundation

/// The parts of the engine that exist once per process.
enum Engine {
    /// Makes the driver of a connection.
    static let makeDriver: ConnectionDriverFactory = { _, core in UnavailableDriver(core: core) }

    static func finish() {}
}

/// The driver of a build that has no engine: every attempt fails with the error for a peer connection that cannot
/// be made.
final class UnavailableDriver: ConnectionDriver {
    private let core: ChannelCore
    init(core: ChannelCore) { self.core = core }

    func start() {
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
