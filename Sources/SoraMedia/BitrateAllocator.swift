/// Shares a bit rate among simulcast layers: from the lowest up, each up to its maximum; a layer that cannot get its
/// minimum is left out, and so are those above it.
package enum BitrateAllocator {
    package struct Layer: Sendable, Equatable {
        /// In pixels; 0 if not known yet.
        package var width: Int
        package var height: Int
        package var isActive: Bool
        /// Bits per second; nil: by size.
        package var maximumBitrate: Int?
        /// Is being sent. One that is not needs more to begin than it needs to go on, so that an estimate that wavers
        /// does not switch it on and off, which costs every receiver a key frame each time.
        package var isRunning: Bool
        package init(
            width: Int, height: Int, isActive: Bool = true, maximumBitrate: Int? = nil, isRunning: Bool = true
        ) {
            self.width = width
            self.height = height
            self.isActive = isActive
            self.maximumBitrate = maximumBitrate
            self.isRunning = isRunning
        }
    }

    /// What a picture of this size is worth at most, in bits per second, where nobody set a limit.
    package static func defaultMaximum(width: Int, height: Int) -> Int {
        switch width * height {
        case 0: 500_000
        case ...(320 * 180): 200_000
        case ...(480 * 270): 450_000
        case ...(640 * 480): 800_000
        case ...(960 * 540): 1_500_000
        case ...(1280 * 720): 2_500_000
        case ...(1920 * 1080): 5_000_000
        default: 12_000_000
        }
    }

    /// Below this a picture of this size is not worth sending.
    package static func minimum(width: Int, height: Int, maximum: Int) -> Int {
        min(max(30_000, defaultMaximum(width: width, height: height) / 5), maximum)
    }

    /// Bits per second for each layer; 0: not sent. The lowest active layer always gets something.
    package static func allocate(_ total: Int, to layers: [Layer]) -> [Int] {
        var left = max(total, 0)
        var output = [Int](repeating: 0, count: layers.count)
        var isLowest = true
        for (index, layer) in layers.enumerated() where layer.isActive {
            let maximum = max(layer.maximumBitrate ?? defaultMaximum(width: layer.width, height: layer.height), 1)
            let least = minimum(width: layer.width, height: layer.height, maximum: maximum)
            guard isLowest || left >= (layer.isRunning ? least : min(least + least / 4, maximum)) else { break }
            output[index] = min(max(left, isLowest ? min(30_000, maximum) : 0), maximum)
            left = max(0, left - output[index])
            isLowest = false
        }
        return output
    }
}
