/// An HTTP proxy for signaling and for TURN over TCP and TLS.
public struct Proxy: CustomStringConvertible, Sendable {
    let host: String
    let port: Int
    let agent: String
    let username: String?
    let password: String?

    /// - Parameters:
    ///   - host: name or address of the proxy.
    ///   - port: its port.
    ///   - agent: User-Agent of the CONNECT request; the SDK's name and version if nil.
    ///   - username: sent when the proxy asks for it, by Basic or Digest authentication.
    ///   - password: belongs to the user name.
    public init(host: String, port: Int, agent: String? = nil, username: String? = nil, password: String? = nil) {
        self.host = host
        self.port = port
        self.agent = agent ?? SDKInfo.product
        self.username = username
        self.password = password
    }

    /// The settings with the password's letters replaced by `*`.
    public var description: String {
        let stars = String(repeating: "*", count: password?.count ?? 0)
        return "host=\(host) port=\(port) agent=\(agent) username=\(username ?? "") password=\(stars)"
    }
}
