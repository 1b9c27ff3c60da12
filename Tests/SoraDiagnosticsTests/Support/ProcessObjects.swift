import TestSupport
import Testing

extension Trait where Self == LeavesNoObjects {
    /// After each test, no object of the doctor and the stack that it made is alive, beside those of the process.
    static var leavesNoObjects: Self {
        // Names are looked up by one resolver of the process.
        .leavesNoObjects(but: ["SoraNetwork.Resolver": 1])
    }
}
