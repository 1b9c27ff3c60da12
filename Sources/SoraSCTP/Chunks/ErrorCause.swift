import SoraWire

/// One cause of an ABORT or ERROR chunk (RFC 9260, 3.3.10).
struct ErrorCause: Equatable {
    enum Code {
        static let invalidStream: UInt16 = 1
        static let staleCookie: UInt16 = 3
        static let outOfResource: UInt16 = 4
        static let unrecognizedChunk: UInt16 = 6
        static let invalidMandatoryParameter: UInt16 = 7
        static let unrecognizedParameters: UInt16 = 8
        static let noUserData: UInt16 = 9
        static let userInitiatedAbort: UInt16 = 12
        static let protocolViolation: UInt16 = 13
    }

    var code: UInt16
    var info: [UInt8]

    init(code: UInt16, info: [UInt8] = []) {
        self.code = code
        self.info = info
    }

    init(code: UInt16, reason: String) { self.init(code: code, info: Array(reason.utf8)) }

    /// The causes in a chunk's value. Reading stops at the first whose length lies; at most sixteen.
    static func list(value: ByteReader) -> [ErrorCause] {
        var reader = value
        var causes: [ErrorCause] = []
        while causes.count < 16, let code = try? reader.readUInt16(), let length = try? reader.readUInt16(),
            length >= 4, let info = try? reader.readBytes(Int(length) - 4)
        {
            causes.append(ErrorCause(code: code, info: info))
            let padding = -Int(length) & 3
            guard reader.remaining > padding, (try? reader.skip(padding)) != nil else { break }
        }
        return causes
    }

    func write(to writer: inout ByteWriter) {
        writer.pad(toMultipleOf: 4)
        writer.write(code)
        writer.write(UInt16(truncatingIfNeeded: 4 + info.count))
        writer.write(info)
    }

    /// An ABORT (with `reflectsTag` as its T bit) or ERROR chunk with these causes.
    static func writeChunk(
        _ type: UInt8, causes: [ErrorCause], reflectsTag: Bool = false, to writer: inout ByteWriter
    ) {
        SoraSCTP.writeChunk(type, flags: reflectsTag ? 1 : 0, to: &writer) { writer in
            for cause in causes { cause.write(to: &writer) }
        }
    }
}
