import Foundation
import LocalSora
import SoraLocking

@testable import Sora

/// Everything that an application can see of one connection on the real engine, in the one order in which it happens:
/// callbacks of both levels, and the events of both sources as they are published.
///
/// Entries of events begin with `e:`; those of the instance with `e:sora`.
final class Witness: Sendable {
    let journal = Journal()
    let sora: Sora
    /// Events of the connection.
    let events = Locked<[SoraEvent]>([])
    private let objects = Locked<Transfer<(channel: MediaChannel, task: ConnectionTask)>?>(nil)
    private let streams = Locked<[AsyncStream<Never>]>([])

    /// Starts to connect.
    ///
    /// - Parameter act: called inside of each handler with what was written down, to do something from there.
    init(
        _ configuration: Configuration, sora: Sora = Sora(),
        act: @escaping @Sendable (String, MediaChannel) -> Void = { _, _ in }
    ) {
        self.sora = sora
        let journal = journal
        let channelSlot = Locked(ChannelCore.Weak<MediaChannel>())
        @Sendable func note(_ entry: String) {
            journal.add(entry)
            if let channel = channelSlot.withLock({ $0.object }) { act(entry, channel) }
        }
        watch(sora.events) { journal.add("e:sora \($0.kind.rawValue)") }
        let handlers: any LegacyHandlers = configuration.mediaChannelHandlers
        handlers.install(legacy: { note("legacy \(Self.text($0))") }, signaling: { note("signaling \($0.typeName())") })
        let channelHandlers = configuration.mediaChannelHandlers
        channelHandlers.onConnect = { note("connect \(Self.text($0, "ok"))") }
        channelHandlers.onDisconnect = { note("disconnect \(Stage.text($0))") }
        channelHandlers.onAddStream = { note("stream+ \($0.streamId)") }
        channelHandlers.onRemoveStream = { note("stream- \($0.streamId)") }
        channelHandlers.onReceiveSignalingJSON = { json in
            let object = try? JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
            note("json \(object?["type"] as? String ?? "?")")
        }
        channelHandlers.onDataChannel = { _ in note("available") }
        channelHandlers.onDataChannelOpened = { _, label in note("opened \(label)") }
        channelHandlers.onDataChannelMessage = { _, label, data in note("message \(label) \(data.count)") }
        sora.handlers.onConnect = { note("sora.connect \($0 == nil ? Self.text($1) : "ok")") }
        sora.handlers.onDisconnect = { note("sora.disconnect \(Self.text($1)) \($0.state)") }
        sora.handlers.onRemoveMediaChannel = { [weak sora] channel in
            note("removed\(sora?.mediaChannels.contains { $0 === channel } == true ? " and listed" : "")")
        }
        var added: MediaChannel!
        sora.handlers.onAddMediaChannel = { [unowned self] channel in
            added = channel
            channelSlot.withLockUnchecked { $0.object = channel }
            let events = events
            watch(channel.core.events) { event in
                events.withLock { $0.append(event) }
                journal.add("e:\(event.kind.rawValue)\(Self.detail(event))")
            }
            note("added \(channel.state)")
        }
        let task = sora.connect(configuration: configuration) { channel, error in
            let core = channelSlot.withLock { $0.object }?.core
            let state = core.map { "\($0.state) \($0.progress.state)" } ?? "gone"
            note("completion \(channel == nil ? Self.text(error) : "ok") \(state)")
        }
        // The handler ran inside of `connect`.
        sora.handlers.onAddMediaChannel = nil
        objects.write(Transfer((added, task)))
    }

    /// Sees events in the moment of their publication.
    private func watch(_ hub: EventHub, _ body: @escaping @Sendable (SoraEvent) -> Void) {
        let (stream, continuation) = AsyncStream<Never>.makeStream()
        hub.subscribe(continuation) { event -> Never? in
            body(event)
            return nil
        }
        streams.withLock { $0.append(stream) }
    }

    private static func text(_ error: (any Error)?, _ nothing: String = "nil") -> String {
        error?.localizedDescription ?? nothing
    }

    private static func detail(_ event: SoraEvent) -> String {
        let parts = [event.streamId, event.dataChannelLabel, event.dataChannelMessage.map { "\($0.count)" }]
        return parts.compactMap { $0.map { " \($0)" } }.joined()
    }

    // Set at the end of `init`.
    var channel: MediaChannel { objects.read()!.value.channel }
    var task: ConnectionTask { objects.read()!.value.task }
    var entries: [String] { journal.entries }

    func connected() async -> Bool { await journal.wait(for: "e:connected", seconds: 20) }
    /// The end has been told and the streams of events are finished.
    func ended(seconds: Double = 20) async -> Bool {
        guard await journal.wait(for: "e:disconnected", seconds: seconds) else { return false }
        guard let stream = streams.read().last else { return false }
        for await _ in stream {}
        return true
    }

