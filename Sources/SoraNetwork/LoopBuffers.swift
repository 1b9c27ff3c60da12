/// The memory that sockets of one loop read into and write from. One set per loop suffices: a read or
/// write is over before the next begins. Pages that are never touched cost nothing.
final class LoopBuffers {
    /// Slots of one batched UDP read.
    static let slots = 32
    /// Bytes of a slot: the largest datagram, or a run of equal-sized ones that the kernel joined.
    static let slotSize = 65_536
    /// Bytes of one batched UDP write.
    static let sendSize = 512 * 1024
    /// Bytes of one stream read.
    static let streamSize = 65_536

    let receive = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: slots * slotSize)
    let send = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: sendSize)
    let stream = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: streamSize)

    deinit {
        receive.deallocate()
        send.deallocate()
        stream.deallocate()
    }
}
