import SoraEmulator
import SoraWire

/// The bad network of one connection, both ways.
struct Impairment {
    private(set) var upload: EmulatedLink<Datagram>
    private(set) var download: EmulatedLink<Datagram>
    private var conditions: (upload: Fault.NetworkConditions, download: Fault.NetworkConditions)
    private var random: RandomSource

    init(upload: Fault.NetworkConditions, download: Fault.NetworkConditions, random: RandomSource) {
        var random = random
        let seed = random.next()
        self.upload = EmulatedLink(upload.link, seed: seed, link: 0)
        self.download = EmulatedLink(download.link, seed: seed, link: 1)
        conditions = (upload, download)
        self.random = random
    }

    mutating func change(upload: Fault.NetworkConditions, download: Fault.NetworkConditions) {
        conditions = (upload, download)
        self.upload.conditions = upload.link
        self.download.conditions = download.link
    }

    mutating func sendUp(_ datagram: Datagram, now: Instant) {
        upload.send(corrupted(datagram, conditions.upload.corruption), size: datagram.payload.count, now: now)
    }

    mutating func sendDown(_ datagram: Datagram, now: Instant) {
        download.send(corrupted(datagram, conditions.download.corruption), size: datagram.payload.count, now: now)
    }

    mutating func receiveUp(now: Instant) -> Datagram? { upload.receive(now: now) }
    mutating func receiveDown(now: Instant) -> Datagram? { download.receive(now: now) }

    var nextTimeout: Instant? {
        guard let up = upload.nextTimeout else { return download.nextTimeout }
        return min(up, download.nextTimeout ?? .distantFuture)
    }

    private mutating func corrupted(_ datagram: Datagram, _ share: Double) -> Datagram {
        guard share > 0, !datagram.payload.isEmpty, Double.random(in: 0..<1, using: &random) < share else {
            return datagram
        }
        var datagram = datagram
        let index = Int.random(in: datagram.payload.indices, using: &random)
        datagram.payload[index] ^= UInt8.random(in: 1...255, using: &random)
        return datagram
    }
}

extension Fault.NetworkConditions {
    var link: LinkConditions {
        LinkConditions(
            delay: delay, jitter: jitter, loss: loss, meanLossBurst: meanLossBurst, reordering: reordering,
            duplication: duplication, bitsPerSecond: kilobitsPerSecond.map { $0 &* 1000 })
    }

    static var dead: Fault.NetworkConditions {
        var conditions = Fault.NetworkConditions()
        conditions.loss = 1
        return conditions
    }
}
