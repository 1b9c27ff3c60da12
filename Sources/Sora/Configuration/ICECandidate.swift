import Foundation
internal import SoraLocking

/// A transport address that ICE may try, as one SDP line.
public final class ICECandidate: Equatable, Codable {
    private let values: Locked<(url: URL?, sdp: String)>

    /// The server by which it was found.
    public var url: URL? {
        get { values.withLock { $0.url } }
        set { values.withLock { $0.url = newValue } }
    }
    /// `candidate:…`
    public var sdp: String {
        get { values.withLock { $0.sdp } }
        set { values.withLock { $0.sdp = newValue } }
    }

    public init(url: URL?, sdp: String) { values = Locked((url, sdp)) }

    /// Reads a bare JSON string; ``url`` stays nil.
    public convenience init(from decoder: any Decoder) throws {
        self.init(url: nil, sdp: try decoder.singleValueContainer().decode(String.self))
    }
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(sdp)
    }

    public static func == (left: ICECandidate, right: ICECandidate) -> Bool {
        left.sdp == right.sdp && left.url == right.url
    }
}
