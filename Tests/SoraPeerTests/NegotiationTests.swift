import Foundation
import SoraICE
import SoraPeer
import SoraSDP
import SoraWire
import TestSupport
import Testing

@Suite(.serialized, .leavesNoObjects) struct NegotiationTests {
    static let fixtures = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fixtures/signaling")

    static func fixture(_ name: String) throws -> SessionDescription {
        try SessionDescription(parsing: String(contentsOf: fixtures.appending(path: name), encoding: .utf8))
    }

    /// SDP12: the recorded sequence of offers, in order, with a slot that is freed and used again.
    @Test func recordedOffersAreAnsweredInOrder() throws {
        let pair = PeerPair()
        let client = pair.answerer
        var counts: [Int] = []
        for (index, name) in [
            "template-1-initial", "template-2-sender-joined", "template-3-sender-left", "template-4-mline-recycled",
        ].enumerated() {
            let offer = try Self.fixture("\(name)-offer.sdp")
            try client.acceptOffer(offer, now: pair.now)
            if index == 0 {
                for (kind, transceiver) in zip(["audio", "video"], client.transceivers) {
                    transceiver.direction = .sendonly
                    transceiver.streamIdentifier = MediaStreamIdentifier(stream: "s", track: kind)
                    transceiver.encodings =
                        kind == "audio"
                        ? [client.makeEncoding()]
                        : ["r0", "r1", "r2"].map { client.makeEncoding(rid: RestrictionID($0)) }
                }
            }
            let answer = try client.makeAnswer(now: pair.now)
            #expect(answer.media.count == offer.media.count)
            for (offered, answered) in zip(offer.media, answer.media) {
                #expect(offered.mid == answered.mid)
                #expect(offered.kind == answered.kind)
                #expect(offered.isRejected == answered.isRejected, "\(name) \(offered.mid?.rawValue ?? "")")
                if !answered.isRejected {
                    #expect(answered.setup == .active)
                    #expect(answered.direction.reversed == offered.direction || answered.kind == .application)
                }
            }
            let live = answer.media.filter { !$0.isRejected }.compactMap(\.mid)
            #expect(answer.bundledMids == live)
            // What we write, we can read.
            #expect(try SessionDescription(parsing: answer.serialized()).media.count == answer.media.count)
            counts.append(client.transceivers.count)
        }
        #expect(counts[1] > counts[0])
        #expect(counts[2] < counts[1])
        #expect(counts[3] > counts[2])
    }

    /// Codecs that we lack: the section comes back with port 0 and its mid (sig 2.7.4).
    @Test func unsupportedCodecIsRejectedInPlace() throws {
        let pair = PeerPair()
        let offer = try Self.fixture("template-5-unsupported-codec-offer.sdp")
        try pair.answerer.acceptOffer(offer, now: pair.now)
        let answer = try pair.answerer.makeAnswer(now: pair.now)
        let rejected = zip(offer.media, answer.media).filter { !$0.isRejected && $1.isRejected }
        #expect(!rejected.isEmpty)
        for (offered, answered) in rejected {
            #expect(answered.mid == offered.mid)
            #expect(!answer.bundledMids.contains { $0 == answered.mid })
        }
    }

    /// LIF7: offers that cannot be used fail at once, with the reason, and change nothing.
    @Test(arguments: ["fingerprint", "ice-ufrag", "RTP/AVP", "BUNDLE"])
    func unusableOffersAreRefused(word: String) throws {
        let pair = PeerPair()
        var offer = try Self.fixture("template-1-initial-offer.sdp")
        switch word {
        case "fingerprint": for index in offer.media.indices { offer.media[index].fingerprints = [] }
        case "ice-ufrag": for index in offer.media.indices { offer.media[index].iceCredentials = nil }
        case "RTP/AVP": offer.media[0].transportProtocol = "RTP/AVP"
        default: offer.groups[0].mids.append(Mid("nobody"))
        }
        do {
            try pair.answerer.acceptOffer(offer, now: pair.now)
            Issue.record("accepted without \(word)")
        } catch {
            #expect("\(error)".contains(word), "\(error)")
        }
        #expect(pair.answerer.signalingState == .stable)
        #expect(pair.answerer.transceivers.isEmpty)
        try pair.answerer.acceptOffer(try Self.fixture("template-1-initial-offer.sdp"), now: pair.now)
    }

