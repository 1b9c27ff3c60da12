import CLinux
import SoraWire
import Testing

@testable import SoraNetwork

@Suite struct UDPSendPlannerTests {
    /// What the kernel would send for a plan, by destination port.
    private func sent(_ planner: UDPSendPlanner, _ buffer: UnsafeMutableBufferPointer<UInt8>) -> [UInt16: [[UInt8]]] {
        var result: [UInt16: [[UInt8]]] = [:]
        for message in planner.messages {
            let pieces = planner.pieces[Int(message.first_piece)..<Int(message.first_piece + message.piece_count)]
            var whole: [UInt8] = []
            for piece in pieces { whole += buffer[Int(piece.offset)..<Int(piece.offset + piece.length)] }
            guard message.segment > 0 else {
                result[message.to.port, default: []].append(whole)
                continue
            }
            for start in stride(from: 0, to: whole.count, by: Int(message.segment)) {
                result[message.to.port, default: []].append(
                    Array(whole[start..<min(start + Int(message.segment), whole.count)]))
            }
        }
        return result
    }

    @Test(arguments: [true, false]) func everyPlanSendsExactlyItsDatagramsInOrder(_ segments: Bool) {
        let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 100_000)
        defer { buffer.deallocate() }
        var random = RandomSource(seed: 42)
        var planner = UDPSendPlanner()
        for _ in 0..<400 {
            let sizes = [0, 1, 100, 100, 100, 100, 1200, 1200, 1300, 20_000]
            let queue = (0..<Int.random(in: 1...300, using: &random)).map { index in
                let size = sizes[Int.random(in: 0..<sizes.count, using: &random)]
                return Datagram(
                    socket: SocketID(0),
                    remote: SocketAddress(.loopbackV4, port: UInt16.random(in: 1...4, using: &random)),
                    payload: [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: size))
            }
            let taken = planner.plan(queue, into: buffer, segments: segments)
            #expect(taken > 0)
            let seen = sent(planner, buffer)
            for port: UInt16 in 1...4 {
                #expect(seen[port] ?? [] == queue[..<taken].filter { $0.remote.port == port }.map(\.payload))
            }
            for message in planner.messages {
                #expect(segments || message.segment == 0)
                #expect(message.segment == 0 ? message.piece_count == 1 : message.piece_count <= 64)
            }
            // From any message on, exactly the rest is unsent.
            let all = planner.datagramIndices(fromMessage: 0)
            #expect(all.sorted() == Array(0..<taken))
            var gone = 0
            for number in planner.messages.indices {
                #expect(planner.datagramIndices(fromMessage: number).count == taken - gone)
                gone += planner.datagramCount(ofMessage: number)
            }
        }
    }

    @Test func anEqualSizedRunIsOneMessage() {
        let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 100_000)
        defer { buffer.deallocate() }
        var planner = UDPSendPlanner()
        let queue = (0..<40).map { index in
            Datagram(
                socket: SocketID(0), remote: SocketAddress(.loopbackV4, port: 1),
                payload: [UInt8](repeating: 1, count: index == 39 ? 7 : 1200))
        }
        #expect(planner.plan(queue, into: buffer, segments: true) == 40)
        #expect(planner.messages.count == 1)
        #expect(planner.messages[0].segment == 1200)
        // A message never exceeds what UDP can carry.
        let large = (0..<60).map { _ in
            Datagram(
                socket: SocketID(0), remote: SocketAddress(.loopbackV4, port: 1),
                payload: [UInt8](repeating: 1, count: 1400))
        }
        #expect(planner.plan(large, into: buffer, segments: true) == 60)
        #expect(planner.messages.map(\.piece_count) == [46, 14])
    }
}
