import Foundation
import FoundationNetworking
import LocalSora
import Testing

/// Every feature of the server with every kind of member: the Python SDK, the page in Chromium and our SDK.
///
/// What counts is what arrives: pictures carry their sender and a number (see CountedSource, counted_video.mjs and
/// counted_video.py), so a test sees whose picture it is, how large, and that it moves.
@Suite(.serialized, .enabled(if: Interop.isEnabled, Interop.reason))
struct MemberMatrixTests {
    private func withServer(
        _ change: (inout ServerConfiguration) -> Void = { _ in }, _ body: (SoraServer) async throws -> Void
    ) async throws {
        let server = try await Interop.startServer(change)
        do {
            try await body(server)
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    // MARK: Messages

    /// Plain, compressed and with the sender in front, both ways between this kind and each kind.
    @Test(arguments: PeerKind.allCases) func messagesAndHeaders(kind: PeerKind) async throws {
        try await withServer { server in
            let joining = Joining(
                path: .hybrid, hasMedia: false,
                channels: [
                    .init(label: "#plain"), .init(label: "#zipped", isCompressed: true),
                    .init(label: "#header", hasHeader: true),
                ])
            let one = try await kind.join(server, joining)
            for other in PeerKind.allCases {
                let two = try await other.join(server, joining)
                for (sender, receiver) in [(one, two), (two, one)] {
                    for label in ["#plain", "#zipped"] {
                        let text = "\(kind) and \(other) on \(label), " + String(repeating: "again ", count: 200)
                        try await sender.send(label, text)
                        #expect(try await receiver.message(label) == Data(text.utf8))
                    }
                    try await sender.send("#header", "hello")
                    #expect(try await receiver.message("#header") == Data((sender.connectionID + "hello").utf8))
                }
                try await two.leave()
                let gone = try await one.notification("connection.destroyed", about: two.connectionID)
                #expect(gone["channel_connections"] as? Int == 1)
            }
            try await one.leave()
        }
    }

    // MARK: Media

    enum Group: String, CaseIterable, Sendable {
        case python, chromium, swift, mixed
        var kinds: [PeerKind] {
            switch self {
            case .mixed: [.python, .chromium, .swift, .chromium]
            default: Array(repeating: PeerKind(rawValue: rawValue) ?? .swift, count: 4)
            }
        }
    }

    /// Each of four sees and hears the three others, under their connection ids.
    @Test(arguments: Group.allCases) func fourMembersSeeAndHearEachOther(group: Group) async throws {
        try await withServer { server in
            var members: [any ChannelMember] = []
            for (index, kind) in group.kinds.enumerated() {
                members.append(
                    try await kind.join(
                        server,
                        Joining(
                            picture: .init(width: 320, height: 180, fps: 10, sender: UInt32(index) + 1), sound: true,
                            bitRate: 200)))
            }
            for (index, member) in members.enumerated() {
                for (number, sender) in members.enumerated() where number != index {
                    #expect(
                        try await member.sees(sender, picture: UInt32(number) + 1, frames: 5),
                        "\(index) does not see \(number)")
                }
                #expect(try await member.videos(reset: false).count == 3)
                #expect(
                    try await eventually(within: .seconds(20)) { try await member.audibleSenders() == 3 },
                    "\(index) does not hear all")
            }
            // One leaves: its streams go from the others, theirs go on.
            try await members[3].leave()
            for member in members.prefix(3) {
                _ = try await member.notification("connection.destroyed", about: members[3].connectionID)
            }
            #expect(try await members[0].sees(members[1], picture: 2, frames: 5))
            for member in members.prefix(3) { try await member.leave() }
        }
    }

