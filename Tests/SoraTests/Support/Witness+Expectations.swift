import Foundation
import Testing

@testable import Sora

/// Waits for the end of a failed attempt and compares everything that was told.
///
/// - Parameters:
///   - raw: the raw error's text, or its beginning if `isPrefix`; "nil" for an end without error.
///   - close: what `onDisconnect` gets; nil stands for the error itself.
func expectFailure(
    _ witness: Witness, _ raw: String, isPrefix: Bool = false, close: String? = nil, task: String = "completed",
    location: SourceLocation = #_sourceLocation
) async {
    let told = await rawError(witness, raw, isPrefix: isPrefix, seconds: 20, location)
    let expected =
        Witness.beginning + Witness.failure(told == "nil" ? "Connection is cancelled" : told, task)
        + Witness.end(told, close ?? "error \(told)")
    #expect(witness.bracket == expected, sourceLocation: location)
    #expect(witness.faults == [], sourceLocation: location)
    #expect(witness.task.state == (task == "canceled" ? .canceled : .completed), sourceLocation: location)
    #expect(witness.channel.state == .disconnected && witness.sora.mediaChannels.isEmpty, sourceLocation: location)
    #expect(witness.channel.streams.isEmpty && witness.channel.contactUrl == nil, sourceLocation: location)
}

/// Waits for the end and compares the raw error's text, which it returns.
private func rawError(
    _ witness: Witness, _ raw: String, isPrefix: Bool, seconds: Double, _ location: SourceLocation
) async -> String {
    #expect(await witness.ended(seconds: seconds), "\(witness.entries)", sourceLocation: location)
    let told = witness.entries.first { $0.hasPrefix("legacy ") }.map { String($0.dropFirst(7)) } ?? "nothing"
    if isPrefix {
        #expect(told.hasPrefix(raw), sourceLocation: location)
    } else {
        #expect(told == raw, sourceLocation: location)
    }
    return told
}

/// Waits for the end of a connection that stood and compares both brackets.
func expectEnd(
    _ witness: Witness, _ raw: String, isPrefix: Bool = false, close: String? = nil, seconds: Double = 20,
    location: SourceLocation = #_sourceLocation
) async {
    let told = await rawError(witness, raw, isPrefix: isPrefix, seconds: seconds, location)
    #expect(
        witness.bracket == Witness.beginning + Witness.success + Witness.end(told, close ?? "error \(told)"),
        sourceLocation: location)
    #expect(witness.faults == [], sourceLocation: location)
}

/// Waits until the connection stands and messages may be sent.
func expectReady(_ witness: Witness, location: SourceLocation = #_sourceLocation) async {
    #expect(await witness.connected(), sourceLocation: location)
    #expect((try? await witness.channel.waitUntilOpen(label: "#spam")) != nil, sourceLocation: location)
}
