import Foundation
import Sora

@MainActor
final class Room {
    private(set) var status = "idle"
    private(set) var senders: [String] = []

    func install(in configuration: Configuration) {
        let handlers = configuration.mediaChannelHandlers
        handlers.onAddStream = { @Sendable [weak self] stream in
            let id = stream.streamId
            Task { @MainActor in self?.senders.append(id) }
        }
        handlers.onDisconnect = { @Sendable [weak self] event in
            Task { @MainActor in self?.status = "over: \(event)" }
        }
    }
}

actor Journal {
    private(set) var lines: [String] = []

    func follow(_ events: AsyncStream<SoraEvent>) async {
        for await event in events {
            switch event.kind {
            case .connected: lines.append("connected as \(event.connectionId ?? "?")")
            case .streamAdded: lines.append("+ \(event.streamId ?? "?")")
            case .streamRemoved: lines.append("- \(event.streamId ?? "?")")
            case .disconnected: lines.append("over")
            default: break
            }
        }
    }
}

func connectWithJournal(_ configuration: Configuration, _ journal: Journal) async throws -> MediaChannel {
    try await Sora.shared.connect(configuration: configuration) { channel in
        let events = channel.subscribeEvents(bufferingPolicy: .unbounded)
        Task { await journal.follow(events) }
    }
}

func countLosses(_ events: AsyncStream<SoraEvent>) async -> UInt64 {
    var lost: UInt64 = 0
    var last: UInt64?
    for await event in events {
        if let last { lost += event.sequence - last - 1 }
        last = event.sequence
    }
    return lost
}
