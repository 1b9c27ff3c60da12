import TestSupport
import Testing

extension Trait where Self == LeavesNoObjects {
    /// After each test, no object of the stack that it made is alive, beside those that belong to the process.
    static var leavesNoObjects: Self {
        .leavesNoObjects(but: [
            // The two identities that all pairs of these tests share.
            "SoraSecureTransport.DTLSCertificate": 2, "SoraSecureTransport.SharedContext": 2,
        ])
    }
}
