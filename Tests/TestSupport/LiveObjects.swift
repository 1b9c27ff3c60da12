import CLiveObjects
import Dispatch
import Testing

/// Counts the living objects of every class and actor of the SDK and the stack.
///
/// It is exact: the C target `CLiveObjects` stands in the place of the runtime's functions that make and free objects.
/// It counts what the whole process makes between `start` and `stop`, so nothing else may run meanwhile.
package enum LiveObjects {
    /// The modules whose classes count: all that hold Swift code of the product, but for locks, which go with their
    /// owners.
    package static let modules = [
        "LocalSora", "Sora", "SoraClient", "SoraCodecs", "SoraCrypto", "SoraDevices", "SoraDiagnostics", "SoraEmulator",
        "SoraFrames", "SoraHTTP", "SoraICE", "SoraLoad", "SoraMedia", "SoraMessages", "SoraNetwork", "SoraPeer",
        "SoraRTP", "SoraSCTP", "SoraSDP", "SoraSecureTransport", "SoraWebM", "SoraWire",
    ]

    /// Whether tests run one at a time, as `scripts/test.sh` runs the targets that use ``LeavesNoObjects``.
    package static let isAlone = CommandLine.arguments.contains("--no-parallel")

    /// Forgets what is known; what is made from now on counts.
    package static func start() {
        let prefixes = modules.map { Array("\($0).".utf8CString) }
        var pointers: [UnsafePointer<CChar>?] = []
        // The C side keeps a copy of its own.
        func collect(_ index: Int) {
            if index == prefixes.count { return live_objects_start(pointers, pointers.count) }
            prefixes[index].withUnsafeBufferPointer {
                pointers.append($0.baseAddress)
                collect(index + 1)
            }
        }
        collect(0)
    }

    /// What is made from now on does not count.
    package static func stop() { live_objects_stop() }

    /// How many objects were made since the start.
    package static var made: UInt64 { live_objects_made() }

    /// The classes that have living objects, by qualified name, and how many.
    package static var counts: [String: Int] {
        final class Result { var counts: [String: Int] = [:] }
        let result = Result()
        live_objects_each(
            { name, length, count, context in
                guard let name, let context else { return }
                let bytes = UnsafeRawBufferPointer(start: name, count: length)
                let result = Unmanaged<Result>.fromOpaque(context).takeUnretainedValue()
                // Private types stand in a context whose name is an address.
                let className = String(decoding: bytes, as: UTF8.self)
                    .replacing(#/\(unknown context at \$[0-9a-f]+\)\./#, with: "")
                result.counts[className, default: 0] += count
            }, Unmanaged.passUnretained(result).toOpaque())
        return result.counts
    }

    /// Waits until nothing is alive beyond `lasting`, which allows each class so many objects. Blocks; the end of an
    /// object wakes it.
    /// - Returns: What was alive in excess at the end of the time; empty when nothing is.
    package static func leftovers(lasting: [String: Int] = [:], within seconds: Double) -> [String: Int] {
        let deadline = DispatchTime.now() + seconds
        while true {
            let before = live_objects_alive()
            let excess = counts.reduce(into: [String: Int]()) { result, entry in
                let surplus = entry.value - (lasting[entry.key] ?? 0)
                if surplus > 0 { result[entry.key] = surplus }
            }
            let now = DispatchTime.now()
            if excess.isEmpty || before == 0 || now >= deadline { return excess }
            let left = Double(deadline.uptimeNanoseconds - now.uptimeNanoseconds) / 1e9
            _ = live_objects_wait(before - 1, left)
        }
    }
}

/// After each test, no object that the test made is alive: of every class and actor of the SDK and the stack. The
/// suite must be serialized, and alone in its process: in a parallel run (plain `swift test`) nothing is counted.
package struct LeavesNoObjects: TestTrait, SuiteTrait, TestScoping {
    /// Objects that belong to the process, not to a connection, and may be made by the first test that needs them:
    /// qualified class name and how many.
    let lasting: [String: Int]
    /// How long what a test began may take to end, for instance a farewell to a server; in seconds.
    let patience: Double
    /// Makes objects of the process before anything counts, so that a second one of the class is noticed.
    let prepare: @Sendable () -> Void

    package init(
        lasting: [String: Int] = [:], patience: Double = 10 * RealTime.factor,
        prepare: @escaping @Sendable () -> Void = {}
    ) {
        self.lasting = lasting
        self.patience = patience
        self.prepare = prepare
    }

    package var isRecursive: Bool { true }

    package func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { testCase == nil ? nil : self }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard LiveObjects.isAlone else { return try await function() }
        prepare()
        LiveObjects.start()
        defer { LiveObjects.stop() }
        try await function()
        let (lasting, patience) = (lasting, patience)
        let excess = await withCheckedContinuation { continuation in
            // A thread of its own: waiting must not keep tasks from ending.
            DispatchQueue(label: "live objects").async {
                continuation.resume(returning: LiveObjects.leftovers(lasting: lasting, within: patience))
            }
        }
        guard !excess.isEmpty else { return }
        let list = excess.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key)" }.joined(separator: ", ")
        Issue.record("alive after the test: \(list)", sourceLocation: test.sourceLocation)
    }
}

extension Trait where Self == LeavesNoObjects {
    /// After each test, no object of the SDK and the stack that it made is alive, beside so many of each class of
    /// `lasting`, and those that `prepare` makes.
    package static func leavesNoObjects(
        but lasting: [String: Int], prepare: @escaping @Sendable () -> Void = {}
    ) -> Self { LeavesNoObjects(lasting: lasting, prepare: prepare) }
}
