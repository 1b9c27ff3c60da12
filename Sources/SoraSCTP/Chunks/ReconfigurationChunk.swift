import SoraWire

/// RE-CONFIG (RFC 6525, 3.1): one or two parameters.
struct ReconfigurationChunk: Equatable {
    enum Parameter: Equatable {
        /// The sender starts these outgoing streams again from zero; none listed means all.
        case outgoingReset(request: UInt32, response: UInt32, lastTSN: TSN, streams: [UInt16])
        /// The sender asks that the receiver reset its outgoing streams.
        case incomingReset(request: UInt32, streams: [UInt16])
        /// SSN/TSN reset, added streams: read so that they can be refused.
        case otherRequest(type: UInt16, request: UInt32)
        case response(request: UInt32, result: UInt32)
    }

    /// Results of RFC 6525, 4.4.
    enum Result {
        static let nothingToDo: UInt32 = 0
        static let performed: UInt32 = 1
        static let denied: UInt32 = 2
        static let wrongSSN: UInt32 = 3
        static let requestInProgress: UInt32 = 4
        static let badSequenceNumber: UInt32 = 5
        static let inProgress: UInt32 = 6
    }

    private enum Kind {
        static let outgoingReset: UInt16 = 13
        static let incomingReset: UInt16 = 14
        static let tsnReset: UInt16 = 15
        static let response: UInt16 = 16
        static let addOutgoing: UInt16 = 17
        static let addIncoming: UInt16 = 18
    }

    var parameters: [Parameter]

    init(parameters: [Parameter]) { self.parameters = parameters }

    /// Reads the chunk's value; more than two parameters, or lengths that lie, throw.
    init(value: ByteReader) throws(WireError) {
        var reader = value
        parameters = []
        while reader.remaining >= 4 {
            let type = try reader.readUInt16()
            let length = Int(try reader.readUInt16())
            guard length >= 4 else { throw .invalid(field: "parameter length", value: UInt64(length)) }
            var body = try reader.readSubreader(length - 4)
            guard parameters.count < 2 else { throw .invalid(field: "RE-CONFIG parameters", value: 3) }
            switch type {
            case Kind.outgoingReset:
                parameters.append(
                    .outgoingReset(
                        request: try body.readUInt32(), response: try body.readUInt32(),
                        lastTSN: TSN(try body.readUInt32()),
                        streams: try ReconfigurationChunk.readStreams(&body)))
            case Kind.incomingReset:
                parameters.append(
                    .incomingReset(
                        request: try body.readUInt32(), streams: try ReconfigurationChunk.readStreams(&body)))
            case Kind.response:
                parameters.append(.response(request: try body.readUInt32(), result: try body.readUInt32()))
            case Kind.tsnReset, Kind.addOutgoing, Kind.addIncoming:
                parameters.append(.otherRequest(type: type, request: try body.readUInt32()))
            default:
                guard UnknownTypeAction(parameterType: type).skips else { return }
            }
            let padding = -length & 3
            guard reader.remaining > padding else { break }
            try reader.skip(padding)
        }
    }

    private static func readStreams(_ body: inout ByteReader) throws(WireError) -> [UInt16] {
        guard body.remaining % 2 == 0 else {
            throw .invalid(field: "stream list length", value: UInt64(body.remaining))
        }
        var streams: [UInt16] = []
        streams.reserveCapacity(body.remaining / 2)
        while !body.isAtEnd { streams.append(try body.readUInt16()) }
        return streams
    }

    func write(to writer: inout ByteWriter) {
        writeChunk(ChunkType.reconfiguration, to: &writer) { writer in
            for parameter in parameters {
                writer.pad(toMultipleOf: 4)
                switch parameter {
                case .outgoingReset(let request, let response, let lastTSN, let streams):
                    writer.write(Kind.outgoingReset)
                    writer.write(UInt16(truncatingIfNeeded: 16 + 2 * streams.count))
                    writer.write(request)
                    writer.write(response)
                    writer.write(lastTSN.rawValue)
                    for stream in streams { writer.write(stream) }
                case .incomingReset(let request, let streams):
                    writer.write(Kind.incomingReset)
                    writer.write(UInt16(truncatingIfNeeded: 8 + 2 * streams.count))
                    writer.write(request)
                    for stream in streams { writer.write(stream) }
                case .otherRequest(let type, let request):
                    writer.write(type)
                    writer.write(8 as UInt16)
                    writer.write(request)
                case .response(let request, let result):
                    writer.write(Kind.response)
                    writer.write(12 as UInt16)
                    writer.write(request)
                    writer.write(result)
                }
            }
        }
    }
}
