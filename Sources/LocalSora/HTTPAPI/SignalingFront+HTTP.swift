import SoraHTTP
import SoraMessages
import SoraNetwork
import SoraWire

// HTTP requests: the page, the API, metrics.

extension SignalingFront {
    private static let target = "x-sora-target"

    /// What needs nobody else. Nil: see ``answer(_:)``.
    func answerAtOnce(_ request: HTTPRequest, isForAPI: Bool) -> HTTPResponse? {
        let head = request.head
        switch head.method {
        case "GET", "HEAD":
            if head.path == "/metrics" || head.path == "/stats" { return nil }
            if !isForAPI, configuration.servesPage, let asset = PageAssets.find(head.path) {
                return asset.response(to: head)
            }
            if head.path == "/" { return .text(200, "A local Sora server. Signaling is at /signaling.") }
            return .text(404, "not found")
        case "OPTIONS":
            var response = HTTPResponse(status: 204)
            addCORS(to: &response)
            response.head.headers["Allow"] = "GET, HEAD, POST, OPTIONS"
            return response
        case "POST":
            guard head.path == "/" else { return .text(404, "the API is at /") }
            return nil
        default: return .text(405, "use GET or POST", headers: ["Allow": "GET, HEAD, POST, OPTIONS"])
        }
    }

    func answer(_ request: HTTPRequest) async -> HTTPResponse {
        if request.head.method == "POST" { return await callAPI(request) }
        if request.head.path == "/metrics" {
            return HTTPResponse(
                status: 200, type: "text/plain; version=0.0.4; charset=utf-8", headers: ["Cache-Control": "no-store"],
                body: Array(await snapshot().prometheus.utf8))
        }
        return .json(200, await statistics())
    }

    private func addCORS(to response: inout HTTPResponse) {
        guard let origin = configuration.apiAllowedOrigin else { return }
        response.head.headers["Access-Control-Allow-Origin"] = origin
        response.head.headers["Access-Control-Allow-Methods"] = "POST, OPTIONS"
        response.head.headers["Access-Control-Allow-Headers"] =
            "Origin, X-Requested-With, Content-Type, Accept, x-sora-target"
        response.head.headers["Access-Control-Max-Age"] = "1000"
    }

    // MARK: API

    private func callAPI(_ request: HTTPRequest) async -> HTTPResponse {
        counters.apiCalls += 1
        var response: HTTPResponse
        do throws(APIError) {
            // Browsers send the target's header across origins only when CORS lets them. What is left is a page
            // whose name was made to point here (DNS rebinding): its origin is a foreign name.
            guard allows(origin: request.head.headers["Origin"]) else { throw APIError("FORBIDDEN-ORIGIN") }
            guard let target = request.head.headers[Self.target] else { throw APIError("MISSING-X-SORA-TARGET") }
            guard let call = APICall.all[target] else { throw APIError("UNKNOWN-TARGET", target) }
            var object = JSONObject()
            if !request.body.isEmpty {
                guard let json = try? JSONValue(parsing: request.body), let parsed = json.objectValue else {
                    throw APIError("INVALID-JSON")
                }
                object = parsed
            }
            response = .json(200, try await perform(call, APIParameters(object: object)))
        } catch {
            counters.failedAPICalls += 1
            response = .json(400, .object(error.json))
        }
        addCORS(to: &response)
        return response
    }

    private func allows(origin: String?) -> Bool {
        guard let origin, origin != configuration.apiAllowedOrigin, configuration.apiAllowedOrigin != "*" else {
            return true
        }
        guard let location = HTTPLocation(origin) else { return false }
        return location.host == "localhost" || IPAddress(location.host) != nil
    }

    private func perform(_ call: APICall, _ parameters: APIParameters) async throws(APIError) -> JSONValue {
        switch call {
        case .server(let body): return try await body(self, parameters)
        case .everyChannel(let body):
            var items: [JSONValue] = []
            for media in mediaLoops {
                for part in await media.withAllChannels(body) { items += part }
            }
            return .array(items)
        case .channel(let body): return try await perform(body, parameters, absent: nil)
        case .channelOr(let absent, let body): return try await perform(body, parameters, absent: absent)
        }
    }

    private func perform(
        _ body: @escaping APICall.OnChannel, _ parameters: APIParameters, absent: JSONValue?
    ) async throws(APIError) -> JSONValue {
        guard let id = parameters.object["channel_id"]?.stringValue else {
            throw APIError(.invalidParameter("channel_id"))
        }
        let result = await mediaLoop(for: id)?.withChannel(id) { channel, now -> Result<JSONValue, APIError> in
            do throws(OperationError) {
                return .success(try body(channel, parameters, now))
            } catch {
                return .failure(APIError(error))
            }
        }
        if let result { return try result.get() }
        guard let absent else { throw APIError("CHANNEL-NOT-FOUND", "there is no channel \(id)") }
        return absent
    }

    // MARK: Faults

    /// Returns the fault's number and how many present connections it met; nil if there are too many.
    func inject(_ fault: Fault) async -> (number: Int, connections: Int)? {
        guard let number = faults.add(fault) else { return nil }
        var count = 0
        if fault.kind.isOfConnection {
            for media in mediaLoops { count += await media.apply(fault, number: number) }
            if count > 0 { faults.use(number, count) }
        }
        return (number, count)
    }

    /// Takes faults back: one, or all. Returns how many.
    func removeFaults(_ number: Int?) async -> Int {
        let count = faults.remove(number)
        for media in mediaLoops { await media.endFaults(number) }
        return count
    }
}

extension HTTPResponse {
    static func json(_ status: Int, _ value: JSONValue) -> HTTPResponse {
        HTTPResponse(
            status: status, type: "application/json", headers: ["Cache-Control": "no-store"], body: value.utf8)
    }
}
