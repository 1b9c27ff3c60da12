import SoraHTTP
import SoraMessages
import SoraNetwork
import SoraWire

/// Posts JSON to HTTP servers, without waiting: answers come to closures on the loop.
///
/// Each request has a connection of its own and one deadline for everything. Confined to its loop.
final class WebhookClient {
    enum Failure: Error, Equatable, CustomStringConvertible {
        case cannotConnect(String)
        case timedOut
        case status(Int)
        case notJSON
        case overloaded
        case stopped
        var description: String {
            switch self {
            case .cannotConnect(let reason): reason
            case .timedOut: "no answer in time"
            case .status(let status): "answered with status \(status)"
            case .notJSON: "the answer is no JSON object"
            case .overloaded: "too many requests are waiting"
            case .stopped: "the server stops"
            }
        }
    }
    typealias Completion = (Result<JSONObject, Failure>) -> Void

    private final class Exchange {
        var stream: (any ByteStream)?
        var dialer: StreamDialer?
        var timer: LoopTimer?
        var collector = HTTPCollector(.response, limits: .init(head: 16 << 10, headers: 100, body: 1 << 20))
        var completion: Completion?
    }

    private let loop: EventLoop
    private let timeout: Duration
    private let tls: TLSContext?
    private var exchanges: [ObjectIdentifier: Exchange] = [:]
    private static let limit = 256

    init(on loop: EventLoop, timeout: Duration) {
        self.loop = loop
        self.timeout = timeout
        tls = try? TLSContext(client: TLSClientConfiguration())
    }

    /// - Parameter completion: Called once, never before this returns.
    func post(
        _ body: JSONObject, to location: HTTPLocation, headers: HTTPHeaders = [:], completion: @escaping Completion
    ) {
        let exchange = Exchange()
        exchange.completion = completion
        let deadline = loop.now + timeout
        let isOverloaded = exchanges.count >= Self.limit
        exchanges[ObjectIdentifier(exchange)] = exchange
        exchange.timer = loop.scheduleTimer(at: isOverloaded ? loop.now : deadline) { [weak self, weak exchange] in
            guard let exchange else { return }
            self?.end(exchange, .failure(isOverloaded ? .overloaded : .timedOut))
        }
        if isOverloaded { return }
        var head = HTTPRequestHead(method: "POST", target: location.target)
        head.headers = [
            "Host": location.authority, "Content-Type": "application/json", "Accept": "application/json",
            "User-Agent": "LocalSora", "Connection": "close",
        ]
        for field in headers.fields { head.headers.add(field.name, field.value) }
        let request = HTTPRequest(head: head, body: JSONValue.object(body).utf8).serialized()
        let target = StreamDialer.Target(
            host: location.host, port: location.port, tls: location.isSecure ? tls : nil)
        exchange.dialer = StreamDialer(target, on: loop, deadline: deadline) { [weak self, weak exchange] result in
            guard let self, let exchange else {
                if case .success(let stream) = result { stream.close() }
                return
            }
            exchange.dialer = nil
            switch result {
            case .success(let stream):
                exchange.stream = stream
                stream.onEvent = { [weak self, weak exchange] event in
                    guard let exchange else { return }
                    self?.handle(event, of: exchange)
                }
                stream.write(request)
            case .failure(let failure): self.end(exchange, .failure(.cannotConnect("\(failure)")))
            }
        }
    }

    func stop() {
        for exchange in Array(exchanges.values) { end(exchange, .failure(.stopped)) }
    }

    private func handle(_ event: StreamEvent, of exchange: Exchange) {
        switch event {
        case .opened, .writable: return
        case .data(let bytes): exchange.collector.receive(bytes)
        case .ended, .closed: exchange.collector.receiveEnd()
        }
        do {
            guard let message = try exchange.collector.next() else {
                if case .closed = event { end(exchange, .failure(.cannotConnect("the server closed the connection"))) }
                return
            }
            guard case .response(let response) = message else { return }
            guard response.head.status == 200 else { return end(exchange, .failure(.status(response.head.status))) }
            guard let json = try? JSONValue(parsing: response.body), let object = json.objectValue else {
                return end(exchange, .failure(.notJSON))
            }
            end(exchange, .success(object))
        } catch {
            end(exchange, .failure(.cannotConnect("\(error)")))
        }
    }

    private func end(_ exchange: Exchange, _ result: Result<JSONObject, Failure>) {
        guard let completion = exchange.completion else { return }
        exchange.completion = nil
        exchanges.removeValue(forKey: ObjectIdentifier(exchange))
        exchange.timer?.cancel()
        exchange.timer = nil
        exchange.dialer?.cancel()
        exchange.dialer = nil
        exchange.stream?.onEvent = nil
        exchange.stream?.close()
        exchange.stream = nil
        completion(result)
    }
}
