import Foundation
import Testing

@testable import Sora

@Suite(.serialized, .leavesNoObjects) struct SoraErrorTests {
    @Test func descriptionsAreExact() {
        let detail = RPCErrorDetail(code: -32601, message: "no method", data: nil)
        let inner = NSError(domain: "d", code: 1, userInfo: [NSLocalizedDescriptionKey: "inner"])
        let texts: [(SoraError, String)] = [
            (.connectionCancelled, "Connection is cancelled"),
            (.connectionTimeout, "Connection is timeout"),
            (.configurationError(reason: "r"), "Configuration error (r)"),
            (.connectionBusy(reason: "r"), "Connection is busy (r)"),
            (.webSocketClosed(statusCode: .normal, reason: "r"), "WebSocket is closed (1000 r)"),
            (.webSocketClosed(statusCode: .other(4490), reason: nil), "WebSocket is closed (4490 Unknown reason)"),
            (.webSocketError(inner), "WebSocket error (inner)"),
            (.signalingChannelError(reason: "r"), "SignalingChannel error (r)"),
            (.invalidSignalingMessage, "Invalid signaling message format"),
            (.unknownSignalingMessageType(type: "t"), "Unknown signaling message type t"),
            (.peerChannelError(reason: "r"), "PeerChannel error (r)"),
            (.mediaChannelError(reason: "r"), "MediaChannel error (r)"),
            (.cameraError(reason: "r"), "Camera error: r"),
            (.messagingError(reason: "r"), "Messaging error: r"),
            (.rpcUnavailable(reason: "r"), "RPC unavailable: r"),
            (.rpcEncodingError(reason: "r"), "RPC encoding error: r"),
            (.rpcDecodingError(reason: "r"), "RPC decoding error: r"),
            (.rpcDataChannelClosed(reason: "r"), "RPC DataChannel is closed: r"),
            (.rpcTimeout, "RPC response timeout"),
            (.rpcServerError(detail: detail), "RPC server error: no method (-32601)"),
            (.dataChannelClosed(statusCode: 4000, reason: "r"), "DataChannel is closed (4000 r)"),
        ]
        for (error, text) in texts {
            #expect(error.errorDescription == text)
            #expect((error as any Error).localizedDescription == text)
        }
    }

    @Test func closeEventsFollowTheRawError() {
        func text(_ error: (any Error)?) -> String { Stage.text(SoraCloseEvent(rawError: error)) }
        #expect(text(nil) == "ok 1000 NO-ERROR")
        #expect(text(SoraError.webSocketClosed(statusCode: .other(4490), reason: "why")) == "ok 4490 why")
        #expect(text(SoraError.webSocketClosed(statusCode: .normal, reason: nil)) == "ok 1000 ")
        #expect(text(SoraError.dataChannelClosed(statusCode: 1000, reason: "bye")) == "ok 1000 bye")
        #expect(text(SoraError.connectionTimeout) == "error Connection is timeout")
        #expect(text(CancellationError()).hasPrefix("error "))
    }

    @Test func eventErrorsKeepTheMessage() {
        let value = SoraEventError(SoraError.rpcTimeout)
        #expect(value.message == "RPC response timeout")
        #expect(value.domain.contains("SoraError"))
        #expect(value == SoraEventError(SoraError.rpcTimeout))
    }
}
