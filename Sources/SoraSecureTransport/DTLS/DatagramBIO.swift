import COpenSSL

/// Stands between OpenSSL and the datagrams: one read takes a whole datagram, one write makes one.
///
/// OpenSSL asks a BIO for the path MTU to size the flights of a handshake. This one answers, so that
/// records are packed up to the limit and never past it.
final class DatagramBIO {
    /// Room that OpenSSL is told to leave in datagrams of the handshake. It sizes an encrypted record
    /// without the explicit nonce and tag of AES-GCM, and would go past the limit by these bytes.
    static let reservedBytes = 8 + 16

    let maximumDatagramSize: Int
    /// The datagram that the next read takes.
    var inbound: [UInt8]?
    /// What was written since this was last emptied.
    var outbound: [[UInt8]] = []

    init(maximumDatagramSize: Int) { self.maximumDatagramSize = maximumDatagramSize }

    /// An OpenSSL BIO on this object. The object must outlive it: the BIO holds no reference.
    func makeBIO() -> OpaquePointer? {
        guard let method = Self.method.pointer, let bio = BIO_new(method) else { return nil }
        BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        BIO_set_init(bio, 1)
        return bio
    }

    /// A `BIO_METHOD`. `@unchecked`: made once, never changed afterwards, never freed.
    private struct Method: @unchecked Sendable {
        let pointer: OpaquePointer?
    }

    private static let method: Method = {
        let type = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
        guard let method = BIO_meth_new(type, "datagrams") else { return Method(pointer: nil) }
        BIO_meth_set_write(method) { bio, bytes, count in
            guard let bio, let bytes, count > 0, let owner = DatagramBIO.owner(of: bio) else { return -1 }
            sora_BIO_clear_retry_flags(bio)
            let start = UnsafeRawPointer(bytes)
            owner.outbound.append([UInt8](UnsafeRawBufferPointer(start: start, count: Int(count))))
            return count
        }
        BIO_meth_set_read(method) { bio, bytes, count in
            guard let bio, let bytes, count > 0, let owner = DatagramBIO.owner(of: bio) else { return -1 }
            sora_BIO_clear_retry_flags(bio)
            guard let datagram = owner.inbound else {
                sora_BIO_set_retry_read(bio)
                return -1
            }
            owner.inbound = nil
            // Like a socket: what does not fit is lost.
            let taken = min(Int(count), datagram.count)
            UnsafeMutableRawPointer(bytes).copyMemory(from: datagram, byteCount: taken)
            return Int32(truncatingIfNeeded: taken)
        }
        BIO_meth_set_ctrl(method) { bio, command, _, _ in
            switch command {
            case BIO_CTRL_FLUSH: return 1
            case BIO_CTRL_DGRAM_QUERY_MTU, BIO_CTRL_DGRAM_GET_FALLBACK_MTU, BIO_CTRL_DGRAM_GET_MTU:
                return bio.flatMap { DatagramBIO.owner(of: $0) }?.maximumDatagramSize ?? 0
            case BIO_CTRL_DGRAM_GET_MTU_OVERHEAD: return DatagramBIO.reservedBytes
            default: return 0  // among them: bytes pending for writing, always none
            }
        }
        return Method(pointer: method)
    }()

    private static func owner(of bio: OpaquePointer) -> DatagramBIO? {
        guard let data = BIO_get_data(bio) else { return nil }
        return Unmanaged<DatagramBIO>.fromOpaque(data).takeUnretainedValue()
    }
}