    /// A viewer of each kind gets the layer that it asks for by RPC, at that layer's size, and nothing with `none`.
    @Test(arguments: PeerKind.allCases, ["VP8", "H264"])
    func viewerGetsTheLayerThatItAsksFor(kind: PeerKind, codec: String) async throws {
        // The Python package decodes no H.264 by itself.
        if kind == .python, codec == "H264" { return }
        try await withServer { server in
            let sender = try await PeerKind.swift.join(
                server,
                Joining(
                    role: "sendonly", picture: .init(width: 640, height: 360, sender: 7), codec: codec, bitRate: 1500,
                    simulcast: true))
            let viewer = try await kind.join(
                server, Joining(role: "recvonly", path: .hybrid, codec: codec, simulcast: true, layer: "r0"))
            #expect(try await viewer.sees(sender, picture: 7, width: 160))
            for (layer, width) in [("r2", 640), ("r1", 320), ("r0", 160)] {
                let answer = try await viewer.call("2025.2.0/RequestSimulcastRid", #"{"rid":"\#(layer)"}"#)
                guard case .result(let result) = answer else {
                    Issue.record("\(answer)")
                    return
                }
                #expect(result.contains(#""rid":"\#(layer)""#), "\(result)")
                #expect(try await viewer.sees(sender, picture: 7, width: width), "\(layer)")
                let told = try await viewer.notification("simulcast.switched", about: nil)
                #expect(told["current_rid"] as? String == layer)
            }
            _ = try await viewer.call("2025.2.0/RequestSimulcastRid", #"{"rid":"none"}"#)
            let told = try await viewer.notification("simulcast.switched", about: nil)
            #expect(told["current_rid"] as? String == "none")
            // What was under way may still come; then nothing does.
            #expect(
                try await eventually(within: .seconds(10), every: .milliseconds(500)) {
                    try await viewer.videos(reset: true).allSatisfy { $0.frames == 0 }
                })
            for member in [viewer, sender] { try await member.leave() }
        }
    }

    /// What each kind sends in three layers arrives in three layers.
    @Test(arguments: PeerKind.allCases) func senderSendsThreeLayers(kind: PeerKind) async throws {
        try await withServer { server in
            let sender = try await kind.join(
                server,
                Joining(
                    role: "sendonly", picture: .init(width: 960, height: 540, fps: 20, sender: 9), bitRate: 2000,
                    simulcast: true))
            let viewer = try await PeerKind.swift.join(
                server, Joining(role: "recvonly", path: .hybrid, simulcast: true, layer: "r0"))
            for (layer, part) in [("r0", 4), ("r2", 1), ("r1", 2)] {
                _ = try await viewer.call("2025.2.0/RequestSimulcastRid", #"{"rid":"\#(layer)"}"#)
                // Encoders align sizes: 540 / 4 is no even number.
                let isSeen = try await eventually(within: .seconds(25)) {
                    let video = try await viewer.videos(reset: false).first
                    return abs((video?.width ?? 0) - 960 / part) < 16
                }
                let videos = try await viewer.videos(reset: false)
                #expect(isSeen, "\(layer): \(videos)")
                #expect(try await viewer.sees(sender, picture: 9))
            }
            for member in [sender, viewer] { try await member.leave() }
        }
    }

    /// Who speaks comes in focus, and is seen in the layer for that; the other one in the layer for those out of focus.
    @Test(arguments: PeerKind.allCases) func spotlightFollowsTheVoice(kind: PeerKind) async throws {
        try await withServer { server in
            func speaker(_ number: UInt32) async throws -> SwiftMember {
                try await SwiftMember.join(
                    server,
                    Joining(
                        picture: .init(width: 640, height: 360, sender: number), sound: true, bitRate: 1000,
                        simulcast: true, spotlight: .init(number: 1)))
            }
            let speakers = [try await speaker(1), try await speaker(2)]
            speakers[1].speak(false)
            let viewer = try await kind.join(
                server,
                Joining(
                    role: "recvonly", path: .hybrid, simulcast: true,
                    spotlight: .init(number: 1, focus: "r2", unfocus: "r0")))
            // The first speaker was in focus before the viewer came.
            for loud in [1, 0, 1] {
                speakers[loud].speak(true)
                speakers[1 - loud].speak(false)
                _ = try await viewer.notification("spotlight.focused", about: speakers[loud].connectionID)
                #expect(
                    try await viewer.sees(speakers[loud], picture: UInt32(loud) + 1, width: 640), "\(loud) in focus")
                #expect(
                    try await viewer.sees(speakers[1 - loud], picture: UInt32(2 - loud), width: 160),
                    "\(1 - loud) out of focus")
            }
            for member in [viewer] + speakers as [any ChannelMember] { try await member.leave() }
        }
    }

