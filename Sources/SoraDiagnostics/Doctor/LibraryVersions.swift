import COpenSSL
import SoraMessages
#if Media
import CAOM
import CDav1d
import COpenH264
import COpus
import CVPX
#endif

/// Versions of the libraries that come with the system and matter for security (SAF7).
package enum LibraryVersions {
    package static var all: [(name: String, version: String)] {
        var found = [("OpenSSL", text(OpenSSL_version(OPENSSL_VERSION), without: "OpenSSL "))]
        #if Media
        var h264 = OpenH264Version()
        WelsGetCodecVersionEx(&h264)
        found += [
            ("libvpx", text(vpx_codec_version_str(), without: "v")),
            ("libaom", text(aom_codec_version_str(), without: "v")),
            ("dav1d", text(dav1d_version())), ("openh264", "\(h264.uMajor).\(h264.uMinor).\(h264.uRevision)"),
            ("opus", text(opus_get_version_string(), without: "libopus ")),
        ]
        #endif
        return found
    }

    private static func text(_ pointer: UnsafePointer<CChar>?, without prefix: String = "") -> String {
        guard let pointer else { return "unknown" }
        let text = String(cString: pointer)
        return text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : text
    }

    /// One JSON object on one line.
    package static var jsonText: String {
        var versions = JSONObject()
        for (name, version) in all { versions[name] = .string(version) }
        let object: JSONObject = ["versions": .object(versions)]
        return object.text
    }
}
