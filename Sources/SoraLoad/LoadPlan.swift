import SoraMessages
import SoraNetwork

/// What a load run does to a server.
package struct LoadPlan: Sendable {
    package enum Traffic: Sendable, Equatable {
        /// Connections that say nothing.
        case none
        /// A VP8-looking stream of this many bits per second from each publisher.
        case video(bitrate: Int)
        /// Data channel messages from each publisher; `size` in bytes, at least ``Stamp/length``.
        case messages(perSecond: Double, size: Int)
    }

    /// A `ws` or `wss` URL.
    package var url: String
    /// With several channels a hyphen and a number follow the name.
    package var channel = "load"
    package var channels = 1
    /// Spread evenly over the channels.
    package var connections = 10
    /// In each channel so many send, and the others only receive; nil: all send.
    package var publishers: Int?
    package var traffic = Traffic.messages(perSecond: 10, size: 200)
    /// The data channel's messages may be lost and come out of order.
    package var isUnreliable = false
    /// Connections that are begun in a second.
    package var rampPerSecond = 50.0
    /// Of the traffic, after the last connection was begun.
    package var duration: Duration = .seconds(10)
    /// For each connection.
    package var connectTimeout: Duration = .seconds(30)
    /// `metadata` of each `connect`.
    package var metadata: JSONValue?
    package var trust = TLSClientConfiguration.Trust.system
    /// Event loops, each a thread.
    package var loops = 2

    package init(url: String) { self.url = url }

    func channelID(of index: Int) -> String { channels > 1 ? "\(channel)-\(index % channels)" : channel }

    /// Whether the connection with this number sends.
    func sends(_ index: Int) -> Bool { index / channels < publishers ?? .max }

    func connect(_ index: Int) -> ConnectMessage {
        var connect = ConnectMessage(role: .sendrecv, channelID: channelID(of: index))
        connect.metadata = metadata
        connect.soraClient = "sora load"
        connect.audio = .enabled(false)
        switch traffic {
        case .video(let bitrate):
            connect.role = sends(index) ? (publishers == nil ? .sendrecv : .sendonly) : .recvonly
            var wishes: JSONObject = ["codec_type": "VP8"]
            // Our stream bounds itself; the server's bound lies above it.
            if sends(index) { wishes["bit_rate"] = .integer(Int64(min(30_000, max(1, bitrate / 500)))) }
            connect.video = MediaSetting(json: .object(wishes))
        case .messages, .none:
            connect.video = .enabled(false)
            connect.dataChannelSignaling = true
            var definition = DataChannelDefinition(
                label: LoadNode.label, direction: sends(index) ? .sendrecv : .recvonly)
            if isUnreliable {
                definition.ordered = false
                definition.maxRetransmits = 0
            }
            connect.dataChannels = [definition]
        }
        return connect
    }
}

/// What a second of a run brought.
package struct LoadSecond: Sendable {
    package var second: Int
    /// In all, until now.
    package var connected: Int
    package var failed: Int
    package var lost: Int
    /// In this second.
    package var traffic: LoadNode.Count
}

/// What a whole run brought.
package struct LoadReport: Sendable {
    package var connected = 0
    /// Reasons, and how many connections failed for each.
    package var failures: [String: Int] = [:]
    /// Connections that ended before the run did.
    package var lost = 0
    /// From the first beginning to the last connection.
    package var rampSeconds = 0.0
    /// Of connecting: from dialling to the media path.
    package var connecting = LatencyHistogram()
    /// Of the traffic.
    package var seconds = 0.0
    package var traffic = LoadNode.Count()
    /// Packets and messages that the others should have got.
    package var expected = 0

    package var missing: Int { max(0, expected - traffic.received) }
    package var connectsPerSecond: Double { rampSeconds > 0 ? Double(connected) / rampSeconds : 0 }
}
