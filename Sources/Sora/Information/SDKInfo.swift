/// About this SDK.
public enum SDKInfo {
    /// The version of this package.
    public static let version = "0.1.0"

    /// Name and version, as sent to servers and proxies.
    static let product = "Sora for Swift \(version)"
}

/// About the WebRTC engine.
public enum WebRTCInfo {
    public static let version = SDKInfo.version
    public static let branch = "0"
    public static let commitPosition = "1"
    public static let maintenanceVersion = "0"
    public static let revision = "sora-swift-engine"

    /// The first seven characters of ``revision``.
    public static var shortRevision: String { String(revision.prefix(7)) }

    /// The text of the field `libwebrtc` in `connect`.
    static var engine: String { "SoraSwift \(version) (\(branch).\(commitPosition).\(maintenanceVersion))" }
}
