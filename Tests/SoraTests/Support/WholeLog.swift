@testable import Sora

/// Runs `body` while everything that is logged, at the highest level and of every group, goes to the journal that it is
/// given, and nowhere else.
func withWholeLog(_ body: (Journal) async throws -> Void) async throws {
    let lines = Journal()
    let former = Logger.shared
    let logger = Logger()
    logger.level = .trace
    logger.groups = [.channels, .connectionTimer, .videoCapturer, .videoRenderer, .user]
    logger.destination = .none
    logger.onOutputHandler = { lines.add($0.message) }
    Logger.shared = logger
    Sora.setWebRTCLogLevel(.verbose)
    defer {
        Sora.setWebRTCLogLevel(.none)
        Logger.shared = former
    }
    try await body(lines)
}
