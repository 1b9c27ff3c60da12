import CLinux
import Dispatch
import SoraNetwork
import SoraWire
import Testing

@Suite struct StreamDialerTests {
    private enum Outcome: Sendable {
        case opened(SocketAddress, isTLS: Bool)
        case failed(StreamDialer.Failure)
    }

    private func dial(
        _ target: @Sendable @escaping (EventLoop) throws -> StreamDialer.Target, resolver: Resolver = .shared,
        within: Duration = .seconds(5)
    ) async throws -> Outcome {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<Outcome>()
        try await lab.run { loop in
            _ = StreamDialer(try target(loop), on: loop, resolver: resolver, deadline: loop.now + within) { result in
                switch result {
                case .success(let stream): inbox.put(.opened(stream.remoteAddress, isTLS: stream is TLSConnection))
                case .failure(let failure): inbox.put(.failed(failure))
                }
            }
        }
        return try await inbox.next()
    }

    private func fixed(_ addresses: [String]) -> Resolver {
        let parsed = addresses.compactMap { IPAddress($0) }
        return Resolver { _ throws(NetworkError) in parsed }
    }

    @Test func opensByNameThroughTheSystemsResolver() async throws {
        let outcome = try await dial { loop in
            .init(host: "localhost", port: try TCPTests.startEcho(on: loop).port)
        }
        guard case .opened(let address, false) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(address.ip == .loopbackV4)
    }

    @Test(arguments: ["::1", "[::1]"]) func opensByAddress(_ host: String) async throws {
        let outcome = try await dial { loop in
            .init(host: host, port: try TCPTests.startEcho(on: loop, at: SocketAddress(.loopbackV6, port: 0)).port)
        }
        guard case .opened(let address, false) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(address.ip == .loopbackV6)
    }

    @Test func theNextAddressIsTriedAtOnceWhenOneFails() async throws {
        let outcome = try await dial(
            { loop in .init(host: "many", port: try TCPTests.startEcho(on: loop).port) },
            resolver: fixed(["::1", "127.0.0.2", "::1", "127.0.0.1"]))
        guard case .opened(let address, _) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(address.ip == .loopbackV4)
    }

    @Test func aSilentAddressIsOvertakenAfterTheStagger() async throws {
        // 127.0.0.9 accepts nothing: its backlog of one is full.
        var address = clinux_address()
        address.family = 4
        address.v4 = 0x7F00_0009
        let silent = clinux_tcp_listen(&address, 0, 0)
        #expect(silent >= 0)
        defer { _ = clinux_close(silent) }
        _ = clinux_local_address(silent, &address)
        let port = address.port
        let lab = try LoopActor()
        defer { lab.stop() }
        let filled = Inbox<Int>()
        try await lab.run { loop in
            let filler = try TCPConnection(on: loop, to: SocketAddress(.v4(0x7F00_0009), port: port))
            filler.onEvent = { if case .opened = $0 { filled.put(1) } }
        }
        _ = try await filled.next()
        let start = EventLoop.clock()
        let outcome = try await dial(
            { loop in
                .init(
                    host: "two", port: try TCPTests.startEcho(on: loop, at: SocketAddress(.loopbackV4, port: port)).port
                )
            }, resolver: fixed(["127.0.0.9", "127.0.0.1"]))
        guard case .opened(let address, _) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(address.ip == .loopbackV4)
        #expect(EventLoop.clock() - start >= StreamDialer.stagger)
    }

