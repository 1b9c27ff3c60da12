import SoraMessages

/// One message for any number of members, whose forms are made when first needed and then shared.
struct SharedMessage {
    let label: String
    private let make: () -> [UInt8]
    private var plain: DataChannelFraming.Frame?
    private var compressed: DataChannelFraming.Frame?

    init(_ bytes: [UInt8], label: String) {
        self.init(label: label) { bytes }
    }

    init(label: String, _ make: @escaping () -> [UInt8]) {
        self.label = label
        self.make = make
    }

    mutating func frame(compressed isCompressed: Bool) throws(CompressionError) -> DataChannelFraming.Frame {
        if let known = isCompressed ? compressed : plain { return known }
        let frame = try DataChannelFraming(label: label, compress: isCompressed).frame(make())
        if isCompressed { compressed = frame } else { plain = frame }
        return frame
    }
}
