import SoraMessages
import SoraSCTP
import SoraSDP
import SoraWire

/// Judges each message that one client gets from the server by spec/signaling.md: its form (sections 2 and 3), what
/// carries it (3.1, 4.2), its place in the order of things (1.4, 4.3), and the descriptions in it (2.7).
///
/// Every simulated client has one; a fault fails the test at hand.
struct ServerMessageValidator {
    /// What the client asked for; nil if a test made up its own messages.
    var connect: ConnectMessage?
    /// Whether `switched` cannot be overtaken by what the data channels carry: true in virtual time, not on real
    /// sockets.
    var transportsAreOrdered = true
    private var offer: OfferMessage?
    private var lastDescription: SessionDescription?
    private var isRedirected = false
    private(set) var isSwitched = false
    private var ownCreated = false
    /// Messages judged so far.
    private(set) var count = 0

    init(connect: ConnectMessage? = nil) { self.connect = connect }

    /// - Parameter label: the data channel's; nil for the WebSocket.
    mutating func faults(_ bytes: [UInt8], label: String?) -> [String] {
        count += 1
        let json: JSONValue
        do { json = try JSONValue(parsing: bytes) } catch { return ["no JSON: \(error)"] }
        guard let object = json.objectValue else { return ["no object: \(json.text.prefix(80))"] }
        if label == SystemLabel.rpc { return rpcFaults(json, object) }
        guard let type = object["type"]?.stringValue else { return ["no type: \(json.text.prefix(80))"] }
        var faults = carrierFaults(type, label: label)
        if isRedirected { faults.append("\(type) after redirect") }
        if offer == nil, type != "offer", type != "redirect" { faults.append("\(type) before offer") }
        switch type {
        case "offer": faults += offerFaults(json)
        case "notify": faults += notifyFaults(json, object)
        default:
            guard let shape = ServerMessageShapes.small[type] else {
                faults.append("\(type) is nothing that a server sends")
                return faults
            }
            faults += shape.faults(json, at: type)
        }
        switch type {
        case "redirect": isRedirected = true
        case "re-offer": faults += descriptionFaults(object["sdp"]?.stringValue ?? "")
        case "switched":
            if isSwitched { faults.append("switched twice") }
            isSwitched = true
            if offer?.dataChannelSignaling != true { faults.append("switched without data channel signaling") }
            if offer?.ignoreDisconnectWebSocket != object["ignore_disconnect_websocket"]?.boolValue {
                faults.append("switched does not repeat the offer's ignore_disconnect_websocket")
            }
        default: break
        }
        return faults
    }

    /// How a message stands in its frame (4.2).
    func frameFaults(label: String, payload: [UInt8], isBinary: Bool) -> [String] {
        guard let definition = offer?.dataChannels?.first(where: { $0.label == label }) else {
            return ["the offer has no data channel \(label)"]
        }
        let mustBeBinary = definition.isCompressed || SystemLabel.isApplication(label)
        var faults = isBinary == mustBeBinary ? [] : ["\(label): the frame is \(isBinary ? "binary" : "text")"]
        if definition.isCompressed, (try? Compression.inflate(payload)) == nil {
            faults.append("\(label): no zlib stream")
        }
        if SystemLabel.isApplication(label), !definition.effectiveDirection.receives {
            faults.append("\(label): a message on a channel that only sends")
        }
        return faults
    }

    /// How the server opened a channel (section 6).
    func channelFaults(_ info: DataChannelInfo) -> [String] {
        let label = info.label
        guard let definition = offer?.dataChannels?.first(where: { $0.label == label }) else {
            return ["the offer has no data channel \(label)"]
        }
        var faults: [String] = []
        if info.ordered != definition.ordered ?? true { faults.append("\(label): ordered is \(info.ordered)") }
        if info.protocolName != definition.protocolName ?? "" {
            faults.append("\(label): protocol is \(info.protocolName)")
        }
        let reliability: Reliability =
            if let lifetime = definition.maxPacketLifeTime {
                .maxLifetime(milliseconds: UInt16(clamping: lifetime))
            } else if let retransmits = definition.maxRetransmits {
                .maxRetransmits(UInt16(clamping: retransmits))
            } else {
                .reliable
            }
        if info.reliability != reliability { faults.append("\(label): reliability is \(info.reliability)") }
        return faults
    }

    // MARK: Carriers

