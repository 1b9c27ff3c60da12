import SoraWire

/// A one-way link that carries packets: put in with ``send(_:size:now:)``, taken out with ``receive(now:)`` when their
/// time has come. Owns no clock.
package struct EmulatedLink<Packet> {
    private var scheduler: LinkScheduler
    private var flights = FlightQueue<Packet>()

    /// `link` tells links of one seed apart.
    package init(_ conditions: LinkConditions = .perfect, seed: UInt64, link: UInt64 = 0) {
        scheduler = LinkScheduler(conditions, seed: seed, link: link)
    }

    /// May be changed at any time; holds for packets sent afterwards.
    package var conditions: LinkConditions {
        get { scheduler.conditions }
        set { scheduler.conditions = newValue }
    }

    package var counts: LinkScheduler.Counts { scheduler.counts }

    /// Packets on their way.
    package var inFlight: Int { flights.count }

    /// Puts a packet of `size` bytes on its way, if the link does not lose it.
    package mutating func send(_ packet: Packet, size: Int, now: Instant) {
        for arrival in scheduler.arrivals(size: size, now: now) { flights.insert(packet, at: arrival) }
    }

    /// When the next packet arrives; nil if none is on its way.
    package var nextTimeout: Instant? { flights.earliest }

    /// The next packet that has arrived at `now`, in order of arrival; nil if none has.
    package mutating func receive(now: Instant) -> Packet? { flights.pop(now: now) }
}

extension EmulatedLink where Packet == [UInt8] {
    /// Puts a packet on its way, if the link does not lose it.
    package mutating func send(_ packet: [UInt8], now: Instant) { send(packet, size: packet.count, now: now) }
}

/// Things that happen at known times, earliest first, those of equal time in order of insertion: a binary heap.
struct FlightQueue<Element> {
    private struct Entry {
        var time: Instant
        var order: UInt64
        var element: Element
        func isBefore(_ other: Entry) -> Bool { (time, order) < (other.time, other.order) }
    }
    private var heap: [Entry] = []
    private var nextOrder: UInt64 = 0

    var count: Int { heap.count }
    var earliest: Instant? { heap.first?.time }

    mutating func insert(_ element: Element, at time: Instant) {
        heap.append(Entry(time: time, order: nextOrder, element: element))
        nextOrder += 1
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].isBefore(heap[parent]) else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// The earliest element if its time has come.
    mutating func pop(now: Instant) -> Element? {
        guard let first = heap.first, first.time <= now else { return nil }
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].isBefore(heap[least])
            {
                least = child
            }
            guard least != parent else { break }
            heap.swapAt(parent, least)
            parent = least
        }
        return first.element
    }
}
