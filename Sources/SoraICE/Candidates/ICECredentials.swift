import SoraWire

/// User name fragment and password of one side and one generation (RFC 8839, 5.4).
package struct ICECredentials: Equatable, Sendable, CustomStringConvertible {
    /// 4 to 256 ice-chars.
    package var usernameFragment: String
    /// 22 to 256 ice-chars.
    package var password: String

    package init(usernameFragment: String, password: String) {
        self.usernameFragment = usernameFragment
        self.password = password
    }

    /// Fresh ones: 48 bits of fragment and 144 bits of password.
    package init(random: inout RandomSource) {
        usernameFragment = random.string(8, from: ICECredentials.alphabet)
        password = random.string(24, from: ICECredentials.alphabet)
    }

    /// True if both have the lengths and characters that RFC 8839, 5.4 allows.
    package var isWellFormed: Bool {
        (4...256).contains(usernameFragment.utf8.count) && (22...256).contains(password.utf8.count)
            && usernameFragment.utf8.allSatisfy(ICECredentials.isICECharacter)
            && password.utf8.allSatisfy(ICECredentials.isICECharacter)
    }

    static func isICECharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2F: true
        default: false
        }
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")

    /// Never shows the password.
    package var description: String { "\(usernameFragment):***" }
}
