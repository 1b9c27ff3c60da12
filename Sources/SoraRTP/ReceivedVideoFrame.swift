import SoraWire

/// A complete frame, decodable after those delivered before it.
package struct ReceivedVideoFrame: Equatable, Sendable {
    /// As ``VideoPayloadFormat/assemble(_:)`` gives it.
    package var data: [UInt8]
    package var timestamp: RTPTimestamp
    package var isKeyFrame: Bool
    package var temporalLayer: UInt8?
    /// Clockwise degrees, if a packet of the frame carried the orientation.
    package var rotation: Int?
    package var packetCount: Int
    /// Arrival of the first and of the last packet to come.
    package var firstArrival: Instant
    package var lastArrival: Instant

    package init(
        data: [UInt8], timestamp: RTPTimestamp, isKeyFrame: Bool, temporalLayer: UInt8? = nil, rotation: Int? = nil,
        packetCount: Int = 1, firstArrival: Instant, lastArrival: Instant
    ) {
        self.data = data
        self.timestamp = timestamp
        self.isKeyFrame = isKeyFrame
        self.temporalLayer = temporalLayer
        self.rotation = rotation
        self.packetCount = packetCount
        self.firstArrival = firstArrival
        self.lastArrival = lastArrival
    }
}
