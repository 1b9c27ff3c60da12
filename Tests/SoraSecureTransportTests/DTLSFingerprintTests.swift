import SoraCrypto
import SoraWire
import Testing

@testable import SoraSecureTransport

@Suite struct DTLSFingerprintTests {
    private static let text =
        "sha-256 12:DF:3E:5D:49:6B:19:E5:7C:AB:4A:AD:B9:B1:3F:82:18:3B:54:02:12:DF:3E:5D:49:6B:19:E5:7C:AB:4A:AD"

    @Test func readsAndWritesTheAttributeValue() throws {
        let fingerprint = try #require(DTLSFingerprint(sdp: Self.text))
        #expect(fingerprint.algorithm == "sha-256")
        #expect(fingerprint.bytes.count == 32)
        #expect(fingerprint.sdp == Self.text)
    }

    /// DTL4: names and digits of either case mean the same.
    @Test func caseDoesNotMatter() throws {
        let upper = try #require(DTLSFingerprint(sdp: Self.text))
        let lower = try #require(DTLSFingerprint(sdp: "SHA-256 " + Self.text.dropFirst(8).lowercased()))
        #expect(upper == lower)
        #expect(lower.sdp == Self.text)
    }

    /// SDP15
    @Test func refusesMalformedValues() {
        let value = String(Self.text.dropFirst(8))
        let refused = [
            "", "sha-256", "sha-256 ", " \(value)", value, "sha-256  \(value)", "sha-256 \(value) ",
            "sha-256 \(value.dropLast(3))", "sha-256 \(value):AA", "sha-256 \(value.dropLast())",
            "sha-256 \(value):", "sha-256 :\(value)", "sha-256 \(value.replacing(":", with: ""))",
            "sha-256 \(value.replacing("12:", with: "1:"))", "sha-256 \(value.replacing("12:", with: "123:"))",
            "sha-256 \(value.replacing("DF", with: "DG"))", "sha-256 \(value.replacing(":DF", with: "::DF"))",
            "sha-1 \(value)", "sha-384 \(value)", "sha 256 \(value)", "sha_256 \(value)",
        ]
        for text in refused { #expect(DTLSFingerprint(sdp: text) == nil, "\(text)") }
    }

    @Test func cutAtEveryLengthIsRefused() {
        for length in 0..<Self.text.count { #expect(DTLSFingerprint(sdp: String(Self.text.prefix(length))) == nil) }
    }

    @Test func randomTextNeverTraps() {
        var random = RandomSource(seed: 3)
        let alphabet = Array("shaSHA-0123456789abcdefABCDEF: é\r\n")
        for _ in 0..<2000 {
            let text = String(
                (0..<Int.random(in: 0...110, using: &random)).map { _ in alphabet.randomElement(using: &random)! })
            if let parsed = DTLSFingerprint(sdp: text) { #expect(DTLSFingerprint(sdp: parsed.sdp) == parsed) }
        }
    }

    @Test func unknownHashIsKeptButMatchesNothing() throws {
        let unknown = try #require(DTLSFingerprint(sdp: "md5 00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF"))
        #expect(!unknown.isUsable)
        #expect(!DTLSFingerprint.matches([unknown], certificate: TestCertificates.first.der))
        let md5 = TestCertificates.first.fingerprint(.md5)
        #expect(!DTLSFingerprint.matches([md5], certificate: TestCertificates.first.der))
        #expect(!DTLSFingerprint.matches([], certificate: TestCertificates.first.der))
    }

    @Test(arguments: [HashAlgorithm.sha1, .sha256, .sha384, .sha512])
    func anyUsableHashFunctionMatches(_ algorithm: HashAlgorithm) throws {
        let certificate = TestCertificates.first
        let given = try #require(DTLSFingerprint(sdp: certificate.fingerprint(algorithm).sdp))
        #expect(DTLSFingerprint.matches([given], certificate: certificate.der))
        #expect(!DTLSFingerprint.matches([given], certificate: TestCertificates.second.der))
        #expect(
            DTLSFingerprint.matches([TestCertificates.third.fingerprint, given], certificate: certificate.der)
                == (algorithm != .sha1))
    }

    @Test func sha1CountsOnlyAlone() {
        let certificate = TestCertificates.first
        let weak = certificate.fingerprint(.sha1)
        #expect(DTLSFingerprint.matches([weak], certificate: certificate.der))
        #expect(!DTLSFingerprint.matches([weak, TestCertificates.second.fingerprint], certificate: certificate.der))
    }

    @Test func certificatesDifferAndKeepTheirFingerprint() throws {
        let certificate = try DTLSCertificate.selfSigned()
        #expect(certificate.fingerprint.bytes == hash(.sha256, certificate.der))
        #expect(try DTLSCertificate.selfSigned().fingerprint != certificate.fingerprint)
        #expect(certificate.der.count < 400)
    }
}
