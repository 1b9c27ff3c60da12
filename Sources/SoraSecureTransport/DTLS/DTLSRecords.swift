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
        // Nearly always all of it may pass, and nothing is copied.
        var offset = 0
        while let record = Record(in: datagram, at: offset), record.mayPass(isConnected: isConnected) {
            offset = record.end
        }
        if offset == datagram.count {
            accepted = datagram
            return
        }
        accepted += datagram[..<offset]
        while let record = Record(in: datagram, at: offset) {
            let bytes = datagram[offset..<record.end]
            if record.mayPass(isConnected: isConnected) {
                accepted += bytes
            } else if !isConnected, record.type == ContentType.applicationData, record.epoch == 1 {
                early += bytes
            } else if !isConnected, record.type == ContentType.alert, record.epoch == 0, bytes.count == 15,
                datagram[offset + Self.headerLength] == 2
            {
                plainFatalAlert = datagram[offset + Self.headerLength + 1]
            }
            offset = record.end
        }
    }

    /// The header of one whole record.
    private struct Record {
        var type: UInt8
        var epoch: Int
        /// Where the next record starts.
        var end: Int

        init?(in datagram: [UInt8], at offset: Int) {
            guard offset + DTLSRecords.headerLength <= datagram.count else { return nil }
            type = datagram[offset]
            epoch = Int(datagram[offset + 3]) << 8 | Int(datagram[offset + 4])
            end = offset + DTLSRecords.headerLength + (Int(datagram[offset + 11]) << 8 | Int(datagram[offset + 12]))
            // 0xFE is DTLS 1.0 and 1.2 alike (a first ClientHello may say 1.0).
            guard datagram[offset + 1] == 0xFE, end <= datagram.count else { return nil }
        }

        func mayPass(isConnected: Bool) -> Bool {
            switch (type, epoch) {
            case (ContentType.changeCipherSpec...ContentType.applicationData, 1) where isConnected: true
            case (ContentType.changeCipherSpec, 0), (ContentType.handshake, 0), (ContentType.handshake, 1),
                (ContentType.alert, 1):
                !isConnected
            default: false
            }
        }
    }
}
