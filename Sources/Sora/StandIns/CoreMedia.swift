import Foundation
internal import SoraFrames

/// Seconds as a number. Stands in for the type of Core Foundation.
public typealias CFTimeInterval = Double

/// A point in time as a fraction. Stands in for the type of Core Media.
public struct CMTime: Sendable, Comparable {
    /// In units of 1/``timescale`` seconds.
    public var value: Int64
    /// Units per second; 0 or less makes the time invalid.
    public var timescale: Int32
    private var indefinite = false

    public init(value: Int64, timescale: Int32) {
        self.value = value
        self.timescale = timescale
    }

    /// The time nearest to `seconds`.
    public init(seconds: Double, preferredTimescale: Int32) {
        let scaled = (seconds * Double(preferredTimescale)).rounded()
        if preferredTimescale > 0, scaled.magnitude < 9.2e18 {
            self.init(value: Int64(scaled), timescale: preferredTimescale)
        } else {
            self = .invalid
        }
    }

    public static let zero = CMTime(value: 0, timescale: 1)
    public static let invalid = CMTime(value: 0, timescale: 0)
    /// A time that is valid and unknown.
    public static let indefinite: CMTime = {
        var time = CMTime(value: 0, timescale: 1)
        time.indefinite = true
        return time
    }()

    /// False for ``invalid``.
    public var isValid: Bool { timescale > 0 }
    public var isIndefinite: Bool { indefinite }
    /// NaN for a time that has no value.
    public var seconds: Double { isValid && !indefinite ? Double(value) / Double(timescale) : .nan }

    public static func < (left: CMTime, right: CMTime) -> Bool { compare(left, right) < 0 }
    public static func == (left: CMTime, right: CMTime) -> Bool { compare(left, right) == 0 }

    /// Exact comparison by cross multiplication. Invalid times come first, indefinite ones last.
    private static func compare(_ left: CMTime, _ right: CMTime) -> Int {
        func rank(_ time: CMTime) -> Int { !time.isValid ? 0 : time.indefinite ? 2 : 1 }
        if rank(left) != rank(right) || rank(left) != 1 { return rank(left) - rank(right) }
        let a = left.value.multipliedFullWidth(by: Int64(right.timescale))
        let b = right.value.multipliedFullWidth(by: Int64(left.timescale))
        if a.high != b.high { return a.high < b.high ? -1 : 1 }
        return a.low == b.low ? 0 : a.low < b.low ? -1 : 1
    }

    /// Nanoseconds, or nil for a time that has none.
    var nanoseconds: Int64? {
        guard isValid, !indefinite else { return nil }
        let scale = Int64(timescale)
        let (whole, rest) = value.quotientAndRemainder(dividingBy: scale)
        let (high, overflow) = whole.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return nil }
        // |rest| < 2^31, so the product fits.
        let (sum, carries) = high.addingReportingOverflow(rest * 1_000_000_000 / scale)
        return carries ? nil : sum
    }
}

public func CMTimeMake(value: Int64, timescale: Int32) -> CMTime { CMTime(value: value, timescale: timescale) }
public func CMTimeGetSeconds(_ time: CMTime) -> Double { time.seconds }

/// One captured picture with its time. Stands in for the type of Core Media.
public final class CMSampleBuffer: Sendable {
    /// The picture.
    public let imageBuffer: CVPixelBuffer?
    /// When the picture was taken.
    public let presentationTimeStamp: CMTime

    public init?(pixelBuffer: CVPixelBuffer, presentationTimeStamp: CMTime) {
        guard pixelBuffer.width > 0, pixelBuffer.height > 0 else { return nil }
        imageBuffer = pixelBuffer
        self.presentationTimeStamp = presentationTimeStamp
    }

    /// The public form of a captured picture; shares its pixels.
    init(_ picture: SoraFrames.VideoFrame) {
        imageBuffer = CVPixelBuffer(i420: RTCI420Buffer(picture.buffer))
        presentationTimeStamp = CMTime(value: picture.timestamp, timescale: 1_000_000_000)
    }

    /// A buffer without picture, as captures deliver now and then.
    init(presentationTimeStamp: CMTime) {
        imageBuffer = nil
        self.presentationTimeStamp = presentationTimeStamp
    }
}

public func CMSampleBufferGetImageBuffer(_ buffer: CMSampleBuffer) -> CVPixelBuffer? { buffer.imageBuffer }
public func CMSampleBufferGetPresentationTimeStamp(_ buffer: CMSampleBuffer) -> CMTime {
    buffer.presentationTimeStamp
}

/// Width and height of a video format. Stands in for the type of Core Media.
public struct CMVideoDimensions: Sendable, Equatable {
    public var width: Int32
    public var height: Int32
    public init(width: Int32, height: Int32) {
        self.width = width
        self.height = height
    }
}

/// The description of a video format. Stands in for the type of Core Media.
public final class CMFormatDescription: Sendable {
    let dimensions: CMVideoDimensions
    init(dimensions: CMVideoDimensions) { self.dimensions = dimensions }
}

public func CMVideoFormatDescriptionGetDimensions(_ description: CMFormatDescription) -> CMVideoDimensions {
    description.dimensions
}
