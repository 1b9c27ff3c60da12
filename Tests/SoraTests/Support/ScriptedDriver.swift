import Foundation
import SoraLocking

@testable import Sora

/// A driver that does what a test says. It stands in for the network only; everything above it is the real thing.
final class ScriptedDriver: ConnectionDriver {
    let core: ChannelCore
    let journal = Journal()
    private let calls = Locked<[Int: @Sendable (Result<RPCAnswer?, any Error>) -> Void]>([:])
    private let sent = Locked<[RPCCall]>([])
    private let statisticsRequests = Locked<[@Sendable (Result<[StatisticsRecord], any Error>) -> Void]>([])
    /// Holds the end back until ``finishEnd()``.
    let holdsEnd = Locked(false)

    init(core: ChannelCore) { self.core = core }

    func start() { journal.add("start") }
    func end(_ cause: EndCause) {
        journal.add("end")
        if !holdsEnd.read() { finishEnd() }
    }
    func finishEnd() {
        failCalls("user")
        core.finish()
    }
    func abandon() { journal.add("abandon") }
    func outgoingMessagesAvailable() { journal.add("wake") }
    func call(_ call: RPCCall, completion: @escaping @Sendable (Result<RPCAnswer?, any Error>) -> Void) -> RPCCallID {
        let number = sent.withLock { sent in
            sent.append(call)
            return sent.count
        }
        if call.isNotification {
            completion(.success(nil))
        } else {
            calls.withLock { $0[number] = completion }
        }
        journal.add("call \(number)")
        return RPCCallID(number: number)
    }
    func cancelCall(_ id: RPCCallID) {
        calls.withLock { $0[id.number] = nil }
        journal.add("cancel \(id.number)")
    }
    func statistics(completion: @escaping @Sendable (Result<[StatisticsRecord], any Error>) -> Void) {
        statisticsRequests.withLock { $0.append(completion) }
        journal.add("statistics")
    }
    func setMicrophoneHardMute(_ isMuted: Bool) -> SoraError? {
        journal.add("microphone \(isMuted)")
        return nil
    }

    // MARK: What tests do

    var callsMade: [RPCCall] { sent.read() }
    func answer(_ number: Int, _ result: Result<RPCAnswer?, any Error>) {
        calls.withLock { $0.removeValue(forKey: number) }?(result)
    }
    func failCalls(_ reason: String) {
        for completion in calls.exchange([:]).values {
            completion(.failure(SoraError.rpcDataChannelClosed(reason: reason)))
        }
    }
    func answerStatistics(_ result: Result<[StatisticsRecord], any Error>) {
        for request in statisticsRequests.exchange([]) { request(result) }
    }
    /// The connection ends for a reason of the network.
    func fail(_ error: (any Error)?) { if core.beginEnd(error) { core.finish() } }

    @discardableResult
    func takeOffer(connectionId: String = "connection", clientId: String = "client") -> ObservedPeer {
        let peer = ObservedPeer(onClose: {})
        core.deliver(
            .offerTaken(
                OfferFacts(
                    clientId: clientId, bundleId: nil, connectionId: connectionId,
                    url: URL(string: "wss://offer.example.com"), peer: peer)))
        return peer
    }
}

/// One `Sora` whose connections have scripted drivers.
final class Stage: Sendable {
    let journal = Journal()
    private let driverSlot = Locked<ScriptedDriver?>(nil)
    private let soraSlot = Locked<Sora?>(nil)

    var sora: Sora {
        soraSlot.withLock { slot in
            if let sora = slot { return sora }
            let sora = Sora(makeDriver: { [weak self] _, core in
                let driver = ScriptedDriver(core: core)
                self?.driverSlot.write(driver)
                self?.journal.add("driver")
                return driver
            })
            slot = sora
            return sora
        }
    }
    /// The driver of the latest connection.
    func driver() async -> ScriptedDriver? {
        guard await journal.wait(for: "driver") else { return nil }
        let driver = driverSlot.read()
        guard let driver, await driver.journal.wait(for: "start") else { return nil }
        return driver
    }

    /// Installs handlers that write everything down.
    func record(_ handlers: MediaChannelHandlers) { journal.record(handlers) }

    func recordInstance() { journal.record(sora.handlers, of: sora) }

    static func text(_ event: SoraCloseEvent) -> String {
        switch event {
        case .ok(let code, let reason): "ok \(code) \(reason)"
        case .error(let error): "error \(error.localizedDescription)"
        }
    }

    static func configuration(_ role: Role = .sendrecv) -> Configuration {
        Configuration(url: URL(string: "wss://sora.example.com/signaling")!, channelId: "room", role: role)
    }
}
