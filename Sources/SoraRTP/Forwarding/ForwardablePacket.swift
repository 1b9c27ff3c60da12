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
            // Works for payloads that cannot be read, too (end-to-end encryption).
            var described = info ?? VideoPayloadInfo()
            let first = range.lowerBound
            described.pictureID = UInt16(bytes[first + 1]) << 8 | UInt16(bytes[first + 2])
            described.pictureIDBits = 16
            described.pictureIDPosition = first + 1
            // The structure of templates comes with the first packet of a key frame.
            if bytes[first] & 0x80 != 0, range.count > 3, bytes[first + 3] & 0x80 != 0 {
                described.startsKeyFrame = true
                described.mayFollowOthersOfItsFrame = false
            }
            info = described
        }
        self.info = info
    }

    /// Decoding can start with this packet.
    package var startsKeyFrame: Bool { info?.startsKeyFrame ?? false }
    package var isPadding: Bool { header.payloadLength == 0 }
}