    /// SDP7: each call in the wrong state gives an error that names both, and changes nothing.
    @Test func callsInTheWrongStateAreRefused() throws {
        let pair = PeerPair()
        pair.offerer.enableDataChannels()
        #expect(throws: PeerError.invalidState(operation: "making an answer", state: .stable)) {
            try pair.offerer.makeAnswer(now: pair.now)
        }
        #expect(throws: PeerError.invalidState(operation: "rolling back", state: .stable)) {
            try pair.offerer.rollback()
        }
        let offer = try pair.offerer.makeOffer(now: pair.now)
        #expect(throws: PeerError.invalidState(operation: "making an offer", state: .haveLocalOffer)) {
            try pair.offerer.makeOffer(now: pair.now)
        }
        try pair.answerer.acceptOffer(offer, now: pair.now)
        #expect(throws: PeerError.invalidState(operation: "taking an offer", state: .haveRemoteOffer)) {
            try pair.answerer.acceptOffer(offer, now: pair.now)
        }
        let answer = try pair.answerer.makeAnswer(now: pair.now)
        #expect(throws: PeerError.invalidState(operation: "taking an answer", state: .stable)) {
            try pair.answerer.acceptAnswer(answer, now: pair.now)
        }
        try pair.offerer.acceptAnswer(answer, now: pair.now)
        #expect(pair.offerer.signalingState == .stable)
    }

    /// SDP13: rolling back leaves no trace; a remote offer undoes ours.
    @Test func rollbackFreesWhatTheOfferCreated() throws {
        let pair = PeerPair()
        pair.offerer.enableDataChannels()
        try pair.negotiate()
        _ = pair.offerer.addTransceiver(kind: .video, direction: .recvonly)
        let undone = try pair.offerer.makeOffer(now: pair.now)
        #expect(undone.media.count == 2)
        try pair.offerer.rollback()
        let again = try pair.offerer.makeOffer(now: pair.now)
        #expect(again.media.count == 2)
        try pair.answerer.acceptOffer(again, now: pair.now)
        try pair.answerer.rollback()
        #expect(pair.answerer.transceivers.isEmpty)
        try pair.answerer.acceptOffer(again, now: pair.now)
        try pair.offerer.acceptAnswer(pair.answerer.makeAnswer(now: pair.now), now: pair.now)
    }

    /// SDP12: long random sequences of adding, stopping and negotiating: sections never move or vanish,
    /// mids are unique, BUNDLE lists the living.
    @Test(arguments: 0..<20)
    func sectionsKeepTheirPlaces(seed: Int) throws {
        let pair = PeerPair(seed: UInt64(seed))
        var random = RandomSource(seed: UInt64(seed))
        pair.offerer.enableDataChannels()
        var previous: [Mid?] = []
        var peak = 0
        for _ in 0..<40 {
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let transceiver = pair.offerer.addTransceiver(
                    kind: Bool.random(using: &random) ? .audio : .video, direction: .sendonly)
                transceiver.streamIdentifier = MediaStreamIdentifier(stream: "s", track: "t")
                transceiver.encodings = [pair.offerer.makeEncoding()]
            }
            for transceiver in pair.offerer.transceivers where Int.random(in: 0..<3, using: &random) == 0 {
                pair.offerer.stop(transceiver.id)
            }
            let offer = try pair.offerer.makeOffer(now: pair.now)
            try pair.answerer.acceptOffer(SessionDescription(parsing: offer.serialized()), now: pair.now)
            let answer = try pair.answerer.makeAnswer(now: pair.now)
            try pair.offerer.acceptAnswer(SessionDescription(parsing: answer.serialized()), now: pair.now)

            #expect(offer.media.count >= previous.count)
            #expect(answer.media.count == offer.media.count)
            let mids = offer.media.compactMap(\.mid)
            #expect(Set(mids).count == mids.count)
            #expect(offer.bundledMids == offer.media.filter { !$0.isRejected }.compactMap(\.mid))
            #expect(answer.bundledMids == offer.bundledMids)
            previous = offer.media.map(\.mid)
            let living = offer.media.filter { !$0.isRejected && $0.kind != .application }.count
            peak = max(peak, living)
            #expect(pair.answerer.transceivers.count == living)
        }
        #expect(pair.run(for: .seconds(5)) { pair.isConnected })
    }

    /// DTL8: the answer is the opposite of the offer, and roles stay through renegotiation.
    @Test func dtlsRolesStay() throws {
        let pair = PeerPair()
        pair.offerer.enableDataChannels()
        try pair.negotiate()
        #expect(pair.run(for: .seconds(5)) { pair.isConnected })
        _ = pair.offerer.addTransceiver(kind: .audio, direction: .sendonly)
        let offer = try pair.offerer.makeOffer(now: pair.now)
        #expect(offer.media.allSatisfy { $0.setup == .actpass })
        try pair.answerer.acceptOffer(offer, now: pair.now)
        #expect(try pair.answerer.makeAnswer(now: pair.now).media.allSatisfy { $0.setup == .active })
    }

    /// Sections that we receive on carry neither stream ids nor SSRCs (sig 2.7.2).
    @Test func receivingSectionsNameNoStream() throws {
        let pair = PeerPair()
        let receiving = pair.offerer.addTransceiver(kind: .video, direction: .recvonly)
        receiving.streamIdentifier = MediaStreamIdentifier(stream: "s", track: "t")
        receiving.encodings = [pair.offerer.makeEncoding()]
        let offer = try pair.offerer.makeOffer(now: pair.now)
        #expect(offer.media[0].msids.isEmpty)
        #expect(offer.media[0].ssrcs.isEmpty)
    }
}
