import SoraSDP
import SoraWire
import Testing

@Suite struct SDPRobustnessTests {
    /// Parses; a value must survive writing and parsing again.
    private func check(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let session = try? SessionDescription(parsing: text) else { return }
        let written = session.serialized()
        do {
            let again = try SessionDescription(parsing: written)
            #expect(again == session, "\(written)")
        } catch {
            Issue.record("\(error) in \(written)")
        }
    }

    @Test func everyPrefixGivesValueOrError() {
        let bytes = Array(goodOffer.utf8)
        for length in 0...bytes.count { check(Array(bytes[..<length])) }
    }

    @Test func everyChangedByteGivesValueOrError() {
        let bytes = Array(goodOffer.utf8)
        for index in bytes.indices {
            for value in [UInt8(0), 10, 13, 32, 58, 255, bytes[index] ^ 1] {
                var copy = bytes
                copy[index] = value
                check(copy)
            }
        }
    }

    @Test func appendedBytesAreRefusedOrRead() {
        for suffix in ["x", "a", "a=", "\n\nv=0", "a=\n", "m=\n", "m=audio\n", "\u{FFFD}\n"] {
            #expect(throws: SDPError.self, "\(suffix)") { try SessionDescription(parsing: goodOffer + suffix) }
        }
    }

    @Test func randomLinesNeverTrap() throws {
        var random = RandomSource(seed: 20)
        let lines = try SDPFixtures.names.flatMap { name -> [[UInt8]] in
            try SDPFixtures.text(name).split(separator: "\r\n").map { Array($0.utf8) }
        }
        for _ in 0..<400 {
            var bytes = Array("v=0\no=- 1 1 IN IP4 0.0.0.0\ns=-\n".utf8)
            for _ in 0..<Int.random(in: 0..<40, using: &random) {
                var line = lines[Int.random(in: 0..<lines.count, using: &random)]
                if Int.random(in: 0..<20, using: &random) == 0, !line.isEmpty {
                    line[Int.random(in: 0..<line.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                bytes += line + [10]
            }
            check(bytes)
        }
    }

    // SDP20
    @Test func workIsLinear() throws {
        func seconds(_ text: String) -> Double {
            (0..<3).map { _ in
                let clock = ContinuousClock()
                let start = clock.now
                _ = try? SessionDescription(parsing: text)
                let took = clock.now - start
                return Double(took.components.seconds) + Double(took.components.attoseconds) * 1e-18
            }.min() ?? 0
        }
        func manySources(_ count: Int) -> String {
            goodOffer + (0..<count).map { "a=ssrc:\($0) cname:x\n" }.joined()
        }
        func longParameters(_ count: Int) -> String {
            changed("minptime=10", String(repeating: "a=1;", count: count) + "minptime=10")
        }
        #expect(try SessionDescription(parsing: manySources(2_000)).media[2].ssrcs.count == 2_000)
        #expect(
            try SessionDescription(parsing: longParameters(1_000)).media[0].codecs[0].formatParameters["minptime"]
                == "10")
        // Eight times the input: linear is 8, quadratic 64. Generous, since the machine is shared.
        #expect(seconds(manySources(32_000)) < 30 * seconds(manySources(4_000)) + 0.05)
        #expect(seconds(longParameters(16_000)) < 30 * seconds(longParameters(2_000)) + 0.05)
    }

    // SDP20
    @Test func limitsGiveTypedErrors() {
        func limit(_ text: String) -> Bool {
            do throws(SDPError) {
                _ = try SessionDescription(parsing: text)
                return false
            } catch {
                if case .limitExceeded = error { return true }
                return false
            }
        }
        #expect(limit(goodOffer + "a=x:" + String(repeating: "y", count: SDPLimits.lineLength)))
        #expect(limit(String(repeating: "a", count: SDPLimits.size + 1)))
        #expect(limit(goodOffer + String(repeating: "m=text 9 TCP t\n", count: SDPLimits.sections)))
        let candidate = "a=candidate:1 1 udp 2130706431 192.0.2.10 50000 typ host\n"
        #expect(limit(goodOffer + String(repeating: candidate, count: SDPLimits.candidates + 1)))
        #expect(limit(changed("a=mid:v", "a=mid:v" + String(repeating: "\na=rtcp-fb:* x", count: 65))))
    }
}
