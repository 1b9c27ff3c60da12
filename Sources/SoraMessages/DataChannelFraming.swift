/// How messages of one label stand on its data channel (signaling specification 4.2).
package struct DataChannelFraming: Sendable, Equatable {
    /// One message as the data channel carries it.
    package struct Frame: Sendable, Equatable {
        package var payload: [UInt8]
        package var isBinary: Bool
        package init(payload: [UInt8], isBinary: Bool) {
            self.payload = payload
            self.isBinary = isBinary
        }
    }

    /// Whether the label is a system label, which carries JSON.
    package var isSystem: Bool
    /// The `compress` flag of the offer's entry.
    package var compress: Bool
    /// Bytes that a received message may inflate to.
    package var inflatedLimit: Int

    package init(label: String, compress: Bool, inflatedLimit: Int = Compression.defaultLimit) {
        isSystem = !SystemLabel.isApplication(label)
        self.compress = compress
        self.inflatedLimit = inflatedLimit
    }

    /// Compressed labels carry binary zlib streams; uncompressed ones text on system labels (browsers
    /// cannot read binary there) and raw bytes on the application's.
    package func frame(_ message: [UInt8]) throws(CompressionError) -> Frame {
        if compress { return Frame(payload: try Compression.deflate(message), isBinary: true) }
        return Frame(payload: message, isBinary: !isSystem)
    }

    /// The message inside a received frame. Text is accepted on every label, and is never compressed.
    package func message(in frame: Frame) throws(CompressionError) -> [UInt8] {
        guard compress, frame.isBinary else { return frame.payload }
        return try Compression.inflate(frame.payload, limit: inflatedLimit)
    }
}

/// The prefix of received messages on labels whose `header` says `sender_connection_id`: the sender's
/// connection id as 26 ASCII bytes, directly followed by the payload.
package enum SenderHeader {
    package static func prepend(_ connectionID: String, to payload: [UInt8]) -> [UInt8] {
        Array(connectionID.utf8) + payload
    }

    /// Id and payload; nil if the message is too short for an id or it is not ASCII.
    package static func split(_ message: [UInt8]) -> (connectionID: String, payload: [UInt8])? {
        guard message.count >= SignalingID.length, message[..<SignalingID.length].allSatisfy({ $0 < 128 })
        else { return nil }
        return (
            String(decoding: message[..<SignalingID.length], as: UTF8.self), Array(message[SignalingID.length...])
        )
    }
}
