import SoraHTTP
import SoraMessages
import SoraNetwork
import SoraWire

/// Something that session and event webhooks are told (spec/signaling.md 9.4).
struct WebhookNotice: Sendable {
    /// `session.created`, `connection.destroyed`, …
    var type: String
    var channelID: String
    /// All keys but the envelope's.
    var body: JSONObject

    enum Kind: Sendable { case session, event }
    var kind: Kind { type.hasPrefix("session.") ? .session : .event }
}

/// The webhooks of a server. Confined to the front's loop.
///
/// Session and event notices go out in order, one at a time per kind; of more than a thousand that wait
/// the newest are dropped and counted. Permission is asked for all clients side by side.
final class Webhooks {
    struct Locations: Sendable {
        var auth: HTTPLocation?
        var session: HTTPLocation?
        var event: HTTPLocation?
    }

    struct Counts: Sendable, Equatable {
        var successful = 0
        var failed = 0
        var ignored = 0
    }

    private struct Queue {
        var location: HTTPLocation
        var waiting: [(notice: JSONObject, answered: (JSONObject) -> Void)] = []
        var isBusy = false
        var counts = Counts()
    }

    private let locations: Locations
    private let version: String
    private let client: WebhookClient
    private var random = RandomSource.system
    private var queues: [WebhookNotice.Kind: Queue] = [:]
    private(set) var authCounts = Counts()
    private static let limit = 1000

    init(_ locations: Locations, on loop: EventLoop, timeout: Duration, version: String) {
        self.locations = locations
        self.version = version
        client = WebhookClient(on: loop, timeout: timeout)
        if let session = locations.session { queues[.session] = Queue(location: session) }
        if let event = locations.event { queues[.event] = Queue(location: event) }
    }

    var asksForPermission: Bool { locations.auth != nil }
    var sessionCounts: Counts { queues[.session]?.counts ?? Counts() }
    var eventCounts: Counts { queues[.event]?.counts ?? Counts() }

    func stop() {
        queues.removeAll()
        client.stop()
    }

    private func envelope(now: Instant, settings: ChannelSettings) -> JSONObject {
        [
            "timestamp": .string(settings.timestamp(now)), "id": .string(SignalingID.generate(using: &random)),
            "version": .string(version), "label": "LocalSora", "node_name": "local",
        ]
    }

    // MARK: Permission

    /// - Parameter completion: nil if there was no usable answer.
    func askForPermission(
        _ admission: Admission, counts: ChannelCounts, now: Instant, settings: ChannelSettings,
        completion: @escaping (JSONObject?) -> Void
    ) {
        guard let location = locations.auth else { return completion(nil) }
        let request = Self.request(admission, counts: counts, envelope: envelope(now: now, settings: settings))
        client.post(request, to: location, headers: ["sora-connection-id": admission.id.rawValue]) {
            [weak self] result in
            switch result {
            case .success(let answer):
                self?.authCounts.successful += 1
                completion(answer)
            case .failure:
                self?.authCounts.failed += 1
                completion(nil)
            }
        }
    }

    private static func request(_ admission: Admission, counts: ChannelCounts, envelope: JSONObject) -> JSONObject {
        let (connect, grant) = (admission.connect, admission.grant)
        var request = envelope
        request["role"] = grant.role.json
        request["channel_id"] = .string(connect.channelID)
        request["client_id"] = connect.clientID?.json ?? .null
        request["bundle_id"] = connect.bundleID?.json ?? .null
        request["connection_id"] = .string(admission.id.rawValue)
        request["multistream"] = true
        request["simulcast"] = grant.simulcast.json
        request.set("simulcast_rid", connect.simulcastRID)
        request.set("simulcast_request_rid", connect.simulcastRequestRID)
        request["spotlight"] = grant.spotlight.json
        request.set("spotlight_number", connect.spotlightNumber)
        request.set("spotlight_focus_rid", connect.spotlightFocusRID)
        request.set("spotlight_unfocus_rid", connect.spotlightUnfocusRID)
        request["audio"] = grant.audio.json
        request["audio_codec_type"] = grant.audioCodec.json
        request.set("audio_bit_rate", grant.audioBitRate)
        request.set("audio_opus_params", connect.audio?.wishes?.opusParams)
        request["video"] = grant.video.json
        request["video_codec_type"] = grant.videoCodec.json
        request["video_bit_rate"] = grant.videoBitRate.json
        request.set("video_vp9_params", connect.video?.wishes?.vp9Params)
        request.set("video_av1_params", connect.video?.wishes?.av1Params)
        request.set("video_h264_params", connect.video?.wishes?.h264Params)
        request.set("video_h265_params", connect.video?.wishes?.h265Params)
        request["data_channel_signaling"] = grant.dataChannelSignaling.json
        request["ignore_disconnect_websocket"] = grant.ignoreDisconnectWebSocket.json
        request.set("data_channels", connect.dataChannels)
        request.set("forwarding_filters", connect.forwardingFilters)
        request.set("forwarding_filter", connect.forwardingFilter)
        request.set("auth_metadata", connect.metadata)
        request.set("metadata", connect.metadata)
        request["whip"] = false
        request["e2ee"] = false
        request["sora_client"] = SoraClientInformation(connect).json
        counts.add(to: &request)
        return request
    }

