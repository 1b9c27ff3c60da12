import Foundation
import SoraClient
import SoraLocking
import SoraPeer
import SoraWire

@testable import Sora

/// Connections of one `Sora` on the client's machine in virtual time. What a test does happens at once; everything that
/// the application is told is written down in order. Used in one isolation: a test with tasks of its own that call the
/// channel is on the main actor.
final class VirtualClient {
    let journal = Journal()
    let sora: Sora
    /// Those of the latest attempt.
    private(set) var channel: MediaChannel!
    private(set) var task: ConnectionTask!
    /// What the SDK left for later, and the driver that it made.
    private final class Made: Sendable {
        let gate = DeliveryGate()
        let driverSlot = Locked<VirtualDriver?>(nil)
    }
    private let made = Made()
    private var toldBefore = 0

    /// What was never delivered keeps its queue, which keeps it.
    deinit {
        made.gate.clear()
        made.driverSlot.write(nil)
    }

    /// Starts the first attempt.
    init(_ change: (inout Configuration) -> Void = { _ in }) {
        let made = made
        sora = Sora(
            makeDriver: { settings, core in
                let driver = VirtualDriver(core: core, settings: settings)
                made.driverSlot.write(driver)
                return driver
            },
            makeDeliveries: { made.gate.queue() })
        journal.record(sora.handlers, of: sora)
        connect(change)
    }

    /// Starts a further attempt.
    func connect(_ change: (inout Configuration) -> Void = { _ in }) {
        var configuration = Stage.configuration(.recvonly)
        journal.record(configuration.mediaChannelHandlers)
        change(&configuration)
        let journal = journal
        task = sora.connect(configuration: configuration) { channel, error in
            journal.add("completion \(channel == nil ? "nil" : "channel") \(error?.localizedDescription ?? "nil")")
        }
        channel = sora.mediaChannels.last
        deliver()
    }

    var driver: VirtualDriver? { made.driverSlot.read() }

    /// What was told since the last call.
    func news() -> [String] {
        let all = journal.entries
        defer { toldBefore = all.count }
        return Array(all[toldBefore...])
    }

    func deliver() { made.gate.open() }

    /// Lets the driver do something and the application hear of it.
    func act(_ body: (VirtualDriver) -> Void) {
        if let driver { body(driver) }
        deliver()
    }

    func text(_ text: String) { act { $0.text(text) } }
    func peer(_ output: ClientPeerOutput) { act { $0.peer(output) } }
    func advance(_ duration: Duration) { act { $0.advance(duration) } }

    static let sdp = #"v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"#
    static let reOffer = #"{"type":"re-offer","sdp":"\#(sdp)"}"#
    static func offer(_ labels: [String] = [], connection: String = "connection") -> String {
        let channels = labels.map { #"{"label":"\#($0)"}"# }.joined(separator: ",")
        return #"{"type":"offer","client_id":"client","connection_id":"\#(connection)","sdp":"\#(sdp)","#
            + #""data_channels":[\#(channels)]}"#
    }

    /// Up to `connected`, with the channels of `labels` open as streams 0, 1, 2, ….
    func establish(_ labels: [String] = []) {
        act { $0.openLatestDial() }
        text(Self.offer(labels))
        peer(.stateChanged(.connected))
        for (index, label) in labels.enumerated() {
            peer(.dataChannelOpened(StreamID(UInt16(index)), label: label))
        }
    }

    /// Whether the end of the latest attempt comes to be told. The release of devices takes real time.
    nonisolated(nonsending) func hasEnded() async -> Bool {
        guard let channel else { return false }
        let ended = await eventually { [self] in
            deliver()
            return channel.state == .disconnected && !sora.mediaChannels.contains { $0 === channel }
        }
        deliver()
        return ended
    }
}
