import Foundation
import Sora

/// `sora rpc`: one JSON-RPC call.
enum RPCCommand {
    static let definition = CommandDefinition(
        name: "rpc",
        abstract: "Calls an RPC method of the server.",
        discussion: """
            Prints the result as JSON. Without a version, METHOD gets the prefix 2025.2.0/.
             sora rpc RequestSimulcastRid '{"rid":"r1"}'
             sora rpc PutSignalingNotifyMetadata '{"metadata":{"name":"a"}}'
            """,
        options: [
            .flag("notification", "Sends it without asking for an answer."),
            .value("rpc-timeout", "seconds", default: "5", "Limit for the answer."),
        ] + ConnectionOptions.definitions,
        operands: [
            OperandDefinition(name: "method", help: "Name of the method."),
            OperandDefinition(name: "params", help: "Parameters: JSON, or @FILE.", isOptional: true),
        ],
        run: run)

    /// Any method, named at run time.
    private enum AnyMethod: SendableRPCMethodProtocol {
        typealias Params = JSONValue
        typealias Result = JSONValue
        @TaskLocal static var current = ""
        static var name: String { current }
    }

    static func run(_ arguments: ParsedArguments) async throws -> ExitStatus {
        ConnectionOptions.applyLogLevel(arguments)
        let word = arguments.operands[0]
        let method = word.contains("/") ? word : "2025.2.0/\(word)"
        let params =
            try arguments.operands.count > 1
            ? ConnectionOptions.json(arguments.operands[1], of: "<params>") : JSONValue.object([:])
        var configuration = try ConnectionOptions.configuration(arguments, role: .recvonly)
        configuration.audioEnabled = false
        configuration.videoEnabled = false
        configuration.dataChannelSignaling = true
        let timeout = try arguments.number("rpc-timeout", in: 0.001...3600) ?? 5
        let session = try await Session.open(configuration)
        guard await session.waitForLabel("rpc") else {
            return Session.status(of: await session.waitForEnd())
        }
        do {
            let response = try await AnyMethod.$current.withValue(method) {
                try await session.channel.value.sendableRPC(
                    method: AnyMethod.self, params: params,
                    isNotificationRequest: arguments.has("notification"), timeout: timeout)
            }
            if let response {
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
                Terminal.result(String(decoding: try encoder.encode(response.result), as: UTF8.self))
            }
            return Session.status(of: await session.close())
        } catch {
            _ = await session.close()
            throw FailureClass.failure(of: error, doing: method)
        }
    }
}
