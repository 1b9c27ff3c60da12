import Foundation
import Glibc
import SoraHTTP
import SoraMessages

/// A session with Janus over its HTTP interface: requests one after the other on one blocking connection.
final class JanusSession {
    private let port: UInt16
    private var descriptor: Int32 = -1
    private var session = 0
    private var transactions = 0
    private let room = 4711

    init(port: UInt16) { self.port = port }
    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Creates the session, its room, and returns nothing of it: handles come from ``attach()``.
    func open(publishers: Int) throws {
        session = try identifier(of: request("/janus", ["janus": "create"]))
        let handle = try attach()
        let answer = try send(
            [
                "request": "create", "room": .integer(Int64(room)), "publishers": .integer(Int64(publishers)),
                "videocodec": "vp8", "bitrate": 0,
            ], to: handle)
        guard answer["plugindata"]?.objectValue?["data"]?.objectValue?["videoroom"]?.stringValue == "created" else {
            throw ServerProcess.Failure(description: "Janus made no room: \(answer.text)")
        }
    }

    func attach() throws -> Int {
        try identifier(
            of: request("/janus/\(session)", ["janus": "attach", "plugin": "janus.plugin.videoroom"]))
    }

    /// A publisher's offer in, its feed's number and the answer out.
    func publish(_ handle: Int, offer: String) throws -> (feed: Int, answer: String) {
        _ = try send(
            ["request": "joinandconfigure", "room": .integer(Int64(room)), "ptype": "publisher"],
            description: ["type": "offer", "sdp": .string(offer)], to: handle)
        let (data, sdp) = try description(from: handle)
        guard let feed = data["id"]?.intValue else {
            throw ServerProcess.Failure(description: "Janus named no feed: \(data.text)")
        }
        return (feed, sdp)
    }

    /// The offer for a viewer of `feed`.
    func subscribe(_ handle: Int, to feed: Int) throws -> String {
        _ = try send(
            [
                "request": "join", "room": .integer(Int64(room)), "ptype": "subscriber",
                "streams": [["feed": .integer(Int64(feed))]],
            ], to: handle)
        return try description(from: handle).sdp
    }

    func start(_ handle: Int, answer: String) throws {
        _ = try send(["request": "start"], description: ["type": "answer", "sdp": .string(answer)], to: handle)
    }

    // MARK: Requests

    private func send(_ body: JSONValue, description: JSONValue? = nil, to handle: Int) throws -> JSONObject {
        var message: JSONObject = ["janus": "message", "body": body]
        if let description { message["jsep"] = description }
        return try request("/janus/\(session)/\(handle)", message)
    }

    /// Reads events until one of `handle` brings a session description.
    private func description(from handle: Int) throws -> (data: JSONObject, sdp: String) {
        for _ in 0..<1000 {
            let event = try exchange("GET", "/janus/\(session)?maxev=1", [])
            guard event["sender"]?.intValue == handle, event["janus"]?.stringValue == "event" else { continue }
            let data = event["plugindata"]?.objectValue?["data"]?.objectValue ?? JSONObject()
            if let sdp = event["jsep"]?.objectValue?["sdp"]?.stringValue { return (data, sdp) }
            if data["error"] != nil { throw ServerProcess.Failure(description: "Janus refused: \(data.text)") }
        }
        throw ServerProcess.Failure(description: "Janus sent no session description")
    }

    private func identifier(of answer: JSONObject) throws -> Int {
        guard let id = answer["data"]?.objectValue?["id"]?.intValue else {
            throw ServerProcess.Failure(description: "Janus gave no identifier: \(answer.text)")
        }
        return id
    }

    private func request(_ path: String, _ message: JSONObject) throws -> JSONObject {
        transactions += 1
        var message = message
        message["transaction"] = .string("t\(transactions)")
        let answer = try exchange("POST", path, Array(message.text.utf8))
        if answer["janus"]?.stringValue == "error" {
            throw ServerProcess.Failure(description: "Janus refused: \(answer.text)")
        }
        return answer
    }

    private func exchange(_ method: String, _ path: String, _ body: [UInt8]) throws -> JSONObject {
        if descriptor < 0 { descriptor = try Self.connect(port) }
        let headers: HTTPHeaders = ["Host": "localhost", "Content-Type": "application/json"]
        var rest = HTTPRequest(head: HTTPRequestHead(method: method, target: path, headers: headers), body: body)
            .serialized()[...]
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard written > 0 else { throw ServerProcess.Failure(description: "Janus does not listen any more") }
            rest = rest.dropFirst(written)
        }
        var collector = HTTPCollector(.response)
        collector.requestMethod = method
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            if case .response(let response)? = try collector.next() {
                if !response.head.keepsAlive {
                    close(descriptor)
                    descriptor = -1
                }
                return try JSONValue(parsing: response.body).objectValue ?? JSONObject()
            }
            let read = recv(descriptor, &buffer, buffer.count, 0)
            guard read > 0 else { throw ServerProcess.Failure(description: "Janus did not answer \(method) \(path)") }
            collector.receive(Array(buffer[..<read]))
        }
    }

    /// A connection to a loopback port; throws when nobody listens.
    static func connect(_ port: UInt16) throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var limit = timeval(tv_sec: 40, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            close(descriptor)
            throw ServerProcess.Failure(description: "nobody listens at port \(port)")
        }
        return descriptor
    }
}
