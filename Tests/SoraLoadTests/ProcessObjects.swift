import TestSupport
import Testing

extension Trait where Self == LeavesNoObjects {
    /// After each test, no object of the load, the server and the stack that it made is alive, beside those that
    /// belong to the process.
    static var leavesNoObjects: Self {
        .leavesNoObjects(but: [
            // The thread pool for names.
            "SoraNetwork.Resolver": 1
        ])
    }
}
