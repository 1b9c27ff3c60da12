import LocalSora
import SoraEmulator
import SoraMessages
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire
import TestSupport
import Testing

/// Layers: what is asked for, what is there, and unbroken switching (spec/signaling.md 7.4, pitfall RTP10).
@Suite(.serialized, .leavesNoObjects) struct SimulcastTests {
    static func publisher(_ harness: ChannelHarness, layers: [String]? = nil) throws -> (SimulatedClient, MediaSource) {
        let client = try harness.joined(
            ChannelHarness.connect(.sendonly) { $0.simulcast = true }, prepare: { $0.layersToSend = layers })
        return (client, MediaSource(client))
    }

    static func viewer(_ harness: ChannelHarness, _ rid: LayerRID?) throws -> SimulatedClient {
        try harness.joined(
            ChannelHarness.connect(.recvonly) {
                $0.simulcast = true; $0.simulcastRequestRID = rid
            })
    }

    static func request(
        _ rid: String, sender: String? = nil, by client: SimulatedClient, id: Int = 1, _ harness: ChannelHarness
    ) {
        var params: JSONObject = ["rid": .string(rid)]
        if let sender { params["sender_connection_id"] = .string(sender) }
        let request: JSONValue = [
            "jsonrpc": "2.0", "id": .integer(Int64(id)), "method": .string(RPCMethodName.requestSimulcastRID),
            "params": .object(params),
        ]
        harness.perform { client.send(request, label: "rpc", now: $1) }
    }

    @Test func senderIsOfferedLayers() throws {
        let harness = try ChannelHarness()
        let (publisher, _) = try Self.publisher(harness)
        #expect(publisher.offer?.simulcast == true)
        let encodings = try #require(publisher.offer?.encodings)
        #expect(encodings.map(\.rid) == ["r0", "r1", "r2"])
        #expect(encodings.map(\.scaleResolutionDownBy) == [4, 2, 1])
        let total = encodings.compactMap(\.maxBitrate).reduce(0, +)
        #expect(total <= 1_000_000 + 1000, "\(total)")
        let video = try #require(publisher.offeredDescriptions.first?.media.first { $0.kind == .video })
        #expect(video.simulcast?.receive.map { $0.map(\.rid.rawValue) } == [["r0"], ["r1"], ["r2"]])
        #expect(video.rids.count == 3)
        #expect(video.bandwidths.contains { $0.type == "TIAS" && $0.value == 1_000_000 })
    }

    @Test(arguments: [(LayerRID?.none, 0), (.r0, 0), (.r1, 1), (.r2, 2)])
    func viewerGetsTheLayerThatItAsksFor(rid: LayerRID?, layer: Int) throws {
        let harness = try ChannelHarness()
        let (publisher, source) = try Self.publisher(harness)
        let viewer = try Self.viewer(harness, rid)
        harness.play([source], for: .seconds(3))
        let check = StreamCheck(viewer.packets(from: publisher.id, .video))
        #expect(check.faults.isEmpty, "\(check.faults)")
        #expect(check.layers.last == layer)
        #expect(check.frames.filter { $0.layer == layer }.count > 80)
    }

    @Test func noneGetsSoundOnly() throws {
        let harness = try ChannelHarness()
        let (publisher, source) = try Self.publisher(harness)
        let viewer = try Self.viewer(harness, LayerRID.none)
        harness.play([source], for: .seconds(2))
        #expect(viewer.packets(from: publisher.id, .video).isEmpty)
        #expect(viewer.packets(from: publisher.id, .audio).count > 50)
    }

    /// RTP10: all ways between layers, with loss on both links.
    @Test func switchesAreSeamless() throws {
        let harness = try ChannelHarness()
        let (publisher, source) = try Self.publisher(harness)
        let viewer = try Self.viewer(harness, .r0)
        harness.play([source], for: .seconds(1))
        harness.setConditions(of: viewer, down: LinkConditions(delay: .milliseconds(20), loss: 0.02, reordering: 0.02))
        for (index, rid) in ["r2", "r0", "r1", "r2", "r1", "r0", "r2"].enumerated() {
            Self.request(rid, by: viewer, id: index + 1, harness)
            harness.play([source], for: .seconds(2))
        }
        harness.setConditions(of: viewer, down: LinkConditions(delay: .milliseconds(20)))
        harness.play([source], for: .seconds(1))
        let check = StreamCheck(viewer.packets(from: publisher.id, .video))
        #expect(check.faults.isEmpty, "\(check.faults)")
        #expect(check.ssrcs.count == 1)
        #expect(check.longestFreeze < .milliseconds(200), "\(check.longestFreeze)")
        var seen: [Int] = []
        for layer in check.layers where seen.last != layer { seen.append(layer) }
        #expect(seen == [0, 2, 0, 1, 2, 1, 0, 2])
        // Timestamps keep to the wall clock: 90 kHz over the whole time.
        let first = try #require(check.frames.first)
        let last = try #require(check.frames.last)
        let media = Double(last.timestamp.distance(from: first.timestamp)) / 90_000
        let frames = Double(last.number - first.number) / 30
        #expect(abs(media - frames) < 0.1, "\(media) against \(frames)")
    }

