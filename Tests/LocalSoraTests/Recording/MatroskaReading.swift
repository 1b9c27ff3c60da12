/// What a test wants to know of a WebM file: its elements down to the blocks (RFC 8794, RFC 9559).
struct MatroskaReading {
    struct Block {
        var track: UInt8
        /// Milliseconds.
        var time: Int
        var isKeyFrame: Bool
        var payload: ArraySlice<UInt8>
    }
    private(set) var blocks: [Block] = []
    private(set) var codecs: [String] = []
    private(set) var documentType = ""
    private(set) var duration = 0.0
    private(set) var widths: [Int] = []
    /// Something did not fit.
    private(set) var isBroken = false
    private var clusterTime = 0

    init(_ bytes: [UInt8]) { read(bytes[...]) }

    func blocks(of track: UInt8) -> [Block] { blocks.filter { $0.track == track } }

    private mutating func read(_ bytes: ArraySlice<UInt8>) {
        var rest = bytes
        while let (id, body) = Self.element(&rest) {
            guard let body else {
                isBroken = true
                return
            }
            switch id {
            case 0x1A45_DFA3, 0x1853_8067, 0x1F43_B675, 0x1654_AE6B, 0xAE, 0x1549_A966, 0xE0: read(body)
            case 0x4282: documentType = String(decoding: body, as: UTF8.self)
            case 0x86: codecs.append(String(decoding: body, as: UTF8.self))
            case 0xB0: widths.append(Self.number(body))
            case 0x4489: duration = Double(bitPattern: UInt64(Self.number(body)))
            case 0xE7: clusterTime = Self.number(body)
            case 0xA3:
                let block = Array(body)
                guard block.count > 4 else {
                    isBroken = true
                    return
                }
                let relative = Int(Int16(bitPattern: UInt16(block[1]) << 8 | UInt16(block[2])))
                blocks.append(
                    Block(
                        track: block[0] & 0x7F, time: clusterTime + relative, isKeyFrame: block[3] & 0x80 != 0,
                        payload: block[4...]))
            default: break
            }
        }
        if !rest.isEmpty { isBroken = true }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

    /// Id and body of the first element. A body of nil does not fit; no result: nothing is left.
    private static func element(_ bytes: inout ArraySlice<UInt8>) -> (UInt32, ArraySlice<UInt8>?)? {
        guard let first = bytes.first else { return nil }
        let idLength = first.leadingZeroBitCount + 1
        guard idLength <= 4, bytes.count > idLength else { return (0, nil) }
        let id = UInt32(number(bytes.prefix(idLength)))
        bytes = bytes.dropFirst(idLength)
        guard let lead = bytes.first else { return (id, nil) }
        let sizeLength = lead.leadingZeroBitCount + 1
        guard sizeLength <= 8, bytes.count >= sizeLength else { return (id, nil) }
        let marked = number(bytes.prefix(sizeLength))
        bytes = bytes.dropFirst(sizeLength)
        let size = marked & ((1 << (7 * sizeLength)) - 1)
        guard size <= bytes.count else { return (id, nil) }
        defer { bytes = bytes.dropFirst(size) }
        return (id, bytes.prefix(size))
    }
}
