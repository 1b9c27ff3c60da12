import TestSupport
import Testing

extension Trait where Self == LeavesNoObjects {
    /// After each test, no object of the server and the stack that it made is alive, beside those that belong to the
    /// process: the first test that needs them makes them, and all that come later share them.
    static var leavesNoObjects: Self {
        .leavesNoObjects(but: [
            // The thread pool for names.
            "SoraNetwork.Resolver": 1,
            // The identity of all simulated clients, and that of all channels without a server.
            "SoraSecureTransport.DTLSCertificate": 2, "SoraSecureTransport.SharedContext": 2,
        ])
    }
}
