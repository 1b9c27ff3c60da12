import SoraFrames

/// A camera, microphone or speaker of the machine.
package struct MediaDevice: Sendable, Equatable {
    package enum Kind: Sendable { case camera, microphone, speaker }

    package var kind: Kind
    /// Stays the same while the device is plugged in, and as a rule over restarts.
    package var id: String
    /// For people.
    package var name: String
    /// The system's choice for new streams. Only sound devices have one.
    package var isDefault: Bool
    /// A source that hears what a speaker plays; not a microphone.
    package var isMonitor: Bool
    /// Where a sound device ends, as the sound server names it (`analog-output-speaker`, `analog-output-headphones`);
    /// nil if it does not say.
    package var port: String?
    /// What a camera can deliver; empty for sound.
    package var formats: [CameraFormat]

    package init(
        kind: Kind, id: String, name: String, isDefault: Bool = false, isMonitor: Bool = false,
        port: String? = nil, formats: [CameraFormat] = []
    ) {
        self.kind = kind
        self.id = id
        self.name = name
        self.isDefault = isDefault
        self.isMonitor = isMonitor
        self.port = port
        self.formats = formats
    }
}

/// One size in one coding that a camera delivers, with the rates for it.
package struct CameraFormat: Sendable, Equatable {
    package var width: Int
    package var height: Int
    /// GStreamer's media type: `video/x-raw` or `image/jpeg`.
    package var mediaType: String
    /// Format of raw pictures, such as `YUY2`; empty for compressed ones.
    package var pixelFormat: String
    /// Frames per second. Discrete rates are ranges of no width.
    package var framerates: [ClosedRange<Double>]

    package init(
        width: Int, height: Int, mediaType: String = "video/x-raw", pixelFormat: String = "",
        framerates: [ClosedRange<Double>]
    ) {
        self.width = width
        self.height = height
        self.mediaType = mediaType
        self.pixelFormat = pixelFormat
        self.framerates = framerates
    }

    package var isCompressed: Bool { mediaType != "video/x-raw" }
    /// Highest rate, 0 without any.
    package var maximumFramerate: Double { framerates.map(\.upperBound).max() ?? 0 }
    /// Ends are cut to whole numbers, so that 29.97 counts as 29 (api 2.16).
    package func reaches(_ framerate: Int) -> Bool {
        framerates.contains { Int($0.lowerBound) <= framerate && framerate <= Int($0.upperBound) }
    }

    /// The format and rate to open for a wish (pitfalls DEV1, DEV2): among the nearest sizes, raw if it reaches the
    /// rate, else a compressed one that does, else whatever is fastest.
    package static func best(
        of formats: [CameraFormat], width: Int, height: Int, framerate: Int
    ) -> (format: CameraFormat, framerate: Double)? {
        func distance(_ format: CameraFormat) -> Int { abs(format.width - width) + abs(format.height - height) }
        guard let least = formats.map(distance).min() else { return nil }
        let nearest = formats.filter { distance($0) == least }
        if let exact = nearest.first(where: { !$0.isCompressed && $0.reaches(framerate) })
            ?? nearest.first(where: { $0.reaches(framerate) })
        {
            return (exact, Double(framerate))
        }
        let fastest = nearest.max {
            ($0.maximumFramerate, $0.isCompressed ? 0 : 1) < ($1.maximumFramerate, $1.isCompressed ? 0 : 1)
        }
        return fastest.map { ($0, $0.maximumFramerate) }
    }
}