    // MARK: Notices

    func wants(_ notice: WebhookNotice) -> Bool { queues[notice.kind] != nil }

    /// - Parameter answered: called with the answer, if there is one.
    func deliver(
        _ notice: WebhookNotice, settings: ChannelSettings, now: Instant, answered: @escaping (JSONObject) -> Void
    ) {
        guard var queue = queues.removeValue(forKey: notice.kind) else { return }
        if queue.waiting.count >= Self.limit {
            queue.counts.ignored += 1
            queues[notice.kind] = queue
            return
        }
        var body = envelope(now: now, settings: settings)
        body["type"] = .string(notice.type)
        body["channel_id"] = .string(notice.channelID)
        body.append(missingFrom: notice.body)
        queue.waiting.append((body, answered))
        queues[notice.kind] = queue
        sendNext(notice.kind)
    }

    private func sendNext(_ key: WebhookNotice.Kind) {
        guard let queue = queues[key], !queue.isBusy, let next = queue.waiting.first else { return }
        queues[key]?.waiting.removeFirst()
        queues[key]?.isBusy = true
        client.post(next.notice, to: queue.location) { [weak self] result in
            guard let self, self.queues[key] != nil else { return }
            self.queues[key]?.isBusy = false
            switch result {
            case .success(let answer):
                self.queues[key]?.counts.successful += 1
                next.answered(answer)
            case .failure: self.queues[key]?.counts.failed += 1
            }
            self.sendNext(key)
        }
    }
}

extension ChannelCounts {
    func add(to object: inout JSONObject) {
        object["channel_connections"] = connections.json
        object["channel_sendrecv_connections"] = sendrecv.json
        object["channel_sendonly_connections"] = sendonly.json
        object["channel_recvonly_connections"] = recvonly.json
    }
}

/// The `sora_client` of webhooks and statistics, told by what the client calls itself.
struct SoraClientInformation: Sendable {
    var type: String
    var raw: String?
    var version: String?
    /// In parentheses behind the version of native libraries.
    var shortCommit: String?
    var environment: String?
    var libwebrtc: String?

    /// Names as the client libraries give them, and what the server's counters call them.
    static let types = [
        ("Sora JavaScript SDK", "sora_js_sdk"), ("Sora Python SDK", "sora_python_sdk"),
        ("Sora C++ SDK", "sora_cpp_sdk"), ("Sora iOS SDK", "sora_ios_sdk"), ("Sora Android SDK", "sora_android_sdk"),
        ("Sora C SDK", "sora_c_sdk"), ("Sora Flutter SDK", "sora_flutter_sdk"), ("Sora Unity SDK", "sora_unity_sdk"),
    ]

    init(_ connect: ConnectMessage) {
        raw = connect.soraClient
        environment = connect.environment
        libwebrtc = connect.libwebrtc
        let known = Self.types.first { connect.soraClient?.hasPrefix($0.0) ?? false }
        type = known?.1 ?? "unknown"
        if let known, let raw {
            let words = raw.dropFirst(known.0.count).split(separator: " ")
            version = words.first.map(String.init)
            if words.count > 1, words[1].first == "(", words[1].last == ")" {
                shortCommit = String(words[1].dropFirst().dropLast())
            }
        }
    }

    var json: JSONValue {
        var object: JSONObject = ["type": .string(type)]
        object.set("raw", raw)
        object.set("version", version)
        object.set("commit_short", shortCommit)
        object.set("environment", environment)
        object.set("libwebrtc", libwebrtc)
        return .object(object)
    }
}
