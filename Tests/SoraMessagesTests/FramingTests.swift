import CDtlsTestClock
import SoraMessages
import SoraWire
import Testing

@Suite struct FramingTests {
    @Test func recordedFramesDecodeExactly() throws {
        let examples = try #require(try MessageFixtures.json("datachannel-binary-examples.json").arrayValue)
        #expect(examples.count > 10)
        for example in examples {
            let object = try #require(example.objectValue)
            let label = try #require(object["label"]?.stringValue)
            let framing = DataChannelFraming(label: label, compress: object["compressed"]?.boolValue == true)
            let bytes = MessageFixtures.bytes(hex: object["hex"]?.stringValue ?? "")
            let message = try framing.message(in: .init(payload: bytes, isBinary: true))
            if let decoded = object["decoded"], !decoded.isNull {
                #expect(try JSONValue(parsing: message) == decoded)
            }
            let again = try framing.frame(message)
            #expect(try framing.message(in: again) == message)
            if framing.compress { #expect(Array(again.payload.prefix(2)) == [0x78, 0x9C] && again.isBinary) }
        }
    }

    @Test func senderHeaderIsCutOff() throws {
        let bytes = MessageFixtures.bytes(
            hex: "533859454e3054534531334a4443323939314e4734585a3135307061796c6f61642d0001")
        let (id, payload) = try #require(SenderHeader.split(bytes))
        #expect(id == "S8YEN0TSE13JDC2991NG4XZ150" && payload == Array("payload-".utf8) + [0, 1])
        #expect(SenderHeader.prepend(id, to: payload) == bytes)
        #expect(SenderHeader.split(Array(bytes.prefix(25))) == nil)
        #expect(SenderHeader.split(Array(bytes.prefix(26)))?.payload == [])
    }

    // SCT14
    @Test func readyMadeStreams() throws {
        func inflate(_ hex: String) throws(CompressionError) -> [UInt8] {
            try Compression.inflate(MessageFixtures.bytes(hex: hex))
        }
        #expect(try inflate("78da2bce2f4a54284eac2c56c8c804001e3f0487") == Array("sora says hi".utf8))
        #expect(try inflate("7801010000ffff00000001") == [])
        for bad in [
            "78da2bce2f4a54284eac2c56c8c804001e3f04c7", "78bb000000012bce2f4a54284eac2c56c8c804001e3f0487",
            "881c2bce2f4a54284eac2c56c8c804001e3f0487", "", "78", "2bce2f4a54284eac2c56c8c80400",
        ] { #expect(throws: CompressionError.self) { try inflate(bad) } }
        #expect(throws: CompressionError.trailingBytes(count: 1)) {
            try inflate("78da2bce2f4a54284eac2c56c8c804001e3f048700")
        }
    }

    // SCT14
    @Test func largeMessagesArriveWholeOrFailAsTooLarge() throws {
        let large = [UInt8](repeating: 7, count: 300_000)
        let stream = try Compression.deflate(large)
        #expect(try Compression.inflate(stream) == large)
        #expect(throws: CompressionError.tooLarge(limit: 262_144)) { try Compression.inflate(stream, limit: 262_144) }
        #expect(try Compression.inflate(stream, limit: 300_000) == large)
        let bomb = try Compression.deflate([UInt8](repeating: 0, count: 16 << 20))
        #expect(throws: CompressionError.tooLarge(limit: Compression.defaultLimit)) { try Compression.inflate(bomb) }
        #expect(try Compression.inflate(Compression.deflate([])) == [])
    }

    // api 5.62
    @Test func brokenStreamsNeverTrap() throws {
        var random = RandomSource(seed: 9)
        let message = random.bytes(600) + [UInt8](repeating: 1, count: 600)
        let stream = try Compression.deflate(message)
        for length in 0..<stream.count {
            #expect(throws: CompressionError.self) { try Compression.inflate(Array(stream[..<length])) }
        }
        for index in stream.indices {
            var copy = stream
            copy[index] ^= 0x20
            // Header bits may change without harm; the checksum covers the message.
            if let result = try? Compression.inflate(copy) { #expect(result == message) }
        }
    }

    // api 5.62
    @Test func nothingShorterThanSevenBytesIsAMessage() {
        var random = RandomSource(seed: 62)
        #expect(throws: CompressionError.self) { try Compression.inflate([]) }
        for byte in UInt8.min...UInt8.max {
            #expect(throws: CompressionError.self) { try Compression.inflate([byte]) }
            #expect(throws: CompressionError.self) { try Compression.inflate([0x78, byte]) }
        }
        // With the header of a real stream, and without.
        for round in 0..<5_000 {
            let length = Int(random.next() % 7)
            var bytes = random.bytes(length)
            if round % 2 == 0 { bytes = Array(([0x78, [0x01, 0x5E, 0x9C, 0xDA][round / 2 % 4]] + bytes).prefix(6)) }
            #expect(throws: CompressionError.self, "\(bytes)") { try Compression.inflate(bytes) }
        }
    }

    // api 5.63
    @Test func messagesTakeTheMemoryThatTheyNeed() throws {
        var random = RandomSource(seed: 63)
        for length in [0, 1, 100, 10_000, 262_144] {
            for message in [[UInt8](repeating: 7, count: length), random.bytes(length)] {
                let stream = try Compression.deflate(message)
                #expect(stream.capacity <= 2 * stream.count + 64, "\(length): \(stream.count) in \(stream.capacity)")
                let again = try Compression.inflate(stream)
                #expect(again == message)
                #expect(again.capacity <= 2 * again.count + 64, "\(again.count) in \(again.capacity)")
            }
        }
    }

    // api 5.63
    @Test func nothingIsLeftOfMessages() throws {
        func bytesInUse() -> Int { Int(dtls_test_heap_bytes_in_use()) }
        let message = [UInt8](repeating: 3, count: 20_000)
        let stream = try Compression.deflate(message)
        func work() {
            for round in 0..<300 {
                _ = try? Compression.deflate(message)
                _ = try? Compression.inflate(stream)
                _ = try? Compression.inflate(stream, limit: 100)
                _ = try? Compression.inflate(Array(stream.prefix(round % stream.count)))
            }
        }
        work()
        // Other tests use the heap meanwhile: the calmest of several looks counts. A leak of one stream of zlib in each
        // round would be megabytes in every look.
        let growth = (0..<5).map { _ in
            let before = bytesInUse()
            work()
            return bytesInUse() - before
        }
        #expect((growth.min() ?? .max) < 500_000, "\(growth)")
    }

    @Test func uncompressedLabelsUseTextForSystemAndBinaryForApplication() throws {
        let system = DataChannelFraming(label: "signaling", compress: false)
        #expect(try system.frame([123, 125]) == .init(payload: [123, 125], isBinary: false))
        #expect(try system.message(in: .init(payload: [123, 125], isBinary: true)) == [123, 125])
        let application = DataChannelFraming(label: "#chat", compress: false)
        #expect(try application.frame([0, 1]) == .init(payload: [0, 1], isBinary: true))
        // Text is taken as it is, even where compression was agreed.
        let compressed = DataChannelFraming(label: "notify", compress: true)
        #expect(try compressed.message(in: .init(payload: [123, 125], isBinary: false)) == [123, 125])
    }

    @Test func idsAreTwentySixCrockfordCharactersOfAVersion4UUID() {
        var random = RandomSource(seed: 1)
        var seen = Set<String>()
        for _ in 0..<1_000 {
            let id = SignalingID.generate(using: &random)
            #expect(SignalingID.isValid(id) && "01234567".contains(id.prefix(1)))
            seen.insert(id)
        }
        #expect(seen.count == 1_000)
        #expect(!SignalingID.isValid("S8YEN0TSE13JDC2991NG4XZ15") && !SignalingID.isValid("I8YEN0TSE13JDC2991NG4XZ150"))
    }
}
