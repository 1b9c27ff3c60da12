import Foundation
import Sora
import SoraLocking

/// `sora message`: data channel messages from and to the terminal.
enum MessageCommand {
    static let definition = CommandDefinition(
        name: "message",
        abstract: "Sends and receives data channel messages.",
        discussion: """
            Each line of standard input (or each --send) leaves as one message; what arrives is printed, one message \
            a line. Binary messages are printed in Base64 with --json, else by their length.
             sora message --label '#chat'
             sora message --label '#chat' --send hello --exit-after 1
            """,
        options: [
            .value("label", "label", short: "l", default: "#sora", "Data channel; must begin with #."),
            .value("send", "text", isRepeatable: true, "A message to send as soon as the channel is open."),
            .value("send-file", "path", isRepeatable: true, "A file to send as one message."),
            .value("expect", "count", "Ends once this many messages have arrived."),
            .flag("no-input", "Does not read standard input."),
            .value(
                "direction", "direction", default: "sendrecv", allowed: ["sendrecv", "sendonly", "recvonly"],
                "Direction of the channel."),
            .flag("compress", "Compresses messages."),
            .flag("sender", "Shows who sent each message."),
        ] + ConnectionOptions.definitions,
        run: run)

    static func run(_ arguments: ParsedArguments) async throws -> ExitStatus {
        ConnectionOptions.applyLogLevel(arguments)
        let label = arguments.string("label") ?? "#sora"
        guard label.hasPrefix("#"), label.utf8.count > 1 else {
            throw CommandFailure(.usage, "--label must begin with # and have a name behind it, not '\(label)'")
        }
        var configuration = try ConnectionOptions.configuration(arguments, role: .sendrecv)
        configuration.audioEnabled = false
        configuration.videoEnabled = false
        configuration.dataChannelSignaling = true
        var channel: [String: Any] = ["label": label, "direction": arguments.string("direction") ?? "sendrecv"]
        if arguments.has("compress") { channel["compress"] = true }
        let showsSender = arguments.has("sender")
        if showsSender { channel["header"] = [["type": "sender_connection_id"]] }
        configuration.dataChannels = [channel]

        var outgoing = arguments.strings("send").map { Data($0.utf8) }
        for path in arguments.strings("send-file") {
            guard let data = FileManager.default.contents(atPath: path) else {
                throw CommandFailure(.noInput, "cannot read '\(path)'")
            }
            outgoing.append(data)
        }
        let expected = try arguments.integer("expect", in: 1...Int.max)
        let duration = try arguments.number("duration", in: 0...1e9)
        let printer = MessagePrinter(isJSON: arguments.has("json"), showsSender: showsSender)
        let counter = Locked(0)
        let session = try await Session.open(configuration) { handlers, _ in
            handlers.onDataChannelMessage = { channel, messageLabel, data in
                guard messageLabel == label else { return }
                printer.print(data, label: messageLabel)
                let count = counter.withLock { count in
                    count += 1
                    return count
                }
                if let expected, count == expected { channel.disconnect(error: nil) }
            }
        }
        guard await session.waitForLabel(label) else {
            return Session.status(of: await session.waitForEnd())
        }
        if !arguments.has("quiet") { Terminal.log("connected as \(session.channel.value.connectionId ?? "?")") }
        for data in outgoing { try await send(data, label: label, session) }
        if !arguments.has("no-input"), outgoing.isEmpty {
            let lines = InputLines()
            Task { [weak session] in
                for await line in lines.stream {
                    guard let session, !session.hasEnded else { return }
                    do { try await send(Data(line.utf8), label: label, session) } catch {
                        Terminal.error("\((error as? CommandFailure)?.message ?? "\(error)")")
                    }
                }
                // The end of the input ends the command, unless it waits for messages or time.
                if expected == nil, duration == nil { session?.channel.value.disconnect(error: nil) }
            }
        } else if expected == nil, duration == nil, !outgoing.isEmpty {
            // Everything was said; the connection closes behind what is still queued.
            return Session.status(of: await session.close())
        }
        let ending = await session.run(for: duration)
        let status = Session.status(of: ending)
        if status == .success, let expected, counter.withLock({ $0 }) < expected {
            Terminal.error("\(counter.withLock { $0 }) of \(expected) messages arrived")
            return .timeout
        }
        return status
    }

    /// Sends once the connection has switched to data channels, which may be a moment after the channel opened.
    private static func send(_ data: Data, label: String, _ session: Session) async throws {
        let end = ContinuousClock.now + .seconds(5)
        while let error = session.channel.value.sendMessage(label: label, data: data) {
            guard case .messagingError("DataChannel is not open yet")? = error as? SoraError,
                ContinuousClock.now < end, !session.hasEnded
            else { throw FailureClass.failure(of: error, doing: "cannot send") }
            try await Task.sleep(for: .milliseconds(10))
        }
    }
}

/// Prints messages, one a line.
struct MessagePrinter: Sendable {
    var isJSON: Bool
    var showsSender: Bool

    func print(_ data: Data, label: String) {
        var payload = data
        var sender: String?
        if showsSender, data.count >= 26 {
            sender = String(decoding: data.prefix(26), as: UTF8.self)
            payload = Data(data.dropFirst(26))
        }
        let text = String(data: payload, encoding: .utf8)
        if isJSON {
            var object: [String: Any] = ["label": label, "size": payload.count]
            if let sender { object["sender"] = sender }
            if let text { object["text"] = text } else { object["base64"] = payload.base64EncodedString() }
            Terminal.result(object)
        } else {
            let body = text ?? "(\(payload.count) bytes)"
            Terminal.result(sender.map { "\($0): \(body)" } ?? body)
        }
    }
}

/// Lines of standard input, read on a thread of their own: reading blocks.
struct InputLines {
    let stream: AsyncStream<String>

    init() {
        let (stream, continuation) = AsyncStream.makeStream(of: String.self)
        self.stream = stream
        Thread.detachNewThread {
            while let line = readLine(strippingNewline: true) { continuation.yield(line) }
            continuation.finish()
        }
    }
}
