/// Chunk types that this association understands (RFC 9260, 3.2; RFC 3758; RFC 6525).
enum ChunkType {
    static let data: UInt8 = 0
    static let initiation: UInt8 = 1
    static let initiationAck: UInt8 = 2
    static let sack: UInt8 = 3
    static let heartbeat: UInt8 = 4
    static let heartbeatAck: UInt8 = 5
    static let abort: UInt8 = 6
    static let shutdown: UInt8 = 7
    static let shutdownAck: UInt8 = 8
    static let error: UInt8 = 9
    static let cookieEcho: UInt8 = 10
    static let cookieAck: UInt8 = 11
    static let shutdownComplete: UInt8 = 14
    static let reconfiguration: UInt8 = 130
    static let forwardTSN: UInt8 = 192
}

/// What the upper two bits of an unknown chunk or parameter type ask for (RFC 9260, 3.2).
struct UnknownTypeAction {
    let skips: Bool
    let reports: Bool
    init(chunkType: UInt8) {
        skips = chunkType & 0x80 != 0
        reports = chunkType & 0x40 != 0
    }
    init(parameterType: UInt16) { self.init(chunkType: UInt8(parameterType >> 8)) }
}
