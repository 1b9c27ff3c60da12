import CLinux
import SoraWire

/// Turns queued datagrams into messages for one batched send: groups by destination, joins equal-sized
/// runs, and copies the bytes into one buffer.
///
/// Invariant: within each destination, the messages carry the datagrams in the order of the queue.
struct UDPSendPlanner {
    /// Kernel limit of segments in one message.
    static let maximumSegments = 64
    /// Largest UDP payload over IPv4.
    static let maximumMessageSize = 65_507
    /// Limits of one call.
    static let maximumMessages = 64
    static let maximumDatagrams = 1024

    private(set) var messages: [clinux_outgoing] = []
    private(set) var pieces: [clinux_piece] = []
    /// Queue index of each piece.
    private var indices: [Int] = []

    /// Plans as much of the front of `queue` as one call takes. Returns how many datagrams that is.
    mutating func plan(
        _ queue: [Datagram], into buffer: UnsafeMutableBufferPointer<UInt8>, segments: Bool
    ) -> Int {
        messages.removeAll(keepingCapacity: true)
        pieces.removeAll(keepingCapacity: true)
        indices.removeAll(keepingCapacity: true)
        let groups = group(queue, capacity: buffer.count)
        var taken = 0
        var offset = 0
        for group in groups {
            var segmentSize = 0
            var isRunOpen = false
            var runBytes = 0
            for index in group {
                let payload = queue[index].payload
                _ = UnsafeMutableBufferPointer(rebasing: buffer[offset...]).update(fromContentsOf: payload)
                let piece = clinux_piece(offset: UInt32(offset), length: UInt32(payload.count))
                offset += payload.count
                taken += 1
                if segments, isRunOpen, payload.count <= segmentSize, !payload.isEmpty,
                    messages[messages.count - 1].piece_count < Self.maximumSegments,
                    runBytes + payload.count <= Self.maximumMessageSize
                {
                    messages[messages.count - 1].piece_count += 1
                    messages[messages.count - 1].segment = UInt32(segmentSize)
                    runBytes += payload.count
                    isRunOpen = payload.count == segmentSize  // a shorter one must be the last
                } else {
                    messages.append(
                        clinux_outgoing(
                            to: clinux_address(queue[index].remote), first_piece: UInt32(pieces.count), piece_count: 1,
                            segment: 0))
                    segmentSize = payload.count
                    runBytes = payload.count
                    isRunOpen = !payload.isEmpty && payload.count <= UInt16.max
                }
                pieces.append(piece)
                indices.append(index)
            }
        }
        return taken
    }

    /// Queue indices of the front of the queue, by destination.
    private func group(_ queue: [Datagram], capacity: Int) -> [[Int]] {
        var groups: [[Int]] = []
        var groupOf: [SocketAddress: Int] = [:]
        var last: (address: SocketAddress, group: Int)?
        var bytes = 0
        for index in 0..<min(queue.count, Self.maximumDatagrams) {
            let datagram = queue[index]
            bytes += datagram.payload.count
            if bytes > capacity && index > 0 { break }
            if let last, last.address == datagram.remote {
                groups[last.group].append(index)
                continue
            }
            let group = groupOf[datagram.remote] ?? groups.count
            if group == groups.count {
                groups.append([])
                groupOf[datagram.remote] = group
            }
            groups[group].append(index)
            last = (datagram.remote, group)
        }
        return groups
    }

    /// Queue indices of all datagrams in messages from number `message` on.
    func datagramIndices(fromMessage message: Int) -> [Int] {
        guard message < messages.count else { return [] }
        return Array(indices[Int(messages[message].first_piece)...])
    }

    func datagramCount(ofMessage message: Int) -> Int {
        message < messages.count ? Int(messages[message].piece_count) : 0
    }
}
