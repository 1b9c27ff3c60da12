import Foundation
import Testing

@testable import Sora

@Suite struct CertificateAuthoritiesTests {
    private let root = """
        -----BEGIN CERTIFICATE-----
        MIIBiTCCAS+gAwIBAgIUNFD29zhlGaX5Pl+ispZ5FZtngM4wCgYIKoZIzj0EAwIw
        GTEXMBUGA1UEAwwOU29yYSB0ZXN0IHJvb3QwIBcNMjYxMTMwMDczNjM2WhgPMjEy
        NjExMDYwNzM2MzZaMBkxFzAVBgNVBAMMDlNvcmEgdGVzdCByb290MFkwEwYHKoZI
        zj0CAQYIKoZIzj0DAQcDQgAEhuMMLzxiOAu4hNqcvHjgqF9AHE2t+tfWhm/7vSoz
        tolAkX2AcMH7wYY9boDa1lfKmUXIclZbYhuw5y2efmqG2qNTMFEwHQYDVR0OBBYE
        FOaUF+5ppFtiM2jegHD8w74g/J3DMB8GA1UdIwQYMBaAFOaUF+5ppFtiM2jegHD8
        w74g/J3DMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhAJy/77NR
        KKQbc1v5IYJA8os+CRbTHQK/ogWM1o6G7wwIAiBAultkVsACz5bWxgX/L6l5bHYU
        MtRYnm286biS5YTQDA==
        -----END CERTIFICATE-----
        """

    private func reason(_ pem: String) -> String? {
        do {
            _ = try CertificateAuthorities(pem: pem)
            return nil
        } catch {
            if case .configurationError(let reason) = error { return reason }
            return "another error"
        }
    }

    @Test func findsBlocksBetweenOtherText() throws {
        let found = try CertificateAuthorities(
            pem: "subject=x\n\(root)\nnoise\n\(root)\n-----BEGIN CERTIFICATE-----\nrest")
        #expect(found.certificates.count == 2)
        #expect(found.certificates[0].first == 0x30)
    }

    @Test func whitespaceInsideTheBase64IsIgnored() throws {
        let spread = root.replacing("MII", with: "M I\tI ")
        #expect(try CertificateAuthorities(pem: spread).certificates == CertificateAuthorities(pem: root).certificates)
    }

    @Test func reasonsAreExact() {
        #expect(reason("") == "caCertificate contains no valid PEM blocks")
        #expect(reason("-----BEGIN CERTIFICATE-----\nAAAA") == "caCertificate contains no valid PEM blocks")
        #expect(
            reason("-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----")
                == "failed to decode Base64 in PEM block")
        #expect(
            reason("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----") == "failed to decode Base64 in PEM block")
        #expect(
            reason("-----BEGIN CERTIFICATE-----\nAAECAw==\n-----END CERTIFICATE-----")
                == "failed to create SecCertificate from DER data")
    }

    @Test func cutOrChangedCertificatesNeverTrap() {
        let der = (try? CertificateAuthorities(pem: root).certificates[0]) ?? []
        #expect(der.count > 100)
        for length in 0..<der.count {
            let cut = pem(Array(der[..<length]))
            #expect(reason(cut) != nil)
        }
        for index in 0..<8 {
            for value in stride(from: 0, to: 256, by: 5) {
                var changed = der
                changed[index] = UInt8(value)
                _ = reason(pem(changed))
            }
        }
    }

    private func pem(_ der: [UInt8]) -> String {
        "-----BEGIN CERTIFICATE-----\n\(Data(der).base64EncodedString())\n-----END CERTIFICATE-----"
    }
}