    /// A filter keeps one client's pictures away and lets its sound and the other's pictures through.
    @Test(arguments: PeerKind.allCases) func filterBlocksWhatItNames(kind: PeerKind) async throws {
        try await withServer { server in
            var senders: [any ChannelMember] = []
            for (index, name) in ["alice", "bob"].enumerated() {
                senders.append(
                    try await PeerKind.swift.join(
                        server,
                        Joining(
                            role: "sendonly", clientID: name, picture: .init(sender: UInt32(index) + 1), sound: true)))
            }
            let viewer = try await kind.join(
                server,
                Joining(role: "recvonly", blocking: .init(clientIDs: ["alice"], kind: "video")))
            #expect(try await viewer.sees(senders[1], picture: 2, frames: 20))
            #expect(try await eventually(within: .seconds(20)) { try await viewer.audibleSenders() == 2 })
            let blocked = try await viewer.videos(reset: false).first { $0.stream == senders[0].connectionID }
            #expect((blocked?.frames ?? 0) == 0)
            for member in senders + [viewer] { try await member.leave() }
        }
    }

    /// A viewer goes on with the others when the sender whose section came first in its offer leaves, and with the
    /// next one when all have left.
    @Test(arguments: PeerKind.allCases, [Joining.Path.webSocket, .hybrid])
    func viewerOutlivesItsSenders(kind: PeerKind, path: Joining.Path) async throws {
        try await withServer { server in
            func sender(_ number: UInt32) async throws -> any ChannelMember {
                try await PeerKind.swift.join(server, Joining(role: "sendonly", picture: .init(sender: number)))
            }
            let first = try await sender(1)
            let second = try await sender(2)
            let viewer = try await kind.join(server, Joining(role: "recvonly", path: path))
            #expect(try await viewer.sees(first, picture: 1))
            #expect(try await viewer.sees(second, picture: 2))
            try await first.leave()
            _ = try await viewer.notification("connection.destroyed", about: first.connectionID)
            #expect(try await viewer.sees(second, picture: 2))
            try await second.leave()
            let third = try await sender(3)
            #expect(try await viewer.sees(third, picture: 3))
            try await third.leave()
            try await viewer.leave()
        }
    }

    // MARK: Bandwidth