    private func carrierFaults(_ type: String, label: String?) -> [String] {
        let expected: String?
        switch type {
        case "redirect", "offer", "ping", "switched": expected = nil
        case "close": expected = SystemLabel.signaling
        case "req-stats": expected = SystemLabel.stats
        case "re-offer": expected = isSwitched ? SystemLabel.signaling : nil
        case "notify", "push": expected = isSwitched ? type : nil
        default: return []
        }
        if !transportsAreOrdered, !isSwitched, ["notify", "push", "re-offer"].contains(type), label != nil {
            return label == (type == "re-offer" ? SystemLabel.signaling : type)
                ? [] : ["\(type) came over \(label ?? "")"]
        }
        return label == expected ? [] : ["\(type) came over \(label ?? "the WebSocket")"]
    }

    // MARK: Messages

    private func rpcFaults(_ json: JSONValue, _ object: JSONObject) -> [String] {
        let id = object["id"] ?? .bool(false)
        var faults: [String] = []
        if !id.isNull, id.stringValue == nil, id.doubleValue == nil { faults.append("rpc: id is \(id.text)") }
        let shape = object["error"] == nil ? ServerMessageShapes.rpcResult : ServerMessageShapes.rpcError
        return faults + shape.faults(json, at: "rpc")
    }

    private mutating func offerFaults(_ json: JSONValue) -> [String] {
        let isIOS = connect?.soraClient?.hasPrefix("Sora iOS SDK") ?? false
        var faults = ServerMessageShapes.offer(omitsConfiguration: isIOS).faults(json, at: "offer")
        if isIOS, json.objectValue?["config"]?.objectValue?["iceTransportPolicy"] == "relay" {
            faults = ServerMessageShapes.offer(omitsConfiguration: false).faults(json, at: "offer")
        }
        if offer != nil { faults.append("a second offer") }
        guard case .offer(let offer)? = try? SignalingMessage(json: json) else { return faults + ["unreadable offer"] }
        self.offer = offer
        let labels = (offer.dataChannels ?? []).map(\.label)
        if (offer.dataChannels != nil) != (offer.dataChannelSignaling == true) {
            faults.append("data_channels and data_channel_signaling contradict each other")
        }
        if offer.dataChannels != nil {
            for label in [SystemLabel.signaling, SystemLabel.notify, SystemLabel.push, SystemLabel.stats]
            where !labels.contains(label) { faults.append("no data channel \(label)") }
        }
        if Set(labels).count != labels.count { faults.append("data channel labels repeat") }
        if labels.contains(SystemLabel.rpc) != (offer.rpcMethods?.isEmpty == false) {
            faults.append("rpc_methods and the label rpc contradict each other")
        }
        if offer.ignoreDisconnectWebSocket == true, offer.dataChannelSignaling != true {
            faults.append("ignore_disconnect_websocket without data channel signaling")
        }
        if (offer.encodings != nil) != (offer.simulcast == true && offer.mid?.video != nil) {
            faults.append("encodings are for simulcast senders")
        }
        let rids = (offer.encodings ?? []).compactMap(\.rid)
        if rids != rids.sorted() || Set(rids).count != rids.count { faults.append("encodings are not in rid order") }
        for server in offer.config?.iceServers ?? [] where server.urls.isEmpty { faults.append("no urls") }
        return faults + descriptionFaults(offer.sdp)
    }

    private mutating func notifyFaults(_ json: JSONValue, _ object: JSONObject) -> [String] {
        let event = object["event_type"]?.stringValue ?? ""
        guard let shape = ServerMessageShapes.notification(event) else { return ["unknown event_type \(event)"] }
        var faults = shape.faults(json, at: event)
        guard event.hasPrefix("connection.") else {
            if !ownCreated { faults.append("\(event) before the own connection.created") }
            return faults
        }
        let counts = ["sendrecv", "sendonly", "recvonly"].map {
            object["channel_\($0)_connections"]?.intValue ?? 0
        }
        let total = object["channel_connections"]?.intValue ?? -1
        if counts.reduce(0, +) != total { faults.append("\(event): \(counts) are not \(total) connections") }
        let isOwn = object["connection_id"]?.stringValue == offer?.connectionID
        if event == NotifyMessage.Event.connectionCreated, isOwn {
            if ownCreated { faults.append("a second own connection.created") }
            ownCreated = true
            guard let data = object["data"]?.arrayValue else { return faults + ["own connection.created without data"] }
            if data.count > total - 1 { faults.append("data names \(data.count) of \(total - 1) others") }
        } else {
            if object["data"] != nil { faults.append("data in the notification of somebody else") }
            if !ownCreated { faults.append("\(event) before the own connection.created") }
            if isOwn, event == NotifyMessage.Event.connectionDestroyed { faults.append("own connection.destroyed") }
        }
        return faults
    }

