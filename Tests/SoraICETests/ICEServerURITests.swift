import Testing

@testable import SoraICE

/// ICE11
@Suite struct ICEServerURITests {
    @Test func defaultsFollowTheScheme() throws {
        let expected: [(String, Bool, String, UInt16, ICEServerTransport)] = [
            ("stun:stun.example.org", false, "stun.example.org", 3478, .udp),
            ("stuns:stun.example.org", false, "stun.example.org", 5349, .tls),
            ("turn:192.0.2.1:3479?transport=udp", true, "192.0.2.1", 3479, .udp),
            ("turn:relay.example.com", true, "relay.example.com", 3478, .udp),
            ("turn:relay.example.com?transport=tcp", true, "relay.example.com", 3478, .tcp),
            ("turns:relay.example.com?transport=tcp", true, "relay.example.com", 5349, .tls),
            ("turns:relay.example.com:443", true, "relay.example.com", 443, .tls),
            ("turn:[2001:db8::5]", true, "2001:db8::5", 3478, .udp),
            ("TURN:[2001:db8::5]:99?transport=TCP", true, "2001:db8::5", 99, .tcp),
        ]
        for (text, isTURN, host, port, transport) in expected {
            let uri = try ICEServerURI(parsing: text)
            #expect(uri == ICEServerURI(isTURN: isTURN, host: host, port: port, transport: transport), "\(text)")
            #expect(try ICEServerURI(parsing: uri.description) == uri)
        }
    }

    @Test(arguments: [
        "", "turn", "turn:", "http://example.org", "turn:a:b:c", "turn:2001:db8::5", "turn:[2001:db8::5",
        "turn:[192.0.2.1]",
        "turn:[::1]x", "turn:host:0", "turn:host:65536", "turn:host:+1", "turn:host:", "turn:host?transport=sctp",
        "turn:host?a=b",
        "turn:host?", "stun:host?transport=udp", "turns:host?transport=udp", "turn://host", "turn:user@host",
        "turn:ho st",
        "turn:host?transport=tcp&x=1",
    ])
    func othersAreRefusedWithAReason(_ text: String) {
        #expect(throws: ICEError.self) { try ICEServerURI(parsing: text) }
    }

    @Test func turnNeedsCredentialsAndStunDoesNot() throws {
        #expect(throws: ICEError.missingTURNCredentials(uri: "turn:a.example:3478?transport=udp")) {
            try ICEServer(url: "turn:a.example", username: nil, credential: nil)
        }
        #expect(throws: ICEError.self) { try ICEServer(url: "turn:a.example", username: "", credential: "x") }
        #expect(try ICEServer(url: "stun:a.example", username: nil, credential: nil).uri.host == "a.example")
        #expect(try ICEServer(url: "turn:a.example", username: "u", credential: "p").credential == "p")
    }

    @Test func noPrefixTraps() {
        let text = "turns:[2001:db8::5]:5349?transport=tcp"
        for length in 0...text.count { _ = try? ICEServerURI(parsing: String(text.prefix(length))) }
    }
}
