import SoraWire
import Testing

@Suite struct SocketAddressTests {
    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "::"), ("2001:DB8::1", "2001:db8::1"),
        ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"), ("::ffff:192.0.2.1", "::ffff:c000:201"),
        ("fe80::1%3", "fe80::1%3"), ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
    ])
    func parsesAndFormats(_ text: String, _ expected: String) throws {
        let address = try #require(IPAddress(text))
        #expect(address.description == expected)
        #expect(IPAddress(bytes: address.bytes)?.bytes == address.bytes)
    }

    @Test(arguments: [
        "", "1.2.3", "1.2.3.256", "01.2.3.4", "1.2.3.4.5", ":", ":::", "1::2::3", "12345::", "::g",
        "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::8:9", "example.com", "::1%eth0", "-1::",
    ])
    func refuses(_ text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test func classifies() throws {
        #expect(try #require(IPAddress("fe80::1")).isLinkLocal)
        #expect(try #require(IPAddress("169.254.3.4")).isLinkLocal)
        #expect(try #require(IPAddress("127.9.9.9")).isLoopback)
        #expect(!(try #require(IPAddress("192.0.2.1")).isLoopback))
        #expect(SocketAddress("::1", port: 80)?.description == "[::1]:80")
    }
}

@Suite struct InstantTests {
    @Test func arithmeticSaturates() {
        #expect(Instant.zero + .milliseconds(5) == Instant(nanoseconds: 5_000_000))
        #expect(Instant.distantFuture + .seconds(1) == .distantFuture)
        #expect(Instant(nanoseconds: .min) - .seconds(1) == Instant(nanoseconds: .min))
        #expect(Instant(nanoseconds: 3_000) - Instant(nanoseconds: 1_000) == .microseconds(2))
        #expect(Duration.seconds(Int64.max).wholeNanoseconds == .max)
    }
}

@Suite struct SequenceNumberTests {
    @Test func orderWraps() {
        #expect(SequenceNumber(0).isNewer(than: SequenceNumber(65535)))
        #expect(!SequenceNumber(65535).isNewer(than: SequenceNumber(0)))
        #expect(SequenceNumber(5).distance(from: SequenceNumber(65533)) == 8)
        #expect((SequenceNumber(65535) + 2).rawValue == 1)
    }

    @Test func unwrapperCountsOn() {
        var unwrapper = SequenceUnwrapper()
        let first = unwrapper.unwrap(SequenceNumber(65534))
        #expect(unwrapper.unwrap(SequenceNumber(1)) == first + 3)
        #expect(unwrapper.unwrap(SequenceNumber(65535)) == first + 1)
        #expect(unwrapper.unwrap(SequenceNumber(2)) == first + 4)
    }

    @Test func seededRandomRepeats() {
        var a = RandomSource(seed: 7)
        var b = RandomSource(seed: 7)
        #expect(a.bytes(33) == b.bytes(33))
        #expect(a.bytes(33).count == 33)
    }
}
