import Foundation
import LocalSora
import Testing

/// Who takes part in a channel: an SDK that the server is tested with.
enum PeerKind: String, CaseIterable, Sendable {
    /// The unmodified Python SDK (libwebrtc).
    case python
    /// A page in Chromium that follows the JavaScript SDK's message patterns.
    case chromium
    /// The SDK of this package.
    case swift
}

/// What a member wants, in the words of `connect`.
struct Joining: Sendable {
    enum Path: String, CaseIterable, Sendable {
        /// Signaling on the WebSocket alone.
        case webSocket
        /// DataChannel signaling; the WebSocket stays.
        case hybrid
        /// DataChannel signaling; the WebSocket goes away after `switched`.
        case dataChannels
    }
    struct Spotlight: Sendable {
        var number = 1
        var focus: String?
        var unfocus: String?
    }
    struct Channel: Sendable {
        var label: String
        var isCompressed = false
        var hasHeader = false
    }
    struct Picture: Sendable {
        var width = 320
        var height = 180
        var fps = 15
        /// Who it is: stands in each picture.
        var sender: UInt32
        /// Needs all the bits that its encoder is given.
        var isRough = false
        var first: UInt32 { sender << 20 }
    }
    /// Media of these that match is not forwarded.
    struct Blocking: Sendable {
        var clientIDs: [String]
        var kind: String
    }
    var channel = "c"
    var role = "sendrecv"
    var clientID: String?
    var path = Path.webSocket
    /// Sends these, as far as its role sends.
    var picture: Picture?
    var sound = false
    /// Only messages.
    var hasMedia = true
    var codec = "VP8"
    /// kbit/s.
    var bitRate: Int?
    var simulcast = false
    var layer: String?
    var spotlight: Spotlight?
    var channels: [Channel] = []
    var blocking: Blocking?
    /// Another than the server's own.
    var url: String?

    var sends: Bool { role != "recvonly" }
}

/// What a member saw of one video track.
struct SeenVideo: Sendable {
    /// The sender's connection id.
    var stream: String
    var frames: Int
    var unreadable: Int
    /// Whose numbers were in the pictures.
    var senders: [Int]
    var first: Int
    var last: Int
    /// Largest step of the number.
    var step: Int
    var backwards: Int
    var width: Int
    var height: Int

    /// How many numbers it went on.
    var progress: Int { last - first }
}

/// How a connection ended, as far as the SDK tells.
struct MemberEnding: Sendable, Equatable {
    var code: Int
    var reason: String
}

/// The answer to an RPC.
enum MemberAnswer: Sendable, Equatable {
    case result(String)
    case error(Int)
}

/// A member of a channel, whatever SDK it is on.
protocol ChannelMember: Sendable {
    var connectionID: String { get }
    /// The notification of its own coming, as JSON text with sorted keys: who was there before.
    var greeting: String { get }
    func send(_ label: String, _ text: String) async throws
    /// The next message on a label.
    func message(_ label: String) async throws -> Data
    /// Video that it receives now. `reset` begins to count anew.
    func videos(reset: Bool) async throws -> [SeenVideo]
    /// Sound from how many senders is being heard.
    func audibleSenders() async throws -> Int
    /// `params` is JSON text.
    func call(_ method: String, _ params: String) async throws -> MemberAnswer
    /// The next notification of this type about `id` (any, if nil).
    func notification(_ type: String, about id: String?) async throws -> [String: Any]
    /// The next `push`.
    func push() async throws -> [String: Any]
    /// Video frames decoded, by the SDK's own statistics.
    func decodedFrames() async throws -> Int
    /// Waits for an end that the server brought about.
    func ended() async throws -> MemberEnding
    /// Leaves in order.
    func leave() async throws
}

extension ChannelMember {
    /// Whether it sees `sender`'s picture (number in the picture and connection id of the stream agree), moving,
    /// and `width` wide.
    func sees(
        _ sender: any ChannelMember, picture: UInt32, width: Int? = nil, frames: Int = 10,
        within limit: Duration = .seconds(25)
    ) async throws -> Bool {
        _ = try await videos(reset: true)
        var last: [SeenVideo] = []
        let isSeen = try await eventually(within: limit) {
            last = try await videos(reset: false)
            if let width, let video = last.first(where: { $0.stream == sender.connectionID }), video.width != width {
                // The count is of the width asked for.
                last = try await videos(reset: true)
                return false
            }
            return last.contains {
                $0.stream == sender.connectionID && $0.senders == [Int(picture)] && $0.frames >= frames
                    && $0.progress > frames / 2 && width.map { [width = $0.width] in width == $0 } ?? true
            }
        }
        if !isSeen { print("seen instead of \(sender.connectionID) \(picture) \(width ?? 0): \(last)") }
        return isSeen
    }
}

func sortedJSON(_ object: Any) throws -> String {
    String(
        decoding: try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys, .fragmentsAllowed]),
        as: UTF8.self)
}

extension PeerKind {
    /// A member that is connected, and switched to data channels if it wanted so.
    func join(_ server: SoraServer, _ joining: Joining) async throws -> any ChannelMember {
        switch self {
        case .swift: try await SwiftMember.join(server, joining)
        case .python, .chromium: try await ProcessMember.join(self, server, joining)
        }
    }
}
