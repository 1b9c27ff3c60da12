import CZlib

/// Why a compressed message cannot be read.
package enum CompressionError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The inflated message is larger than `limit` bytes.
    case tooLarge(limit: Int)
    /// Not one whole zlib stream without preset dictionary; `status` is zlib's.
    case malformed(status: Int32)
    /// `count` bytes follow the stream.
    case trailingBytes(count: Int)
    case outOfMemory

    package var description: String {
        switch self {
        case .tooLarge(let limit): "compressed message inflates to more than \(limit) bytes"
        case .malformed(let status): "malformed zlib stream (status \(status))"
        case .trailingBytes(let count): "\(count) bytes follow the zlib stream"
        case .outOfMemory: "zlib has no memory"
        }
    }
}

/// Whole zlib streams (RFC 1950), one per message.
package enum Compression {
    /// Bytes that a message may inflate to. The protocol speaks of 262,144; what is larger still
    /// arrives whole up to this cap, and a bomb costs no more than it.
    package static let defaultLimit = 4 << 20

    /// A zlib stream of `bytes`, with the usual header `78 9C`.
    package static func deflate(_ bytes: [UInt8]) throws(CompressionError) -> [UInt8] {
        var length = compressBound(uLong(bytes.count))
        var output = [UInt8](repeating: 0, count: Int(length))
        let status = output.withUnsafeMutableBufferPointer { buffer in
            bytes.withUnsafeBufferPointer { source in
                // zlib wants a pointer even for no bytes.
                var none: UInt8 = 0
                return withUnsafePointer(to: &none) { empty in
                    compress2(
                        buffer.baseAddress, &length, source.baseAddress ?? empty, uLong(source.count),
                        Z_DEFAULT_COMPRESSION)
                }
            }
        }
        guard status == Z_OK else { throw .outOfMemory }
        let count = Int(length)
        // What compresses well leaves most of the room unused; it is not kept while the message waits.
        if count < output.count / 2 { return Array(output[..<count]) }
        output.removeLast(output.count - count)
        return output
    }

    /// The message inside `bytes`, which must be one whole zlib stream. Inflates step by step, so that
    /// memory stays within a small multiple of what the message really has.
    package static func inflate(_ bytes: [UInt8], limit: Int = defaultLimit) throws(CompressionError) -> [UInt8] {
        guard !bytes.isEmpty, let inputCount = uInt(exactly: bytes.count) else { throw .malformed(status: Z_BUF_ERROR) }
        var stream = z_stream()
        guard inflateInit_(&stream, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw .outOfMemory
        }
        defer { inflateEnd(&stream) }
        var output: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        var input = bytes
        var failure: CompressionError?
        input.withUnsafeMutableBufferPointer { source in
            stream.next_in = source.baseAddress
            stream.avail_in = inputCount
            while failure == nil {
                let (status, produced) = chunk.withUnsafeMutableBufferPointer { buffer -> (Int32, Int) in
                    stream.next_out = buffer.baseAddress
                    stream.avail_out = uInt(buffer.count)
                    let status = CZlib.inflate(&stream, Z_NO_FLUSH)
                    return (status, buffer.count - Int(stream.avail_out))
                }
                guard output.count + produced <= limit else {
                    failure = .tooLarge(limit: limit)
                    break
                }
                output += chunk[..<produced]
                if status == Z_STREAM_END {
                    if stream.avail_in > 0 { failure = .trailingBytes(count: Int(stream.avail_in)) }
                    break
                }
                // No progress without the end of the stream means that the input ended early.
                guard status == Z_OK, produced > 0 || stream.avail_in > 0 else {
                    failure = .malformed(status: status)
                    break
                }
            }
        }
        if let failure { throw failure }
        return output
    }
}
