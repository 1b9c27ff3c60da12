/// A method that the server offers over the `rpc` data channel. Applications define methods that the SDK does not
/// know yet by conforming a type of their own.
public protocol RPCMethodProtocol {
    /// What a call is given.
    associatedtype Params: Encodable
    /// What a call returns.
    associatedtype Result: Decodable
    /// The name on the wire, for instance `2025.2.0/RequestSimulcastRid`.
    static var name: String { get }
}

/// A method whose parameters and result may cross actors.
public protocol SendableRPCMethodProtocol: RPCMethodProtocol where Params: Sendable, Result: Sendable {}
