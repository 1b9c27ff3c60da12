/// Byte stream format of H.264 and H.265 (Annex B of each): NAL units behind start codes.
enum AnnexB {
    /// Where the NAL units lie, start codes and trailing zeros excluded. Input without any start code is one unit.
    static func units(in stream: [UInt8]) -> [Range<Int>] {
        var units: [Range<Int>] = []
        var start: Int?
        var zeros = 0
        for index in stream.indices {
            let byte = stream[index]
            if byte == 0 {
                zeros += 1
                continue
            }
            if byte == 1, zeros >= 2 {
                if let start, index - zeros > start { units.append(start..<(index - zeros)) }
                start = index + 1
            }
            zeros = 0
        }
        guard let start else { return stream.isEmpty ? [] : [0..<stream.count] }
        if stream.count - zeros > start { units.append(start..<(stream.count - zeros)) }
        return units
    }

    static func append(_ unit: ArraySlice<UInt8>, to stream: inout [UInt8]) {
        stream += [0, 0, 0, 1]
        stream.append(contentsOf: unit)
    }
}
