import CLinux
import Glibc

/// Threads for what must not run on an event loop or on the cooperative pool.
enum Thread {
    /// Starts a thread that the caller must join or detach.
    static func start(name: String, _ body: @escaping @Sendable () -> Void) throws(NetworkError) -> pthread_t {
        let context = Unmanaged.passRetained(Start(name: name, body: body))
        var handle = pthread_t()
        let code = pthread_create(
            &handle, nil,
            { argument in
                guard let argument else { return nil }
                // Balances passRetained: pthread_create hands the pointer over exactly once.
                let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                clinux_set_thread_name(start.name)
                start.body()
                return nil
            }, context.toOpaque())
        guard code == 0 else {
            context.release()
            throw .system(call: "pthread_create", code: code)
        }
        return handle
    }

    private final class Start: Sendable {
        let name: String
        let body: @Sendable () -> Void
        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }
}
