import COpenSSL

/// What users need to know of one certificate.
package struct CertificateSummary: Sendable, Equatable, CustomStringConvertible {
    package var subject: String
    package var issuer: String
    /// As OpenSSL prints dates, in GMT.
    package var notBefore: String
    package var notAfter: String
    /// Whole days until it expires; negative afterwards.
    package var daysLeft: Int
    /// DNS names and addresses that it is valid for.
    package var names: String
    package var isSelfSigned: Bool

    /// Nil if the bytes are no certificate.
    package init?(der: [UInt8]) {
        let parsed: OpaquePointer? = der.withUnsafeBufferPointer { buffer in
            var cursor = buffer.baseAddress
            return d2i_X509(nil, &cursor, buffer.count)
        }
        guard let certificate = parsed else {
            ERR_clear_error()
            return nil
        }
        defer { X509_free(certificate) }
        // RFC 2253 order and escapes, without escaping what is not ASCII.
        let style: UInt = 0x0111_0313
        subject = CertificateSummary.text { X509_NAME_print_ex($0, X509_get_subject_name(certificate), 0, style) >= 0 }
        issuer = CertificateSummary.text { X509_NAME_print_ex($0, X509_get_issuer_name(certificate), 0, style) >= 0 }
        notBefore = CertificateSummary.text { ASN1_TIME_print($0, X509_get0_notBefore(certificate)) == 1 }
        notAfter = CertificateSummary.text { ASN1_TIME_print($0, X509_get0_notAfter(certificate)) == 1 }
        var days: Int32 = 0
        var seconds: Int32 = 0
        _ = ASN1_TIME_diff(&days, &seconds, nil, X509_get0_notAfter(certificate))
        daysLeft = Int(days) - (seconds < 0 ? 1 : 0)
        let place = X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1)
        names =
            place < 0
            ? ""
            : CertificateSummary.text { X509V3_EXT_print($0, X509_get_ext(certificate, place), 0, 0) == 1 }
        isSelfSigned = subject == issuer
        ERR_clear_error()
    }

    package var description: String {
        "\(subject), issued by \(isSelfSigned ? "itself" : issuer), valid from \(notBefore) to \(notAfter)"
            + (names.isEmpty ? "" : ", for \(names)")
    }

    private static func text(_ write: (OpaquePointer) -> Bool) -> String {
        guard let bio = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(bio) }
        guard write(bio) else { return "" }
        let count = min(BIO_ctrl_pending(bio), 4096)
        guard count > 0 else { return "" }
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            filled = max(0, Int(BIO_read(bio, buffer.baseAddress, Int32(count))))
        }
        return Masking.line(String(decoding: bytes, as: UTF8.self), limit: 1000)
    }
}