    // MARK: Descriptions

    private mutating func descriptionFaults(_ sdp: String) -> [String] {
        let description: SessionDescription
        do { description = try SessionDescription(parsing: sdp) } catch { return ["sdp: \(error)"] }
        defer { lastDescription = description }
        var faults: [String] = []
        func expect(_ holds: Bool, _ fault: @autoclosure () -> String) {
            if !holds { faults.append("sdp: " + fault()) }
        }
        let media = description.media
        let live = media.filter { !$0.isRejected }
        expect(!live.isEmpty, "no living section")
        expect(description.bundledMids == live.compactMap(\.mid), "BUNDLE does not list the living sections")
        expect(Set(media.compactMap(\.mid)).count == media.count, "mids are missing or repeat")
        // The first living section carries the transport (2.7.3).
        for (index, section) in live.enumerated() {
            let name = section.mid?.rawValue ?? "?"
            expect(section.setup == .actpass, "\(name): setup")
            expect(section.fingerprints.contains { $0.lowercased().hasPrefix("sha-256 ") }, "\(name): fingerprint")
            expect(section.iceCredentials != nil, "\(name): no ICE credentials")
            expect(section.candidates.isEmpty == (index > 0), "\(name): candidates")
            if index == 0 { expect(section.hasEndOfCandidates, "\(name): no end-of-candidates") }
            if section.carriesRTP { expect(section.rtcpMux, "\(name): no rtcp-mux") }
            faults += sectionFaults(section)
        }
        for section in media where section.isRejected {
            expect(section.direction == .inactive, "\(section.mid?.rawValue ?? "?"): removed, but not inactive")
        }
        // What the client may send on is what `mid` says.
        let own = Set(live.filter { $0.direction == .recvonly }.compactMap { $0.mid?.rawValue })
        let named = Set([offer?.mid?.audio, offer?.mid?.video].compactMap { $0 })
        expect(own == named, "mid names \(named.sorted()), recvonly are \(own.sorted())")
        expect(
            live.contains { $0.kind == .application } == (offer?.dataChannelSignaling == true), "application section")
        if let before = lastDescription {
            expect(media.count >= before.media.count, "sections vanish")
            expect(media.map(\.kind).starts(with: before.media.map(\.kind)), "sections change their kind")
            let credentials = before.media.first { !$0.isRejected }?.iceCredentials
            expect(live.first?.iceCredentials == credentials, "an ICE restart")
        }
        return faults
    }

    /// 2.7.1 and 2.7.2.
    private func sectionFaults(_ section: MediaDescription) -> [String] {
        let name = section.mid?.rawValue ?? "?"
        var faults: [String] = []
        func expect(_ holds: Bool, _ fault: String) { if !holds { faults.append("sdp: \(name): \(fault)") } }
        guard section.carriesRTP else {
            expect(section.sctpPort == 5000 && section.maxMessageSize ?? 0 > 0, "no SCTP parameters")
            return faults
        }
        let ids = section.headerExtensions.map(\.id)
        expect(Set(ids).count == ids.count, "extension ids repeat")
        expect(
            section.headerExtensions.contains { $0.uri == "urn:ietf:params:rtp-hdrext:sdes:mid" }, "no mid extension")
        expect(!section.codecs.isEmpty, "no codec")
        switch section.direction {
        case .recvonly:
            expect(section.msids.isEmpty && section.ssrcs.isEmpty, "msid or ssrc where the server receives")
            let isSimulcast = section.kind == .video && offer?.simulcast == true
            expect((section.simulcast != nil) == isSimulcast, "simulcast")
            expect(section.rids.isEmpty != isSimulcast && section.rids.allSatisfy { $0.direction == .recv }, "rids")
        case .sendonly:
            expect(section.msids.count == 1, "not one msid")
            let stream = section.msids.first?.stream ?? ""
            expect(SignalingID.isValid(stream), "the stream's id \(stream) is no connection id")
            expect(stream != offer?.connectionID, "the client's own stream")
            expect(section.simulcast == nil && section.rids.isEmpty, "simulcast towards a receiver")
        case .inactive: break
        case .sendrecv: expect(false, "sendrecv")
        }
        return faults
    }
}
