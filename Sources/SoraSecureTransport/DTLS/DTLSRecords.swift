/// Looks at the record headers of a datagram (RFC 6347 4.1) before OpenSSL does.
///
/// OpenSSL ends a handshake on any plain alert and on plain records of a wrong type, and stores
/// records of epochs to come: an attacker needs no key for either. Such records are taken out here.
struct DTLSRecords {
    enum ContentType {
        static let changeCipherSpec: UInt8 = 20
        static let alert: UInt8 = 21
        static let handshake: UInt8 = 22
        static let applicationData: UInt8 = 23
    }

    static let headerLength = 13

    /// What may pass to OpenSSL: whole records, in their order.
    private(set) var accepted: [UInt8] = []
    /// Encrypted data that overtook the end of the handshake.
    private(set) var early: [UInt8] = []
    /// The code of a plain fatal alert.
    private(set) var plainFatalAlert: UInt8?

    /// Sorts the records of `datagram`. A record cut short ends the walk; what came before it counts.
    init(of datagram: [UInt8], isConnected: Bool) {
        var offset = 0
        var isWhole = true
        var kept: [Range<Int>] = []
        while offset + Self.headerLength <= datagram.count {
            let length = Int(datagram[offset + 11]) << 8 | Int(datagram[offset + 12])
            let end = offset + Self.headerLength + length
            // 0xFE is DTLS 1.0 and 1.2 alike (a first ClientHello may say 1.0).
            guard end <= datagram.count, datagram[offset + 1] == 0xFE else { break }
            let type = datagram[offset]
            let epoch = Int(datagram[offset + 3]) << 8 | Int(datagram[offset + 4])
            switch (type, epoch) {
            case (ContentType.changeCipherSpec...ContentType.applicationData, 1) where isConnected:
                kept.append(offset..<end)
            case (ContentType.changeCipherSpec, 0), (ContentType.handshake, 0),
                (ContentType.handshake, 1), (ContentType.alert, 1):
                if isConnected { isWhole = false } else { kept.append(offset..<end) }
            case (ContentType.applicationData, 1):
                early += datagram[offset..<end]
                isWhole = false
            case (ContentType.alert, 0) where !isConnected && length == 2 && datagram[offset + 13] == 2:
                plainFatalAlert = datagram[offset + 14]
                isWhole = false
            default:
                isWhole = false
            }
            offset = end
        }
        if isWhole && offset == datagram.count {
            accepted = datagram
        } else {
            for range in kept { accepted += datagram[range] }
        }
    }
}
