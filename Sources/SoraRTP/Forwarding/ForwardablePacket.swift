import SoraWire

/// A packet that came from a sender, looked at once for all its receivers.
package struct ForwardablePacket: Sendable {
    /// Decrypted, with the sender's numbers. Shared, not copied, between receivers.
    package let bytes: [UInt8]
    package let header: RTPHeader
    /// Nil for sound, for padding, and for a payload that breaks its format.
    package let info: VideoPayloadInfo?

    /// - Parameters:
    ///   - format: nil for sound.
    ///   - dependencyDescriptorID: the sender's identifier of that header extension, whose frame number is rewritten.
    package init(
        _ bytes: [UInt8], header: RTPHeader, format: VideoPayloadFormat?, dependencyDescriptorID: UInt8? = nil
    ) {
        self.bytes = bytes
        self.header = header
        guard let format, header.payloadLength > 0, header.payloadRange.upperBound <= bytes.count else {
            info = nil
            return
        }
        var info = try? format.inspect(bytes, header.payloadRange)
        if let id = dependencyDescriptorID, let range = header.extensionRange(id: id, in: bytes), range.count >= 3 {
            info?.pictureID = UInt16(bytes[range.lowerBound + 1]) << 8 | UInt16(bytes[range.lowerBound + 2])
            info?.pictureIDBits = 16
            info?.pictureIDPosition = range.lowerBound + 1
        }
        self.info = info
    }

    /// Decoding can start with this packet.
    package var startsKeyFrame: Bool { info?.startsKeyFrame ?? false }
    package var isPadding: Bool { header.payloadLength == 0 }
}
