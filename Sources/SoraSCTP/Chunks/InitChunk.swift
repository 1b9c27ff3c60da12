import SoraWire

/// INIT and INIT ACK (RFC 9260, 3.3.2 and 3.3.3), with the parameters that matter here.
struct InitChunk: Equatable {
    enum Parameter {
        static let heartbeatInfo: UInt16 = 1
        static let ipv4Address: UInt16 = 5
        static let ipv6Address: UInt16 = 6
        static let stateCookie: UInt16 = 7
        static let unrecognized: UInt16 = 8
        static let cookiePreservative: UInt16 = 9
        static let supportedAddressTypes: UInt16 = 12
        static let ecnCapable: UInt16 = 0x8000
        static let zeroChecksum: UInt16 = 0x8001
        static let supportedExtensions: UInt16 = 0x8008
        static let forwardTSNSupported: UInt16 = 0xC000
    }
    /// Error detection method identifier of DTLS (RFC 9653, 6).
    static let dtlsErrorDetection: UInt32 = 1
    static let fixedSize = 16

    var initiateTag: UInt32
    var receiverWindow: UInt32
    var outboundStreams: UInt16
    var inboundStreams: UInt16
    var initialTSN: TSN
    var features: Features
    /// Only in INIT ACK.
    var cookie: [UInt8]?
    /// Whole parameters, padded, that the peer wants named because it could not read them (INIT ACK), or
    /// that we found and have to name.
    var unrecognized: [[UInt8]] = []

    /// Extensions that one end offers.
    struct Features: OptionSet {
        let rawValue: UInt8
        static let partialReliability = Features(rawValue: 1)
        static let reconfiguration = Features(rawValue: 2)
        static let zeroChecksum = Features(rawValue: 4)
    }

    /// Reads the value of the chunk (what follows the four header bytes).
    ///
    /// Throws for lengths that lie. Parameters of unknown type follow their upper bits: the ones to be
    /// reported are collected, at most eight short ones, and one that says stop ends the list.
    init(value: ByteReader, isAck: Bool) throws(WireError) {
        var reader = value
        initiateTag = try reader.readUInt32()
        receiverWindow = try reader.readUInt32()
        outboundStreams = try reader.readUInt16()
        inboundStreams = try reader.readUInt16()
        initialTSN = TSN(try reader.readUInt32())
        features = []
        while reader.remaining >= 4 {
            let bookmark = reader
            let type = try reader.readUInt16()
            let length = Int(try reader.readUInt16())
            guard length >= 4 else { throw .invalid(field: "parameter length", value: UInt64(length)) }
            var body = try reader.readSubreader(length - 4)
            switch type {
            case Parameter.stateCookie where isAck: cookie = body.readRemaining()
            case Parameter.forwardTSNSupported: features.insert(.partialReliability)
            case Parameter.supportedExtensions:
                while let chunkType = try? body.readUInt8() {
                    if chunkType == ChunkType.forwardTSN { features.insert(.partialReliability) }
                    if chunkType == ChunkType.reconfiguration { features.insert(.reconfiguration) }
                }
            case Parameter.zeroChecksum:
                if let method = try? body.readUInt32(), method == InitChunk.dtlsErrorDetection {
                    features.insert(.zeroChecksum)
                }
            case Parameter.unrecognized, Parameter.ipv4Address, Parameter.ipv6Address,
                Parameter.cookiePreservative, Parameter.supportedAddressTypes, Parameter.ecnCapable:
                break
            default:
                let action = UnknownTypeAction(parameterType: type)
                if action.reports && unrecognized.count < 8 && length <= 64 {
                    var copy = bookmark
                    unrecognized.append(try copy.readBytes(length))
                }
                if !action.skips { return }
            }
            let padding = -length & 3
            guard reader.remaining > padding else { break }
            try reader.skip(padding)
        }
    }

    init(
        initiateTag: UInt32, receiverWindow: UInt32, outboundStreams: UInt16, inboundStreams: UInt16,
        initialTSN: TSN, features: Features, cookie: [UInt8]? = nil, unrecognized: [[UInt8]] = []
    ) {
        self.initiateTag = initiateTag
        self.receiverWindow = receiverWindow
        self.outboundStreams = outboundStreams
        self.inboundStreams = inboundStreams
        self.initialTSN = initialTSN
        self.features = features
        self.cookie = cookie
        self.unrecognized = unrecognized
    }

    func write(to writer: inout ByteWriter) {
        writeChunk(cookie == nil ? ChunkType.initiation : ChunkType.initiationAck, to: &writer) { writer in
            writer.write(initiateTag)
            writer.write(receiverWindow)
            writer.write(outboundStreams)
            writer.write(inboundStreams)
            writer.write(initialTSN.rawValue)
            if let cookie {
                writer.write(Parameter.stateCookie)
                writer.write(UInt16(truncatingIfNeeded: 4 + cookie.count))
                writer.write(cookie)
                writer.pad(toMultipleOf: 4)
            }
            if features.contains(.zeroChecksum) {
                writer.write(Parameter.zeroChecksum)
                writer.write(8 as UInt16)
                writer.write(InitChunk.dtlsErrorDetection)
            }
            if features.contains(.partialReliability) {
                writer.write(Parameter.forwardTSNSupported)
                writer.write(4 as UInt16)
            }
            var extensions: [UInt8] = []
            if features.contains(.reconfiguration) { extensions.append(ChunkType.reconfiguration) }
            if features.contains(.partialReliability) { extensions.append(ChunkType.forwardTSN) }
            if !extensions.isEmpty {
                writer.write(Parameter.supportedExtensions)
                writer.write(UInt16(4 + extensions.count))
                writer.write(extensions)
            }
            for parameter in unrecognized {
                writer.pad(toMultipleOf: 4)
                writer.write(Parameter.unrecognized)
                writer.write(UInt16(truncatingIfNeeded: 4 + parameter.count))
                writer.write(parameter)
            }
        }
    }
}
