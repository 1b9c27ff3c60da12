/// The server's answer to a call.
public struct RPCResponse<Result> {
    /// Always `2.0`.
    public let jsonrpc: String
    /// The number of the call on its transport.
    public let id: Int
    /// What the method returned.
    public let result: Result

    /// A response, for tests of an application.
    public init(id: Int, result: Result) {
        jsonrpc = "2.0"
        self.id = id
        self.result = result
    }
}

/// The server's answer to a call, for results that may cross actors.
public struct SendableRPCResponse<Result: Sendable>: Sendable {
    /// Always `2.0`.
    public let jsonrpc: String
    /// The number of the call on its transport.
    public let id: Int
    /// What the method returned.
    public let result: Result

    /// A response, for tests of an application.
    public init(id: Int, result: Result) {
        jsonrpc = "2.0"
        self.id = id
        self.result = result
    }
}

/// The `error` object of an answer (JSON-RPC 2.0, 5.1).
public struct RPCErrorDetail: Sendable {
    /// The number of JSON-RPC or of the method.
    public let code: Int
    /// What the server says.
    public let message: String
    /// What else the server says.
    public let data: JSONValue?

    init(code: Int, message: String, data: JSONValue?) {
        self.code = code
        self.message = message
        self.data = data
    }
}
