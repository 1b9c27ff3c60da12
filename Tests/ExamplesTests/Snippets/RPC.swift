import Foundation
import Sora

func askForLayer(_ rid: Rid, over channel: MediaChannel) async throws -> Rid? {
    try await channel.waitUntilOpen(label: "rpc")
    let answer = try await channel.rpc(
        method: RequestSimulcastRid.self, params: RequestSimulcastRidParams(rid: rid))
    return answer?.result.rid
}

func askCarefully(over channel: MediaChannel) async throws {
    do {
        _ = try await channel.rpc(
            method: ResetSpotlightRid.self, params: ResetSpotlightRidParams(), timeout: 2)
    } catch SoraError.rpcServerError(let detail) {
        print("the server refused:", detail.code, detail.message)
    } catch SoraError.rpcTimeout {
        print("no answer within two seconds")
    } catch SoraError.rpcUnavailable(let reason), SoraError.rpcDataChannelClosed(let reason) {
        print("no rpc channel:", reason)
    }
}

struct Mood: Codable, Sendable {
    var mood: String
}

func tellMood(over channel: MediaChannel) async throws {
    let answer = try await channel.sendableRPC(
        method: SendablePutSignalingNotifyMetadata<Mood>.self,
        params: PutSignalingNotifyMetadataParams(metadata: Mood(mood: "curious"), push: true))
    print(answer?.result.mood ?? "?")
}

enum RaiseHand: SendableRPCMethodProtocol {
    struct Params: Encodable, Sendable {
        var seat: Int
    }
    struct Result: Decodable, Sendable {
        var position: Int
    }
    static let name = "2026.1.0/RaiseHand"
}

func raiseHand(over channel: MediaChannel) async throws -> Int? {
    try await channel.sendableRPC(method: RaiseHand.self, params: .init(seat: 7))?.result.position
}

func notify(over channel: MediaChannel) async throws {
    _ = try await channel.rpc(
        method: RaiseHand.self, params: .init(seat: 7), isNotificationRequest: true)
}
