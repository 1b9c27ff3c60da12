import Foundation

/// An error as a value. Only ``message`` is dependable; ``domain`` and ``code`` may change between versions.
public struct SoraEventError: Sendable, Equatable {
    /// Qualified name of the error's type, as bridging to `NSError` gives it.
    public let domain: String
    /// The number that bridging to `NSError` assigns.
    public let code: Int
    /// `localizedDescription` of the error.
    public let message: String

    init(_ error: any Error) {
        let bridged = error as NSError
        domain = bridged.domain
        code = bridged.code
        message = error.localizedDescription
    }
}