    @Test func receiverIsToldOfItsSwitches() throws {
        let harness = try ChannelHarness()
        let (publisher, source) = try Self.publisher(harness)
        let viewer = try Self.viewer(harness, .r0)
        harness.play([source], for: .seconds(1))
        Self.request("r2", by: viewer, harness)
        harness.play([source], for: .seconds(1))
        let result = try #require(viewer.messages("rpc").first?["result"]?.objectValue)
        #expect(result["rid"]?.stringValue == "r2")
        #expect(result["receiver_connection_id"]?.stringValue == viewer.id.rawValue)
        let up = try #require(viewer.notifications("simulcast.switched").first)
        #expect(up["previous_rid"]?.stringValue == "r0")
        #expect(up["current_rid"]?.stringValue == "r2")
        #expect(up["request_rid"]?.stringValue == "r2")
        #expect(up["priority"]?.stringValue == "higher")
        #expect(up["trigger"]?.stringValue == "receiver")
        #expect(up["sender_connection_id"]?.stringValue == publisher.id.rawValue)
        #expect(up["rpc_rids"]?.arrayValue == ["none", "r0", "r1", "r2"])
        Self.request("none", sender: publisher.id.rawValue, by: viewer, id: 2, harness)
        harness.play([source], for: .seconds(1))
        let off = try #require(viewer.notifications("simulcast.switched").last)
        #expect(off["current_rid"]?.stringValue == "none")
        #expect(off["priority"]?.stringValue == "lower")
        let frames = viewer.packets(from: publisher.id, .video).count
        harness.play([source], for: .seconds(1))
        #expect(viewer.packets(from: publisher.id, .video).count == frames)
        Self.request("r1", sender: publisher.id.rawValue, by: viewer, id: 3, harness)
        harness.play([source], for: .seconds(1))
        #expect(StreamCheck(viewer.packets(from: publisher.id, .video)).layers.last == 1)
        #expect(StreamCheck(viewer.packets(from: publisher.id, .video)).faults.isEmpty)
        #expect(publisher.notifications("simulcast.switched").isEmpty)
    }

    /// RTP10: a layer that vanishes is replaced by the next lower one; when it comes back, so does the receiver.
    @Test func vanishedLayerIsReplacedAndComesBack() throws {
        let harness = try ChannelHarness()
        let (publisher, source) = try Self.publisher(harness)
        let viewer = try Self.viewer(harness, .r2)
        harness.play([source], for: .seconds(2))
        source.activeLayers = [0, 1]
        harness.play([source], for: .seconds(3))
        let during = StreamCheck(viewer.packets(from: publisher.id, .video))
        #expect(during.layers.last == 1)
        #expect(during.longestFreeze < .milliseconds(800), "\(during.longestFreeze)")
        source.activeLayers = [0]
        harness.play([source], for: .seconds(2))
        #expect(StreamCheck(viewer.packets(from: publisher.id, .video)).layers.last == 0)
        source.activeLayers = [0, 1, 2]
        harness.play([source], for: .seconds(2))
        let check = StreamCheck(viewer.packets(from: publisher.id, .video))
        #expect(check.layers.last == 2)
        #expect(check.faults.isEmpty, "\(check.faults)")
        let triggers = viewer.notifications("simulcast.switched").compactMap { $0["trigger"]?.stringValue }
        #expect(!triggers.isEmpty && triggers.allSatisfy { $0 == "sender" })
    }