    // MARK: What must have been seen

    /// Beginning and end, without what happens in between.
    var bracket: [String] {
        let middle = ["json", "signaling", "stream", "opened", "available", "message"]
        let middleEvents = ["e:signaling", "e:stream", "e:dataChannel", "e:videoEnabled", "e:audioEnabled"]
        return entries.filter { entry in !(middle + middleEvents).contains { entry.hasPrefix($0) } }
    }

    static let beginning = ["added connecting", "e:sora mediaChannelAdded"]
    static let success = [
        "completion ok connected completed", "sora.connect ok", "e:sora connected", "connect ok", "e:connected",
    ]
    static func failure(_ error: String, _ task: String) -> [String] {
        [
            "completion \(error) disconnected \(task)", "sora.connect \(error)", "e:sora connectFailed",
            "connect \(error)", "e:connectFailed",
        ]
    }
    static func end(_ raw: String, _ close: String) -> [String] {
        [
            "removed", "e:sora mediaChannelRemoved", "sora.disconnect \(raw) disconnected", "e:sora disconnected",
            "legacy \(raw)", "disconnect \(close)", "e:disconnected",
        ]
    }

    /// What is wrong with the order of callbacks and events as such: each event follows its callback at once, numbers
    /// have no gap, epochs never go back.
    var faults: [String] {
        var faults: [String] = []
        let entries = entries
        for (entry, next) in zip(entries, entries.dropFirst() + [""]) {
            guard let event = Self.event(of: entry) else { continue }
            if next != event { faults.append("\(entry) is followed by \(next)") }
        }
        let expected = entries.compactMap { Self.event(of: $0) }.count
        if expected != entries.filter({ $0.hasPrefix("e:") }).count { faults.append("events without a callback") }
        let seen = events.read()
        if seen.map(\.sequence) != seen.indices.map({ UInt64($0 + 1) }) { faults.append("numbers have a gap") }
        let epochs = seen.compactMap(\.transportEpoch)
        if epochs != epochs.sorted() { faults.append("epochs \(epochs)") }
        return faults
    }

    /// The event that belongs to a callback; nil for callbacks without one.
    private static func event(of entry: String) -> String? {
        let words = entry.split(separator: " ", maxSplits: 1)
        let rest = words.count > 1 ? " \(words[1])" : ""
        switch words.first {
        case "added": return "e:sora mediaChannelAdded"
        case "removed": return "e:sora mediaChannelRemoved"
        case "sora.connect": return "e:sora \(rest == " ok" ? "connected" : "connectFailed")"
        case "sora.disconnect": return "e:sora disconnected"
        case "connect": return "e:\(rest == " ok" ? "connected" : "connectFailed")"
        case "disconnect": return "e:disconnected"
        case "json": return "e:signalingReceivedJSON"
        case "stream+": return "e:streamAdded\(rest)"
        case "stream-": return "e:streamRemoved\(rest)"
        case "opened": return "e:dataChannelOpened\(rest)"
        case "available": return "e:dataChannelAvailable"
        case "message": return "e:dataChannelMessage\(rest)"
        default: return nil
        }
    }
}

/// The deprecated handlers, behind a requirement that is not, so that tests of them do not warn.
protocol LegacyHandlers {
    func install(legacy: @escaping ((any Error)?) -> Void, signaling: @escaping (Signaling) -> Void)
}

extension MediaChannelHandlers: LegacyHandlers {
    @available(*, deprecated)
    func install(legacy: @escaping ((any Error)?) -> Void, signaling: @escaping (Signaling) -> Void) {
        onDisconnectLegacy = legacy
        onReceiveSignaling = signaling
    }
}

/// Says something to clients over their WebSocket at a moment of the test's choice: with the server's next `ping`.
final class Interjection: Sendable {
    private let next = Locked<[ScriptAction]>([])

    /// Makes pings frequent and looks at every message.
    func install(
        in configuration: inout ServerConfiguration,
        _ script: @escaping @Sendable (ScriptedMessage) -> [ScriptAction] = { _ in [.pass] }
    ) {
        configuration.pingInterval = .milliseconds(50)
        configuration.script = { [next] message in
            guard message.type == "ping" else { return script(message) }
            return [.pass] + next.exchange([])
        }
    }

    func say(_ actions: ScriptAction...) { next.write(actions) }
}

/// A message of the server with something changed.
func edited(_ text: String, _ change: (inout [String: Any]) -> Void) -> String {
    guard var object = (try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? [String: Any] else { return text }
    change(&object)
    guard let data = try? JSONSerialization.data(withJSONObject: object) else { return text }
    return String(decoding: data, as: UTF8.self)
}
