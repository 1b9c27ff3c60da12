import CLinux
import Glibc
import SoraLocking
import SoraWire

/// Resolves host names with the system's resolver (`getaddrinfo`, so /etc/hosts, mDNS and search domains
/// count), on threads of its own: at most four, which end when nothing is left to do.
package final class Resolver: Sendable {
    /// The process's resolver.
    package static let shared = Resolver()

    /// Looks a name up, blocking. Throws ``NetworkError/nameNotFound(name:reason:)``.
    package typealias Lookup = @Sendable (_ name: String) throws(NetworkError) -> [IPAddress]

    private struct State {
        var waiting: [@Sendable () -> Void] = []
        var threads = 0
    }
    private let state = Locked(State())
    private let lookup: Lookup
    private static let maximumThreads = 4

    /// - Parameter lookup: Replaces the system's resolver, for tests.
    package init(lookup: @escaping Lookup = Resolver.system) {
        self.lookup = lookup
    }

    /// Resolves `name`, which may be an IP address in text form (with or without brackets).
    ///
    /// `completion` is called once, on the loop and never before this call has returned, with at least
    /// one address or an error; not at all after ``Resolution/cancel()``. The lookup itself cannot be
    /// interrupted: its thread goes on and its result is dropped.
    /// - Parameter deadline: When to answer ``NetworkError/timedOut(stage:)``.
    @discardableResult
    package func resolve(
        _ name: String, on loop: EventLoop, deadline: Instant? = nil,
        completion: @escaping (Result<[IPAddress], NetworkError>) -> Void
    ) -> Resolution {
        loop.assertOnLoop()
        loop.nextResolution += 1
        let id = loop.nextResolution
        let resolution = Resolution(loop: loop, id: id, completion: completion)
        loop.resolutions[id] = resolution
        let deliver: @Sendable (Result<[IPAddress], NetworkError>) -> Void = { result in
            loop.execute { loop.resolutions[id]?.finish(result) }
        }
        let bare = name.hasPrefix("[") && name.hasSuffix("]") ? String(name.dropFirst().dropLast()) : name
        if let address = IPAddress(bare) {
            deliver(.success([address]))
            return resolution
        }
        if let deadline {
            resolution.timer = loop.scheduleTimer(at: deadline) { [weak resolution] in
                resolution?.finish(.failure(.timedOut(stage: "resolving \(name)")))
            }
        }
        start { [lookup] in
            do throws(NetworkError) {
                let addresses = try lookup(name)
                deliver(
                    addresses.isEmpty ? .failure(.nameNotFound(name: name, reason: "no address")) : .success(addresses))
            } catch {
                deliver(.failure(error))
            }
        }
        return resolution
    }

    private func start(_ work: @escaping @Sendable () -> Void) {
        let startsThread = state.withLock { state in
            state.waiting.append(work)
            guard state.threads < Self.maximumThreads else { return false }
            state.threads += 1
            return true
        }
        guard startsThread else { return }
        do throws(NetworkError) {
            _ = pthread_detach(try Thread.start(name: "sora-resolver") { self.work() })
        } catch {
            // No thread to be had: another one takes the work, or the next call tries again, or the
            // deadline ends the wait.
            state.withLock { $0.threads -= 1 }
        }
    }

    private func work() {
        while true {
            let next = state.withLock { state -> (@Sendable () -> Void)? in
                if state.waiting.isEmpty {
                    state.threads -= 1
                    return nil
                }
                return state.waiting.removeFirst()
            }
            guard let next else { return }
            next()
        }
    }

    /// `getaddrinfo` for both families, without duplicates, in its order (RFC 6724).
    package static let system: Lookup = { name throws(NetworkError) in
        var found = [clinux_address](repeating: clinux_address(), count: 64)
        var failure: Int32 = 0
        let count = Int(clinux_resolve(name, &found, Int32(found.count), &failure))
        if failure != 0 {
            let reason = clinux_resolve_error(failure).map { String(cString: $0) } ?? "error \(failure)"
            throw .nameNotFound(name: name, reason: reason)
        }
        var addresses: [IPAddress] = []
        for entry in found[..<count] where !addresses.contains(entry.socketAddress.ip) {
            addresses.append(entry.socketAddress.ip)
        }
        return addresses
    }
}

/// A name resolution under way. Confined to its loop, which keeps it until it ends.
package final class Resolution {
    private unowned let loop: EventLoop
    private let id: UInt64
    private var completion: ((Result<[IPAddress], NetworkError>) -> Void)?
    fileprivate var timer: LoopTimer?

    init(loop: EventLoop, id: UInt64, completion: @escaping (Result<[IPAddress], NetworkError>) -> Void) {
        self.loop = loop
        self.id = id
        self.completion = completion
    }

    /// The completion will not be called.
    package func cancel() {
        loop.assertOnLoop()
        end()
    }

    fileprivate func finish(_ result: Result<[IPAddress], NetworkError>) {
        let completion = completion
        end()
        completion?(result)
    }

    private func end() {
        completion = nil
        timer?.cancel()
        timer = nil
        loop.resolutions[id] = nil
    }
}
