import Foundation
import Sora

func describe(_ event: SoraCloseEvent) -> String {
    switch event {
    case .ok(let code, let reason): "ended in order: \(code) \(reason)"
    case .error(let error): "ended by a failure: \(error.localizedDescription)"
    }
}

func explain(_ error: any Error) -> String {
    switch error {
    case SoraError.configurationError(let reason): "a setting is wrong: \(reason)"
    case SoraError.webSocketClosed(let code, let reason): "the server refused: \(code.intValue()) \(reason ?? "")"
    case SoraError.webSocketError(let inner): "the server cannot be reached: \(inner.localizedDescription)"
    case SoraError.connectionTimeout: "no connection in time"
    case SoraError.peerChannelError(let reason): "no path for media: \(reason)"
    case is CancellationError: "given up"
    default: error.localizedDescription
    }
}

func stayConnected(_ configuration: Configuration, use: (MediaChannel) async -> Void) async throws {
    var pause = 1.0
    while true {
        var events: AsyncStream<SoraEvent>?
        do {
            let channel = try await Sora.shared.connect(configuration: configuration) { channel in
                events = channel.subscribeEvents()
            }
            pause = 1
            await use(channel)
            if channel.isAvailable {  // `use` has nothing more to do
                await channel.disconnect()
                return
            }
            let end = await events?.first { $0.kind == .disconnected }?.closeEvent
            if case .ok? = end { return }
        } catch let error as SoraError {
            if case .configurationError = error { throw error }
            print("trying again:", explain(error))
        }
        try await Task.sleep(for: .seconds(pause * Double.random(in: 0.5...1.5)))
        pause = min(pause * 2, 30)
    }
}

func connectBriefly(_ configuration: Configuration) async throws -> MediaChannel {
    var configuration = configuration
    configuration.connectionTimeout = 5
    return try await Sora.shared.connect(configuration: configuration)
}

func startAndCancel(_ configuration: Configuration) {
    let task = Sora.shared.connect(configuration: configuration) { _, error in
        if case SoraError.connectionCancelled? = error { print("cancelled") }
    }
    task.cancel()
}
