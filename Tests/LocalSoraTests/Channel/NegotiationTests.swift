import LocalSora
import SoraEmulator
import SoraMessages
import SoraPeer
import SoraSDP
import SoraWire
import TestSupport
import Testing

/// Re-offers when members come and go (spec/signaling.md 3.2, 7.2).
@Suite(.serialized, .leavesNoObjects) struct NegotiationTests {
    static func living(_ description: SessionDescription?) -> [String] {
        (description?.media ?? []).filter { !$0.isRejected && $0.kind != .application }
            .compactMap { $0.msids.first?.stream }
    }

    @Test func membersAreReofferedOnJoinAndLeave() throws {
        let harness = try ChannelHarness()
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly))
        #expect(viewer.offeredDescriptions.count == 1)
        let sender = try harness.joined(ChannelHarness.connect(.sendonly))
        #expect(viewer.labels(of: "re-offer") == ["signaling"])
        #expect(Self.living(viewer.offeredDescriptions.last) == [sender.id.rawValue, sender.id.rawValue])
        #expect(sender.offeredDescriptions.count == 1)
        sender.send(["type": "disconnect"], label: "signaling", now: harness.now)
        harness.run(for: .seconds(1))
        #expect(viewer.offeredDescriptions.count == 3)
        #expect(Self.living(viewer.offeredDescriptions.last).isEmpty)
        let bundle = viewer.offeredDescriptions.last?.bundledMids ?? []
        #expect(bundle.count == 1)  // only data is left
        #expect(!viewer.log.contains { if case .message("failure", _, _) = $0 { true } else { false } })
    }

    /// libwebrtc closes the transport when the section that names the bundle is rejected: it becomes inactive instead.
    @Test(arguments: [true, false]) func firstSectionOutlivesItsSender(hasDataChannels: Bool) throws {
        let harness = try ChannelHarness()
        let senders = try (0..<2).map { _ in try harness.joined(ChannelHarness.connect(.sendonly)) }
        let viewer = try harness.joined(
            ChannelHarness.connect(.recvonly) { $0.dataChannelSignaling = hasDataChannels })
        for (index, sender) in senders.enumerated() {
            sender.send(["type": "disconnect"], label: "signaling", now: harness.now)
            harness.run(for: .seconds(1))
            let media = try #require(viewer.offeredDescriptions.last?.media)
            #expect(!media[0].isRejected && media[0].direction == .inactive)
            #expect(media.filter { !$0.isRejected && $0.direction == .sendonly }.count == (1 - index) * 2)
            #expect(harness.channel.hasMember(viewer.id))
        }
        #expect(Set(viewer.offeredDescriptions.compactMap(\.bundledMids.first)).count == 1)
        let next = try harness.joined(ChannelHarness.connect(.sendonly))
        harness.play([MediaSource(next)], for: .seconds(1))
        #expect(viewer.packets(from: next.id, .video).count > 20)
        #expect(viewer.packets(from: next.id, .audio).count > 20)
    }

    @Test func reofferTravelsOnTheWebSocketWithoutDataChannels() throws {
        let harness = try ChannelHarness()
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly) { $0.dataChannelSignaling = false })
        _ = try harness.joined(ChannelHarness.connect(.sendonly))
        #expect(viewer.labels(of: "re-offer") == [nil])
    }

    /// SRV4: changes while one answer is owed merge into one more re-offer.
    @Test func changesWhileAnAnswerIsOwedAreMerged() throws {
        let harness = try ChannelHarness()
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly))
        viewer.answersAutomatically = false
        var stayed: [SimulatedClient] = []
        for number in 0..<12 {
            let client = try harness.joined(ChannelHarness.connect(.sendonly))
            if number % 3 == 0 {
                client.send(["type": "disconnect"], label: "signaling", now: harness.now)
                harness.run(for: .milliseconds(300))
            } else {
                stayed.append(client)
            }
        }
        #expect(viewer.messages("re-offer").count == 1)
        viewer.answersAutomatically = true
        harness.perform { viewer.answerOldest(now: $1) }
        harness.run(for: .seconds(1))
        #expect(viewer.messages("re-offer").count == 2)
        #expect(Set(Self.living(viewer.offeredDescriptions.last)) == Set(stayed.map(\.id.rawValue)))
        let sources = stayed.map { MediaSource($0) }
        harness.play(sources, for: .seconds(1))
        for sender in stayed {
            #expect(StreamCheck(viewer.packets(from: sender.id, .video)).faults.isEmpty)
            #expect(viewer.packets(from: sender.id, .video).count > 20)
        }
    }

    /// Thirty senders that come within one moment cost a member who was there a handful of re-offers, not thirty.
    @Test func manyWhoJoinAtOnceCostFewReoffers() throws {
        let harness = try ChannelHarness()
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly))
        let member = try harness.joined(ChannelHarness.connect(.sendrecv))
        let before = viewer.messages("re-offer").count
        var senders: [SimulatedClient] = []
        for _ in 0..<30 { senders.append(try harness.join(ChannelHarness.connect(.sendonly))) }
        let all = harness.run(for: .seconds(10)) { harness.channel.announcedIDs.count == 32 }
        #expect(all)
        harness.run(for: .seconds(1))
        for client in [viewer, member] {
            #expect(Set(Self.living(client.offeredDescriptions.last)).isSuperset(of: senders.map(\.id.rawValue)))
            #expect(client.messages("re-offer").count - before <= 4, "\(client.messages("re-offer").count)")
        }
        // Nor do the newcomers, who do not receive, get any.
        #expect(senders.allSatisfy { $0.messages("re-offer").isEmpty })
        #expect(viewer.notifications("connection.created").count == 32)
    }

    /// Sections are reused over 200 joins and leaves: their number is that of the most senders at one time.
    @Test func sectionsAreReusedOverManyJoinsAndLeaves() throws {
        let harness = try ChannelHarness()
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly))
        var present: [SimulatedClient] = []
        var order: [MediaKind] = []
        for number in 0..<100 {
            present.append(try harness.join(ChannelHarness.connect(.sendonly) { $0.dataChannelSignaling = false }))
            harness.run(for: .milliseconds(150))
            if present.count > 3 || number % 5 == 4 {
                let leaving = present.remove(at: number % present.count)
                leaving.send(["type": "disconnect"], now: harness.now)
                harness.run(for: .milliseconds(100))
            }
            let kinds = viewer.offeredDescriptions.last?.media.map(\.kind) ?? []
            #expect(kinds.starts(with: order))
            order = kinds
        }
        harness.run(for: .seconds(1))
        let last = try #require(viewer.offeredDescriptions.last)
        #expect(last.media.count <= 1 + 4 * 2)
        #expect(Set(Self.living(last)) == Set(present.map(\.id.rawValue)))
        #expect(viewer.offeredDescriptions.count > 150)
        let mids = viewer.offeredDescriptions.flatMap { $0.media.filter { !$0.isRejected }.compactMap(\.mid) }
        #expect(Set(mids).count > 50)  // a reused section has a new mid
        #expect(!viewer.log.contains { if case .message("failure", _, _) = $0 { true } else { false } })
        let source = MediaSource(present[0])
        harness.play([source], for: .seconds(1))
        #expect(viewer.packets(from: present[0].id, .video).count > 20)
    }

    /// 2.7.4: a client without the sender's codec rejects the section, and hears the sender all the same.
    @Test func sectionWithAnUnknownCodecIsGivenUp() throws {
        let harness = try ChannelHarness()
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly), videoCodecs: ["VP9"])
        let sender = try harness.joined(ChannelHarness.connect(.sendonly))
        let source = MediaSource(sender)
        harness.play([source], for: .seconds(1))
        #expect(viewer.packets(from: sender.id, .video).isEmpty)
        #expect(viewer.packets(from: sender.id, .audio).count > 20)
        _ = try harness.joined(ChannelHarness.connect(.sendonly))
        #expect(harness.channel.hasMember(viewer.id))
    }

    @Test(arguments: ["VP8", "VP9", "AV1", "H264", "H265"]) func codecOfTheOfferIsTheOneAskedFor(codec: String) throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(
            ChannelHarness.connect(.sendonly) {
                var wishes = VideoWishes()
                wishes.codecType = codec
                wishes.bitRate = 1234
                $0.video = .wishes(wishes)
                var audio = AudioWishes()
                audio.bitRate = 64
                var opus = OpusParameters()
                opus.useDTX = true
                opus.stereo = false
                opus.maxPlaybackRate = 16_000
                audio.opusParams = opus
                $0.audio = .wishes(audio)
            }, videoCodecs: ["VP8", "VP9", "AV1", "H264", "H265"])
        let description = try #require(client.offeredDescriptions.first)
        let video = try #require(description.media.first { $0.kind == .video })
        #expect(video.codecs.map(\.name) == [codec, "rtx"])
        #expect(client.offer?.videoCodecType == codec)
        #expect(client.offer?.videoBitRate == 1234)
        #expect(video.bandwidths.contains { $0.type == "AS" && $0.value == 1234 })
        let audio = try #require(description.media.first { $0.kind == .audio })
        #expect(audio.codecs[0].formatParameters["usedtx"] == "1")
        #expect(audio.codecs[0].formatParameters["stereo"] == "0")
        #expect(audio.codecs[0].formatParameters["maxplaybackrate"] == "16000")
        #expect(audio.bandwidths.contains { $0.type == "AS" && $0.value == 64 })
        #expect(client.offer?.mid?.video == video.mid?.rawValue)
        #expect(client.offer?.mid?.audio == audio.mid?.rawValue)
    }

    @Test func brokenAnswerEndsTheConnection() throws {
        for sdp in ["", "nonsense", "v=0\r\n", "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"] {
            let harness = try ChannelHarness()
            let client = try harness.join(ChannelHarness.connect(), prepare: { $0.answersAutomatically = false })
            client.send(["type": "answer", "sdp": .string(sdp)], now: harness.now)
            harness.run(for: .milliseconds(10))
            #expect(client.closeFrames.map(\.code) == [4490])
            #expect(client.closeFrames.map(\.reason) == ["INVALID-ANSWER"])
            harness.run(for: .milliseconds(200))
            #expect(harness.channel.isEmpty)
        }
    }

    /// A connection for which nobody sends still needs a section to connect by (2.7.3).
    @Test func lonelyViewerConnects() throws {
        let harness = try ChannelHarness()
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly) { $0.dataChannelSignaling = false })
        let media = try #require(viewer.offeredDescriptions.first?.media)
        #expect(media.map(\.direction) == [.inactive])
        let sender = try harness.joined(ChannelHarness.connect(.sendonly))
        let source = MediaSource(sender)
        harness.play([source], for: .seconds(1))
        #expect(viewer.packets(from: sender.id, .video).count > 20)
    }
}