    /// RTP13: a sender that sends but some of the layers.
    @Test(arguments: [["r0"], ["r1"], ["r2"], ["r0", "r1"], ["r1", "r2"], ["r0", "r2"]])
    func senderOfSomeLayersIsSeen(layers: [String]) throws {
        let harness = try ChannelHarness()
        let (publisher, source) = try Self.publisher(harness, layers: layers)
        let low = try Self.viewer(harness, .r0)
        let high = try Self.viewer(harness, .r2)
        harness.play([source], for: .seconds(2))
        for viewer in [low, high] {
            let check = StreamCheck(viewer.packets(from: publisher.id, .video))
            #expect(check.faults.isEmpty, "\(check.faults)")
            #expect(check.frames.count > 40)
        }
        // The source counts the layers that it sends.
        #expect(StreamCheck(low.packets(from: publisher.id, .video)).layers.last == 0)
        #expect(StreamCheck(high.packets(from: publisher.id, .video)).layers.last == layers.count - 1)
    }

    /// SRV2: an estimate below what is sent takes the receiver down a layer; room takes it up again.
    @Test func receiverBandwidthChoosesTheLayer() throws {
        let harness = try ChannelHarness()
        let (publisher, source) = try Self.publisher(harness)
        let viewer = try Self.viewer(harness, .r2)
        let other = try Self.viewer(harness, .r2)
        harness.play([source], for: .seconds(3))
        #expect(StreamCheck(viewer.packets(from: publisher.id, .video)).layers.last == 2)
        harness.perform { viewer.peer.sendBitrateLimit(700_000, now: $1) }
        harness.play([source], for: .seconds(2))
        #expect(StreamCheck(viewer.packets(from: publisher.id, .video)).layers.last == 1)
        #expect(StreamCheck(other.packets(from: publisher.id, .video)).layers.last == 2)
        harness.perform { viewer.peer.sendBitrateLimit(3_000_000, now: $1) }
        harness.play([source], for: .seconds(8))
        let check = StreamCheck(viewer.packets(from: publisher.id, .video))
        #expect(check.layers.last == 2)
        #expect(check.faults.isEmpty, "\(check.faults)")
    }

    /// SRV2: a link that carries less than the layer that flows (transport-wide feedback tells), and everything again. The
    /// queue in it grows until the layer goes down; the picture must not stand still over it. Media are 2 Mbit/s.
    @Test(arguments: [1_600_000, 1_200_000, 800_000]) func narrowLinkLowersTheLayerWithoutAFreeze(rate: Int) throws {
        let harness = try ChannelHarness()
        let (publisher, source) = try Self.publisher(harness)
        source.frameSizes = [600, 1800, 8000]
        let viewer = try Self.viewer(harness, .r2)
        let other = try Self.viewer(harness, .r2)
        harness.play([source], for: .seconds(6))
        func check() -> StreamCheck { StreamCheck(viewer.packets(from: publisher.id, .video)) }
        #expect(check().layers.last == 2)
        harness.setConditions(of: viewer, down: LinkConditions(delay: .milliseconds(20), bitsPerSecond: rate))
        harness.play([source], for: .seconds(4))
        #expect((check().layers.last ?? 2) < 2)
        harness.setConditions(of: viewer, down: LinkConditions(delay: .milliseconds(20)))
        harness.play([source], for: .seconds(20))
        let all = check()
        #expect(all.layers.last == 2)
        #expect(all.faults.isEmpty, "\(all.faults)")
        #expect(all.longestFreeze < .milliseconds(200), "\(all.longestFreeze)")
        #expect(StreamCheck(other.packets(from: publisher.id, .video)).layers.last == 2)
    }

    /// A sender that exceeds its bit rate is told to stay under it (REMB).
    @Test func excessiveSenderIsLimited() throws {
        let harness = try ChannelHarness()
        let publisher = try harness.joined(
            ChannelHarness.connect(.sendonly) { connect in
                var wishes = VideoWishes()
                wishes.codecType = "VP8"
                wishes.bitRate = 300
                connect.video = .wishes(wishes)
            })
        let source = MediaSource(publisher)
        source.frameSizes = [6000, 0, 0]
        harness.play([source], for: .seconds(4))
        #expect(publisher.bitrateLimits.contains { abs($0 - 300_000) < 3000 }, "\(publisher.bitrateLimits)")
        let video = try #require(publisher.offeredDescriptions.first?.media.first { $0.kind == .video })
        #expect(video.bandwidths.contains { $0.type == "AS" && $0.value == 300 })
    }
}
