/// Why a WebSocket connection failed, or why a call on it is refused.
package enum WebSocketError: Error, Equatable, Sendable, CustomStringConvertible {
    // What the peer did wrong.
    case reservedBits(UInt8)
    case unknownOpcode(UInt8)
    case fragmentedControlFrame(WebSocketOpcode)
    case oversizedControlFrame(WebSocketOpcode)
    /// A length in a longer form than needed.
    case lengthNotMinimal(UInt64)
    /// A length with its highest bit set.
    case invalidLength(UInt64)
    /// Client frames must be masked, server frames must not.
    case wrongMasking(isMasked: Bool)
    /// A continuation without a message, or a new message within one.
    case misplacedFrame(WebSocketOpcode)
    case invalidUTF8
    case messageTooLarge(limit: Int)
    case tooManyFragments(limit: Int)
    /// A Close frame of one byte.
    case truncatedCloseFrame
    /// A code that must not be sent, such as 1005.
    case forbiddenCloseCode(UInt16)
    // What time or the transport did.
    /// No Close frame came back within the time allowed.
    case closeTimeout
    /// The stream ended without a Close frame.
    case streamEnded
    // What the caller did wrong.
    /// Nothing can be sent: closing has begun.
    case notOpen

    /// The code with which such a failure is told to the peer.
    package var closeCode: UInt16 {
        switch self {
        case .invalidUTF8: 1007
        case .messageTooLarge: 1009
        case .tooManyFragments: 1008
        case .closeTimeout, .streamEnded, .notOpen: 1006
        default: 1002
        }
    }

    package var description: String {
        switch self {
        case .reservedBits(let byte): "WebSocket frame with reserved bits set (first byte 0x\(String(byte, radix: 16)))"
        case .unknownOpcode(let opcode): "WebSocket frame with unknown opcode \(opcode)"
        case .fragmentedControlFrame(let opcode): "fragmented WebSocket \(opcode) frame"
        case .oversizedControlFrame(let opcode): "WebSocket \(opcode) frame longer than 125 bytes"
        case .lengthNotMinimal(let length): "WebSocket frame length \(length) in an overlong form"
        case .invalidLength(let length): "WebSocket frame length \(length) is out of range"
        case .wrongMasking(let isMasked):
            isMasked ? "WebSocket frame of a server is masked" : "WebSocket frame of a client is not masked"
        case .misplacedFrame(let opcode): "WebSocket \(opcode) frame at a place where none may stand"
        case .invalidUTF8: "WebSocket text is not valid UTF-8"
        case .messageTooLarge(let limit): "WebSocket message is longer than \(limit) bytes"
        case .tooManyFragments(let limit): "WebSocket message comes in more than \(limit) fragments"
        case .truncatedCloseFrame: "WebSocket Close frame of one byte"
        case .forbiddenCloseCode(let code): "WebSocket close code \(code) must not be sent; use 1000 or 3000...4999"
        case .closeTimeout: "the peer did not answer the WebSocket Close frame in time"
        case .streamEnded: "the connection ended without a WebSocket Close frame"
        case .notOpen: "the WebSocket is closing or closed; nothing more can be sent"
        }
    }
}

/// How a WebSocket ended. Every way of ending has exactly one.
package struct WebSocketClosure: Sendable, Equatable {
    /// The code of the peer's Close frame; 1005 if the frame had none; 1006 if no Close frame came; for a
    /// failure that we found, the code that we sent (1002, 1007, 1009).
    package var code: UInt16
    /// The reason in the peer's Close frame.
    package var reason: String
    /// Set if it was no orderly closing handshake.
    package var error: WebSocketError?
    /// Whether we began to close (also by failing the connection).
    package var isLocal: Bool

    package init(code: UInt16, reason: String = "", error: WebSocketError? = nil, isLocal: Bool) {
        self.code = code
        self.reason = reason
        self.error = error
        self.isLocal = isLocal
    }
}

/// Codes of Close frames (RFC 6455, 7.4).
package enum WebSocketCloseCode {
    /// Whether a Close frame may carry `code`: 1000...1014 without the gaps, and 3000...4999.
    package static func isSendable(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    /// The longest beginning of `reason` that fits a Close frame (123 bytes of UTF-8) without cutting a
    /// character.
    package static func fitting(_ reason: String) -> String {
        var result = ""
        var size = 0
        for scalar in reason.unicodeScalars {
            size += UTF8.width(scalar)
            if size > 123 { break }
            result.unicodeScalars.append(scalar)
        }
        return result
    }
}