    /// A viewer whose link is too narrow for the largest layer falls to a lower one, and comes back.
    @Test(arguments: PeerKind.allCases) func viewerFollowsItsDownlink(kind: PeerKind) async throws {
        try await withServer { server in
            let sender = try await PeerKind.swift.join(
                server,
                Joining(
                    role: "sendonly", picture: .init(width: 640, height: 360, sender: 4, isRough: true), bitRate: 1500,
                    simulcast: true))
            let viewer = try await kind.join(
                server, Joining(role: "recvonly", path: .hybrid, simulcast: true, layer: "r2"))
            #expect(try await viewer.sees(sender, picture: 4, width: 640))
            #expect(
                try await eventually(within: .seconds(30), every: .milliseconds(500)) {
                    try await bitrate(server, of: sender) > 500_000
                })
            let rate = try await bitrate(server, of: sender)
            print("\(kind): \(rate / 1000) kbit/s in all layers, the link gets half of that")
            try await narrow(server, viewer, download: rate / 2)
            #expect(
                try await eventually(within: .seconds(30)) {
                    try await viewer.videos(reset: false).contains { $0.width > 0 && $0.width < 640 }
                })
            #expect(server.recordedEvents.contains { $0.kind == .bandwidthReduced })
            #expect(try await viewer.sees(sender, picture: 4))
            await server.removeFaults()
            #expect(try await viewer.sees(sender, picture: 4, width: 640, within: .seconds(60)))
            await server.disconnect(channelID: "c", connectionID: viewer.connectionID)
            #expect(try await viewer.ended() == MemberEnding(code: 1000, reason: "DISCONNECTED-API"))
            try await sender.leave()
        }
    }

    /// A publisher's encoder follows what its link carries, down and up, and its picture goes on.
    @Test(arguments: PeerKind.allCases) func publisherFollowsItsUplink(kind: PeerKind) async throws {
        try await withServer { server in
            let sender = try await kind.join(
                server,
                Joining(
                    role: "sendonly", picture: .init(width: 640, height: 360, sender: 5, isRough: true), bitRate: 1500))
            let viewer = try await PeerKind.swift.join(server, Joining(role: "recvonly"))
            #expect(try await viewer.sees(sender, picture: 5))
            #expect(
                try await eventually(within: .seconds(40), every: .milliseconds(500)) {
                    try await bitrate(server, of: sender) > 600_000
                })
            try await narrow(server, sender, upload: 300_000)
            #expect(
                try await eventually(within: .seconds(30), every: .milliseconds(500)) {
                    try await bitrate(server, of: sender) < 330_000
                })
            #expect(try await viewer.sees(sender, picture: 5))
            await server.removeFaults()
            #expect(
                try await eventually(within: .seconds(60), every: .milliseconds(500)) {
                    try await bitrate(server, of: sender) > 600_000
                })
            for member in [sender, viewer] { try await member.leave() }
        }
    }

    private func narrow(
        _ server: SoraServer, _ member: any ChannelMember, upload: Int? = nil, download: Int? = nil
    ) async throws {
        func link(_ bitsPerSecond: Int?) -> Fault.NetworkConditions {
            var conditions = Fault.NetworkConditions()
            conditions.kilobitsPerSecond = bitsPerSecond.map { $0 / 1000 }
            return conditions
        }
        let fault = Fault(.network(upload: link(upload), download: link(download)), connectionID: member.connectionID)
        #expect(await server.inject(fault) == 1)
    }

    /// What arrives of a sender's video, in bits per second, over the last seconds.
    private func bitrate(_ server: SoraServer, of sender: any ChannelMember) async throws -> Int {
        let text = try await api(
            server, "Sora_20170529.GetStatsConnection", ["channel_id": "c", "connection_id": sender.connectionID])
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        let tracks = object?["sent_tracks"] as? [[String: Any]] ?? []
        return tracks.filter { $0["kind"] as? String == "video" }
            .flatMap { $0["layers"] as? [[String: Any]] ?? [] }
            .compactMap { ($0["bit_rate"] as? NSNumber)?.intValue }.reduce(0, +)
    }

    // MARK: Signaling

    /// Whichever way signaling takes: members that come later are offered, seen, and gone when they leave; the server
    /// can push; the end is in order.
    @Test(arguments: PeerKind.allCases, Joining.Path.allCases)
    func signalingTakesThePath(kind: PeerKind, path: Joining.Path) async throws {
        try await withServer { server in
            let member = try await kind.join(server, Joining(path: path, picture: .init(sender: 1), bitRate: 300))
            let later = try await PeerKind.swift.join(server, Joining(picture: .init(sender: 2), bitRate: 300))
            #expect(try await member.sees(later, picture: 2))
            #expect(try await later.sees(member, picture: 1))
            try await server.push(channelID: "c", json: #"{"text":"hello"}"#)
            let push = try await member.push()
            #expect((push["data"] as? [String: Any])?["text"] as? String == "hello")
            try await later.leave()
            _ = try await member.notification("connection.destroyed", about: later.connectionID)
            let isWebSocketGone = server.recordedEvents.contains {
                $0.kind == .webSocketClosed && $0.connectionID == member.connectionID
            }
            // Our SDK, like the iOS SDK, lets the server decide when the WebSocket goes.
            #expect(isWebSocketGone == (path == .dataChannels && kind != .swift))
            try await member.leave()
            #expect(await server.connectionIDs(channelID: "c").isEmpty)
        }
    }

    @Test(arguments: PeerKind.allCases) func redirectIsFollowed(kind: PeerKind) async throws {
        try await withServer { target in
            try await withServer({ $0.redirectLocation = target.signalingURL }) { first in
                let member = try await kind.join(target, Joining(path: .hybrid, url: first.signalingURL))
                #expect(first.recordedEvents.contains { $0.kind == .redirected })
                #expect(await target.connectionIDs(channelID: "c") == [member.connectionID])
                try await member.leave()
            }
        }
    }

    /// The HTTP API ends a connection: the SDK is told why, and the others that it is gone.
    @Test(arguments: PeerKind.allCases, Joining.Path.allCases)
    func httpAPIEndsAConnection(kind: PeerKind, path: Joining.Path) async throws {
        try await withServer { server in
            let witness = try await PeerKind.swift.join(server, Joining(path: .hybrid, hasMedia: false))
            let member = try await kind.join(server, Joining(path: path, hasMedia: path != .webSocket ? false : true))
            try await api(
                server, "Sora_20151104.DisconnectConnection",
                ["channel_id": "c", "connection_id": member.connectionID, "reason": "enough"])
            let ending = try await member.ended()
            // The Python SDK tells the reason in words of its own where it came over a data channel (spec appendix A).
            if kind == .python, path == .dataChannels {
                #expect(ending.code == 1000)
                #expect(ending.reason.contains("reason=DISCONNECTED-API"), "\(ending.reason)")
            } else {
                #expect(ending == MemberEnding(code: 1000, reason: "DISCONNECTED-API"))
            }
            _ = try await witness.notification("connection.destroyed", about: member.connectionID)
            #expect(await server.connectionIDs(channelID: "c") == [witness.connectionID])
            try await witness.leave()
        }
    }

    /// Metadata put by RPC is what the next member is told; an unknown method is an error by its code.
    @Test(arguments: PeerKind.allCases) func rpcHasItsEffect(kind: PeerKind) async throws {
        try await withServer { server in
            let member = try await kind.join(server, Joining(path: .hybrid, hasMedia: false))
            let answer = try await member.call(
                "2025.2.0/PutSignalingNotifyMetadata", #"{"metadata":{"name":"\#(kind)"}}"#)
            #expect(answer == .result(#"{"name":"\#(kind)"}"#))
            #expect(try await member.call("2025.2.0/Unknown", "{}") == .error(-32601))
            let next = try await PeerKind.swift.join(server, Joining(path: .hybrid, hasMedia: false))
            #expect(next.greeting.contains(#""name":"\#(kind)""#), "\(next.greeting)")
            for member in [member, next] { try await member.leave() }
        }
    }

    // MARK: Statistics

    /// The member's own statistics count what it decodes, the server's what it was sent, and the server gets the
    /// member's statistics.
    @Test(arguments: PeerKind.allCases) func statisticsCountWhatArrives(kind: PeerKind) async throws {
        try await withServer({ $0.statsInterval = .seconds(2) }) { server in
            let sender = try await PeerKind.swift.join(
                server, Joining(role: "sendonly", picture: .init(sender: 3)))
            let viewer = try await kind.join(server, Joining(role: "recvonly", path: .hybrid))
            #expect(try await viewer.sees(sender, picture: 3))
            let before = try await viewer.decodedFrames()
            #expect(before >= 10)
            #expect(try await eventually(within: .seconds(10)) { try await viewer.decodedFrames() > before + 10 })
            let reported = try await eventually(within: .seconds(15), every: .milliseconds(300)) {
                let text = try await api(server, "Sora_20211215.ListRtcStats", [:])
                return text.contains(viewer.connectionID) && text.contains("framesDecoded")
            }
            #expect(reported, "the member's statistics did not reach the server")
            let statistics = try JSONSerialization.jsonObject(with: Data(await server.statistics().utf8))
            #expect("\(statistics)".contains(viewer.connectionID))
            for member in [viewer, sender] { try await member.leave() }
        }
    }

    // MARK: HTTP

    /// Calls the HTTP API as `curl` would.
    @discardableResult
    private func api(_ server: SoraServer, _ target: String, _ parameters: [String: Any]) async throws -> String {
        var request = URLRequest(url: try #require(URL(string: server.pageURL)))
        request.httpMethod = "POST"
        request.setValue(target, forHTTPHeaderField: "x-sora-target")
        request.httpBody = try JSONSerialization.data(withJSONObject: parameters)
        let (data, response) = try await URLSession.shared.data(for: request)
        let text = String(decoding: data, as: UTF8.self)
        #expect((response as? HTTPURLResponse)?.statusCode == 200, "\(target): \(text)")
        return text
    }
}
