import Foundation
import LocalSora

/// `sora serve`: the local Sora-compatible server.
enum ServeCommand {
    static let definition = CommandDefinition(
        name: "serve",
        abstract: "Runs a local Sora-compatible server.",
        discussion: """
            Signaling is at ws://HOST:PORT/signaling. Stop it with Ctrl-C.
            """,
        options: [
            .value("host", "address", default: "127.0.0.1", "Address to listen on; 0.0.0.0 for all."),
            .value("port", "number", short: "p", default: "5000", "Port of signaling; 0 lets the system choose."),
            .value("media-port", "number", default: "0", "UDP port of media; 0 lets the system choose."),
            .value("loops", "number", default: "1", "Event loops, each a thread; a channel lives on one."),
            .value(
                "video-codec", "codec", default: "VP9", "Codec for clients that name none: VP8, VP9, AV1, H264, H265."),
            .flag("verbose", short: "v", "Logs every event."),
            .flag("json", "Every event as one JSON object a line on standard output."),
        ],
        run: run)

    static func run(_ arguments: ParsedArguments) async throws -> ExitStatus {
        var configuration = ServerConfiguration()
        configuration.host = arguments.string("host") ?? "127.0.0.1"
        configuration.port = UInt16(try arguments.integer("port", in: 0...65_535) ?? 5000)
        configuration.mediaPort = UInt16(try arguments.integer("media-port", in: 0...65_535) ?? 0)
        configuration.eventLoops = try arguments.integer("loops", in: 1...64) ?? 1
        configuration.videoCodec = arguments.string("video-codec")?.uppercased() ?? "VP9"
        let isVerbose = arguments.has("verbose")
        let isJSON = arguments.has("json")
        configuration.onEvent = { event in
            if isJSON {
                Terminal.result([
                    "event": event.kind.rawValue, "channel": event.channelID, "connection": event.connectionID,
                    "detail": event.detail,
                ])
            }
            if isVerbose || ServeCommand.isWorthALine(event.kind) { Terminal.log("\(event)") }
        }
        let server: SoraServer
        do {
            server = try await SoraServer.start(configuration)
        } catch let error as ServerError {
            throw CommandFailure(.unavailable, "\(error)")
        }
        if isJSON { Terminal.result(["event": "serving", "url": server.signalingURL]) }
        Terminal.log("serving \(server.signalingURL)")
        await Interruption.wait()
        await server.stop()
        return .success
    }

    private static func isWorthALine(_ kind: ServerEvent.Kind) -> Bool {
        switch kind {
        case .joined, .left, .refused, .redirected, .disconnected, .mediaLost, .protocolError: true
        default: false
        }
    }
}
