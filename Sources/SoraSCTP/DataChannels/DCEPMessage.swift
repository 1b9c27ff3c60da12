import SoraWire

/// The two messages of the Data Channel Establishment Protocol (RFC 8832, 5).
enum DCEPMessage: Equatable {
    case open(Open)
    case ack

    struct Open: Equatable {
        var ordered: Bool
        var reliability: Reliability
        var priority: UInt16
        var label: String
        var protocolName: String
    }

    private static let ackType: UInt8 = 2
    private static let openType: UInt8 = 3
    private static let unorderedBit: UInt8 = 0x80

    /// Nil for anything that is not a well-formed message: unknown types, lengths that lie, labels or
    /// protocols that are not UTF-8 or longer than `maximumLength` bytes.
    init?(_ bytes: [UInt8], maximumLength: Int) {
        var reader = ByteReader(bytes)
        do {
            switch try reader.readUInt8() {
            case DCEPMessage.ackType: self = .ack
            case DCEPMessage.openType:
                let type = try reader.readUInt8()
                let priority = try reader.readUInt16()
                let parameter = UInt16(clamping: try reader.readUInt32())
                let labelLength = Int(try reader.readUInt16())
                let protocolLength = Int(try reader.readUInt16())
                guard labelLength <= maximumLength, protocolLength <= maximumLength else { return nil }
                let reliability: Reliability
                switch type & ~DCEPMessage.unorderedBit {
                case 0: reliability = .reliable
                case 1: reliability = .maxRetransmits(parameter)
                case 2: reliability = .maxLifetime(milliseconds: parameter)
                default: return nil
                }
                guard let label = String(validating: try reader.readBytes(labelLength), as: UTF8.self),
                    let protocolName = String(validating: try reader.readBytes(protocolLength), as: UTF8.self)
                else { return nil }
                self = .open(
                    Open(
                        ordered: type & DCEPMessage.unorderedBit == 0, reliability: reliability,
                        priority: priority, label: label, protocolName: protocolName))
            default: return nil
            }
        } catch {
            return nil
        }
    }

    /// The bytes to send. Label and protocol must each fit 65,535 bytes.
    var bytes: [UInt8] {
        var writer = ByteWriter(capacity: 64)
        switch self {
        case .ack: writer.write(DCEPMessage.ackType)
        case .open(let open):
            let label = Array(open.label.utf8)
            let protocolName = Array(open.protocolName.utf8)
            var type: UInt8
            let parameter: UInt32
            switch open.reliability {
            case .reliable: (type, parameter) = (0, 0)
            case .maxRetransmits(let count): (type, parameter) = (1, UInt32(count))
            case .maxLifetime(let milliseconds): (type, parameter) = (2, UInt32(milliseconds))
            }
            if !open.ordered { type |= DCEPMessage.unorderedBit }
            writer.write(DCEPMessage.openType)
            writer.write(type)
            writer.write(open.priority)
            writer.write(parameter)
            writer.write(UInt16(truncatingIfNeeded: label.count))
            writer.write(UInt16(truncatingIfNeeded: protocolName.count))
            writer.write(label)
            writer.write(protocolName)
        }
        return writer.bytes
    }
}

/// Payload protocol identifiers (RFC 8831, 8).
enum PayloadProtocol {
    static let control: UInt32 = 50
    static let text: UInt32 = 51
    /// Deprecated: a binary message whose rest follows.
    static let partialBinary: UInt32 = 52
    static let binary: UInt32 = 53
    /// Deprecated: a text message whose rest follows.
    static let partialText: UInt32 = 54
    static let emptyText: UInt32 = 56
    static let emptyBinary: UInt32 = 57
}
