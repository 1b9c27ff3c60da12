import LocalSora
import SoraEmulator
import SoraMessages
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire
import TestSupport
import Testing

/// Sound and picture from one member to the others (spec/signaling.md 7).
@Suite(.serialized, .leavesNoObjects) struct ForwardingTests {
    @Test func viewerSeesAndHearsAPublisher() throws {
        let harness = try ChannelHarness()
        let publisher = try harness.joined(ChannelHarness.connect(.sendonly))
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly))
        let source = MediaSource(publisher)
        harness.play([source], for: .seconds(3))
        let check = StreamCheck(viewer.packets(from: publisher.id, .video))
        #expect(check.faults.isEmpty, "\(check.faults)")
        #expect(check.frames.count >= source.frame - 2)
        #expect(check.ssrcs.count == 1)
        #expect(viewer.packets(from: publisher.id, .audio).count >= source.frame - 2)
        #expect(publisher.received.isEmpty)
        // 2.7.2: own sections are recvonly and say nothing of streams; others' are sendonly with the sender's id.
        let own = try #require(publisher.offeredDescriptions.first)
        #expect(
            own.media.filter { $0.kind != .application }.allSatisfy {
                $0.direction == .recvonly && $0.msids.isEmpty && $0.ssrcs.isEmpty
            })
        let others = try #require(viewer.offeredDescriptions.last)
        let sections = others.media.filter { $0.kind != .application }
        #expect(sections.allSatisfy { $0.direction == .sendonly && $0.msids.first?.stream == publisher.id.rawValue })
        #expect(sections.first { $0.kind == .video }?.codecs.first?.name == "VP8")
    }

    @Test func everyoneSeesEveryoneElse() throws {
        let harness = try ChannelHarness()
        let clients = try (0..<4).map { _ in try harness.joined(ChannelHarness.connect(.sendrecv)) }
        harness.run(for: .seconds(1))
        let sources = clients.map { MediaSource($0) }
        harness.play(sources, for: .seconds(2))
        for receiver in clients {
            for sender in clients where sender !== receiver {
                let check = StreamCheck(receiver.packets(from: sender.id, .video))
                #expect(check.faults.isEmpty, "\(check.faults)")
                #expect(check.frames.count > 55)
            }
            #expect(receiver.packets(from: receiver.id, .video).isEmpty)
        }
    }

    /// A viewer that joins late begins with a key frame, asked for when it can take it.
    @Test func lateViewerBeginsWithAKeyFrameAtOnce() throws {
        let harness = try ChannelHarness()
        let publisher = try harness.joined(ChannelHarness.connect(.sendonly))
        let source = MediaSource(publisher)
        harness.play([source], for: .seconds(1))
        publisher.clearKeyFrameRequests()
        let viewer = try harness.join(ChannelHarness.connect(.recvonly))
        var connectedAt: Instant?
        harness.play([source], for: .seconds(2)) {
            if connectedAt == nil, viewer.peer.state == .connected { connectedAt = harness.now }
        }
        let check = StreamCheck(viewer.packets(from: publisher.id, .video))
        #expect(check.faults.isEmpty, "\(check.faults)")
        let first = try #require(check.frames.first)
        let connected = try #require(connectedAt)
        #expect(first.isKeyFrame)
        #expect(first.arrival - connected < .milliseconds(300))
        #expect(publisher.keyFrameRequests[0] == 1)
    }

    /// RTP9: many viewers at once cost few requests.
    @Test func keyFrameRequestsOfManyViewersMerge() throws {
        let harness = try ChannelHarness()
        let publisher = try harness.joined(ChannelHarness.connect(.sendonly) { $0.simulcast = true })
        let source = MediaSource(publisher)
        harness.play([source], for: .seconds(1))
        publisher.clearKeyFrameRequests()
        let viewers = try (0..<30).map { _ in
            try harness.join(
                ChannelHarness.connect(.recvonly, audio: false) {
                    $0.dataChannelSignaling = false; $0.simulcastRequestRID = .r1
                })
        }
        harness.play([source], for: .seconds(2))
        for viewer in viewers {
            let check = StreamCheck(viewer.packets(from: publisher.id, .video))
            #expect(check.faults.isEmpty)
            #expect(check.frames.count > 50)
            #expect(check.layers.last == 1)
        }
        #expect(publisher.keyFrameRequests[1] ?? 0 <= 2)
        // RTP9: none for layers that nobody wants.
        #expect(publisher.keyFrameRequests[2] == nil)
    }

    /// RTP9: lost requests are repeated until a key frame comes.
    @Test func keyFrameRequestsAreRepeatedUntilAnswered() throws {
        let harness = try ChannelHarness()
        let publisher = try harness.joined(ChannelHarness.connect(.sendonly))
        let source = MediaSource(publisher)
        harness.play([source], for: .seconds(1))
        publisher.clearKeyFrameRequests()
        source.answersKeyFrameRequests = false
        let viewer = try harness.join(ChannelHarness.connect(.recvonly))
        harness.play([source], for: .seconds(3))
        #expect(StreamCheck(viewer.packets(from: publisher.id, .video)).frames.isEmpty)
        #expect(publisher.keyFrameRequests[0] ?? 0 >= 4)
        source.answersKeyFrameRequests = true
        harness.play([source], for: .seconds(4))
        #expect(StreamCheck(viewer.packets(from: publisher.id, .video)).frames.count > 20)
        let asked = publisher.keyFrameRequests[0]
        harness.play([source], for: .seconds(2))
        #expect(publisher.keyFrameRequests[0] == asked)
    }

    @Test func receiversPictureLossReachesTheSender() throws {
        let harness = try ChannelHarness()
        let publisher = try harness.joined(ChannelHarness.connect(.sendonly))
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly))
        let source = MediaSource(publisher)
        harness.play([source], for: .seconds(1))
        publisher.clearKeyFrameRequests()
        let ssrc = try #require(viewer.packets(from: publisher.id, .video).first?.ssrc)
        harness.perform { viewer.peer.sendKeyFrameRequest(for: ssrc, now: $1) }
        harness.play([source], for: .seconds(1))
        #expect(publisher.keyFrameRequests[0] == 1)
    }

    /// Loss on the way to the receiver is repaired from our send history; the sender is not bothered.
    @Test func lossTowardsTheViewerIsRepaired() throws {
        let harness = try ChannelHarness()
        let publisher = try harness.joined(ChannelHarness.connect(.sendonly))
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly))
        let source = MediaSource(publisher)
        harness.play([source], for: .seconds(1))
        harness.setConditions(of: viewer, down: LinkConditions(delay: .milliseconds(20), loss: 0.05))
        harness.play([source], for: .seconds(5))
        harness.setConditions(of: viewer, down: LinkConditions(delay: .milliseconds(20)))
        harness.play([source], for: .seconds(1))
        let check = StreamCheck(viewer.packets(from: publisher.id, .video))
        #expect(check.faults.isEmpty, "\(check.faults)")
        #expect(check.frames.count >= source.frame - 3)
    }

    /// RTP10: padding that the sender adds is not passed on and leaves no gap.
    @Test func paddingIsDroppedWithoutGaps() throws {
        let harness = try ChannelHarness()
        let publisher = try harness.joined(ChannelHarness.connect(.sendonly))
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly))
        let source = MediaSource(publisher)
        source.sendsPadding = true
        harness.play([source], for: .seconds(3))
        let check = StreamCheck(viewer.packets(from: publisher.id, .video))
        #expect(check.faults.isEmpty, "\(check.faults)")
        #expect(check.frames.count > 80)
    }

    /// The sender's report reaches the receiver with the receiver's own timestamps, on one clock for both tracks.
    @Test func senderReportsAreTranslated() throws {
        let harness = try ChannelHarness()
        let publisher = try harness.joined(ChannelHarness.connect(.sendonly))
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly))
        let source = MediaSource(publisher)
        harness.play([source], for: .seconds(6))
        let reports = viewer.senderReports
        let video = try #require(viewer.packets(from: publisher.id, .video).last)
        let audio = try #require(viewer.packets(from: publisher.id, .audio).last)
        let videoReport = try #require(reports[video.ssrc])
        let audioReport = try #require(reports[audio.ssrc])
        // Where the capture time of the last packets lies on the reports' common wall clock.
        let videoTime = RTPClockMapping(
            ntpTime: videoReport.ntp, rtpTimestamp: videoReport.timestamp, clockRate: 90_000
        )
        .ntpTime(of: video.header.timestamp)
        let audioTime = RTPClockMapping(
            ntpTime: audioReport.ntp, rtpTimestamp: audioReport.timestamp, clockRate: 48_000
        )
        .ntpTime(of: audio.header.timestamp)
        let skew = videoTime.duration(since: audioTime)
        #expect(abs(skew.inMilliseconds) < 5, "\(skew)")
    }

    /// SRV2: a member on a thin link gets less; the others notice nothing.
    @Test func thinLinkConcernsNobodyElse() throws {
        let harness = try ChannelHarness()
        let publisher = try harness.joined(ChannelHarness.connect(.sendonly) { $0.simulcast = true })
        let source = MediaSource(publisher)
        source.frameSizes = [500, 1500, 4500]
        let wish: (inout ConnectMessage) -> Void = { $0.simulcastRequestRID = .r2 }
        let thin = try harness.joined(
            ChannelHarness.connect(.recvonly, audio: false, wish))
        let good = try harness.joined(ChannelHarness.connect(.recvonly, audio: false, wish))
        harness.play([source], for: .seconds(2))
        harness.setConditions(
            of: thin, down: LinkConditions(delay: .milliseconds(20), bitsPerSecond: 300_000, queueBytes: 30_000))
        harness.play([source], for: .seconds(15))
        let layers = StreamCheck(thin.packets(from: publisher.id, .video)).layers.suffix(30)
        #expect(!layers.isEmpty && layers.allSatisfy { $0 < 2 }, "\(layers)")
        let check = StreamCheck(good.packets(from: publisher.id, .video))
        #expect(check.faults.isEmpty, "\(check.faults)")
        #expect(check.layers.suffix(300).allSatisfy { $0 == 2 })
        #expect(check.longestFreeze < .milliseconds(100))
    }

    /// SAF2, SAF3: strangers and forgers get no answer and change nothing.
    @Test func strangersGetNoAnswer() throws {
        let harness = try ChannelHarness()
        let publisher = try harness.joined(ChannelHarness.connect(.sendonly))
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly))
        let source = MediaSource(publisher)
        harness.play([source], for: .milliseconds(500))
        var random = RandomSource(seed: 8)
        let stranger = SocketAddress(.v4(0x0B00_0001), port: 77)
        for first in [0, 1, 20, 22, 23, 64, 128, 129, 200] {
            for length in [1, 8, 20, 100, 1200] {
                for remote in [stranger, publisher.address] {
                    var payload = random.bytes(length)
                    payload[0] = UInt8(first)
                    let before = harness.transmitted
                    harness.perform {
                        $0.handle(
                            Datagram(socket: SocketID(0), remote: remote, payload: payload), for: publisher.id, now: $1)
                    }
                    #expect(harness.transmitted == before, "\(first) \(length)")
                }
            }
        }
        harness.play([source], for: .seconds(1))
        let check = StreamCheck(viewer.packets(from: publisher.id, .video))
        #expect(check.faults.isEmpty)
        #expect(check.frames.count > 40)
    }

    @Test func receiverIsToldOfItsNetwork() throws {
        let harness = try ChannelHarness()
        let publisher = try harness.joined(ChannelHarness.connect(.sendonly))
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly))
        let source = MediaSource(publisher)
        harness.play([source], for: .seconds(5))
        #expect(viewer.notifications("network.status").isEmpty)
        harness.setConditions(of: viewer, down: LinkConditions(delay: .milliseconds(20), loss: 0.2))
        harness.play([source], for: .seconds(8))
        #expect(viewer.notifications("network.status").contains { ($0["unstable_level"]?.intValue ?? 0) >= 2 })
        harness.setConditions(of: viewer, down: LinkConditions(delay: .milliseconds(20)))
        harness.play([source], for: .seconds(8))
        #expect(viewer.notifications("network.status").last?["unstable_level"]?.intValue == 0)
        #expect(publisher.notifications("network.status").isEmpty)
    }
}