    @Test func stagesOfFailureAreToldApart() async throws {
        let unknown = try await dial { _ in .init(host: "no-such-host.invalid", port: 1) }
        guard case .failed(let failure) = unknown, failure.stage == .dns, case .nameNotFound = failure.error else {
            Issue.record("\(unknown)")
            return
        }
        let refused = try await dial { loop in
            let listener = try TCPListener(on: loop, address: loopback)
            listener.close()
            return .init(host: "127.0.0.1", port: listener.localAddress.port)
        }
        guard case .failed(let failure) = refused, failure.stage == .tcp, case .refused = failure.error else {
            Issue.record("\(refused)")
            return
        }
        let server = try TLSContext(server: .init(identity: Authority.server(["elsewhere.example"])))
        let client = try Authority.trusting(Authority.root)
        let wrong = try await dial { loop in
            .init(host: "localhost", port: try startTLSEcho(on: loop, server).port, tls: client)
        }
        guard case .failed(let failure) = wrong, failure.stage == .tls else {
            Issue.record("\(wrong)")
            return
        }
        #expect(failure.error == .tls(.wrongName(expected: "localhost")))
        let right = try await dial { loop in
            .init(
                host: "localhost", port: try startTLSEcho(on: loop, server).port, tls: client,
                serverName: "elsewhere.example")
        }
        guard case .opened(_, true) = right else {
            Issue.record("\(right)")
            return
        }
    }

    @Test func aSlowResolverTimesOutAtItsStage() async throws {
        let release = DispatchSemaphore(value: 0)
        let slow = Resolver { _ throws(NetworkError) in
            release.wait()
            return [.loopbackV4]
        }
        let outcome = try await dial({ _ in .init(host: "slow", port: 1) }, resolver: slow, within: .milliseconds(40))
        release.signal()
        guard case .failed(let failure) = outcome, failure.stage == .dns, case .timedOut = failure.error else {
            Issue.record("\(outcome)")
            return
        }
    }

    // LIF4: a dial that is given up leaves nothing open and says nothing.
    @Test func cancellingClosesEverythingInEveryStage() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<String>()
        let again = Confined<LoopTimer?>(nil)
        let server = try TLSContext(server: .init(identity: Authority.server(["localhost"])))
        let client = try Authority.trusting(Authority.root)
        try await lab.run { loop in
            let target = try startTLSEcho(on: loop, server)
            for microseconds in stride(from: 0, through: 20_000, by: 200) {
                let dialer = StreamDialer(
                    .init(host: "localhost", port: target.port, tls: client), on: loop, deadline: loop.now + .seconds(5)
                ) { result in
                    if case .success(let stream) = result { stream.close() }
                }
                loop.scheduleTimer(at: loop.now + .microseconds(microseconds)) { dialer.cancel() }
            }
            // The servers' ends go when they hear of it.
            let check = LoopTimer(on: loop) {
                guard loop.pendingTimerCount == 0 else {
                    again.value?.schedule(at: loop.now + .milliseconds(5))
                    return
                }
                again.value = nil
                inbox.put("clean")
            }
            again.value = check
            check.schedule(at: loop.now + .milliseconds(25))
        }
        #expect(try await inbox.next() == "clean")
    }

    @Test func resolutionsAreAnsweredOnceOrNotAtAll() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<String>()
        await lab.run { loop in
            for index in 0..<40 {
                let resolution = Resolver.shared.resolve("localhost", on: loop) { result in
                    switch result {
                    case .success(let addresses): inbox.put(addresses.contains(.loopbackV4) ? "\(index)" : "wrong")
                    case .failure(let error): inbox.put("\(error)")
                    }
                }
                if index % 2 == 1 { resolution.cancel() }
            }
        }
        let seen = try await inbox.collect { $0.count == 20 }
        #expect(Set(seen) == Set(stride(from: 0, to: 40, by: 2).map { "\($0)" }))
        #expect(inbox.waiting == 0)
    }

    @Test func familiesAlternateFromTheFirst() async throws {
        // Nobody listens on any: the order is that of the refusals' first.
        let order = Inbox<StreamDialer.Failure>()
        let lab = try LoopActor()
        defer { lab.stop() }
        let resolver = fixed(["127.0.0.3", "127.0.0.4", "::1"])
        try await lab.run { loop in
            let listener = try TCPListener(on: loop, address: loopback)
            listener.close()
            let port = listener.localAddress.port
            StreamDialer(.init(host: "h", port: port), on: loop, resolver: resolver, deadline: loop.now + .seconds(5)) {
                if case .failure(let failure) = $0 { order.put(failure) }
            }
        }
        let failure = try await order.next()
        guard case .refused(let address) = failure.error else {
            Issue.record("\(failure)")
            return
        }
        #expect(address.ip == IPAddress("127.0.0.3"))
    }
}
