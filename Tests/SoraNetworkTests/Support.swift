import Foundation
import SoraLocking
import SoraNetwork
import SoraWire

/// A loop with an actor pinned to it: the pattern in which drivers own sockets.
actor LoopActor {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init() throws { loop = try EventLoop(name: "test-loop") }

    /// Runs `body` on the loop. What it makes there and only hands to handlers stays on the loop.
    func run<T: Sendable>(_ body: @Sendable (EventLoop) throws -> T) rethrows -> T { try body(loop) }

    nonisolated func stop() { loop.stop() }
}

/// Carries loop-confined objects from one `LoopActor.run` to the next.
// Unchecked: `value` is touched only inside `LoopActor.run`, that is by the loop's thread.
final class Confined<Value>: @unchecked Sendable {
    var value: Value
    init(_ value: Value) { self.value = value }
}

struct TimedOut: Error, CustomStringConvertible {
    var description: String
}

/// Values from handlers, awaited by a test with a bound.
final class Inbox<Element: Sendable>: Sendable {
    private struct State {
        var values: [Element] = []
        var waiter: CheckedContinuation<Element?, Never>?
        var ticket = 0
    }
    private let state = Locked(State())

    func put(_ value: Element) {
        let waiter = state.withLock { state -> CheckedContinuation<Element?, Never>? in
            guard let waiter = state.waiter else {
                state.values.append(value)
                return nil
            }
            state.waiter = nil
            return waiter
        }
        waiter?.resume(returning: value)
    }

    /// The next value; throws after `bound`.
    func next(within bound: Duration = .seconds(60), _ what: String = "a value") async throws -> Element {
        let value = await withCheckedContinuation { continuation in
            let (ready, ticket) = state.withLock { state -> (Element?, Int) in
                state.ticket += 1
                if !state.values.isEmpty { return (state.values.removeFirst(), state.ticket) }
                state.waiter = continuation
                return (nil, state.ticket)
            }
            if let ready { return continuation.resume(returning: ready) }
            Task {
                try? await Task.sleep(for: bound)
                let waiter = state.withLock { state -> CheckedContinuation<Element?, Never>? in
                    guard state.ticket == ticket else { return nil }
                    defer { state.waiter = nil }
                    return state.waiter
                }
                waiter?.resume(returning: nil)
            }
        }
        guard let value else { throw TimedOut(description: "no \(what) within \(bound)") }
        return value
    }

    /// Collects until `isComplete`.
    func collect(_ isComplete: ([Element]) -> Bool) async throws -> [Element] {
        var all: [Element] = []
        while !isComplete(all) { all.append(try await next()) }
        return all
    }

    var waiting: Int { state.withLock { $0.values.count } }
}

/// Threads and descriptors of this process, named so that other suites running at the same time do not
/// disturb the count.
enum Resources {
    static func threads(named name: String) -> Int {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        return tasks.count { task in
            let comm = try? String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8)
            return comm?.trimmingCharacters(in: .newlines) == name
        }
    }

    static func descriptors() -> Int {
        ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []).count
    }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

let loopback = SocketAddress(.loopbackV4, port: 0)
