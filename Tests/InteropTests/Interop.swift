import Foundation
import LocalSora
import Testing

/// What the tests against real peers share.
enum Interop {
    /// They run inside the namespace of scripts/in-netns.sh, one at a time (`make test-interop`).
    static var isEnabled: Bool { ProcessInfo.processInfo.environment["SORA_INTEROP"] == "1" }
    static let reason: Comment = "runs only inside scripts/in-netns.sh (make test-interop)"
    /// The one interface of the namespace.
    static let host = "10.99.0.1"

    static func startServer(_ change: (inout ServerConfiguration) -> Void = { _ in }) async throws -> SoraServer {
        var configuration = ServerConfiguration()
        configuration.host = host
        configuration.videoCodec = "VP8"
        change(&configuration)
        return try await SoraServer.start(configuration)
    }

    /// Connection options in the Python SDK's names.
    static func pythonOptions(_ server: SoraServer, channel: String, _ more: [String: Any]) -> [String: Any] {
        ["signaling_urls": [server.signalingURL], "channel_id": channel].merging(more) { $1 }
    }

    static var videoFeed: [String: Any] { ["width": 640, "height": 360, "fps": 30] }

    /// The same bytes as Python's `random.Random(seed).randbytes(size)` would be needed to compare; the
    /// peers report SHA-256 instead, so equality of digests is equality of bytes.
    static func digest(_ event: PeerProcess.Event) -> String { event.string("sha256") ?? "" }
}

/// Waits until `condition` holds, at most for `limit`. For what sends no event (statistics of another process,
/// what the kernel says): it can only be asked again, every `interval`.
func eventually(
    within limit: Duration, every interval: Duration = .milliseconds(100), _ condition: () async throws -> Bool
) async throws -> Bool {
    let clock = ContinuousClock()
    let end = clock.now + limit
    while clock.now < end {
        if try await condition() { return true }
        try await clock.sleep(for: interval)
    }
    return try await condition()
}
