import Foundation
internal import SoraLocking

/// A camera. Stands in for the type of AVFoundation.
public final class AVCaptureDevice: Sendable, Equatable {
    /// Which way a camera looks.
    public enum Position: Int, Sendable {
        case unspecified = 0
        case back = 1
        case front = 2
    }

    /// One size that a camera delivers, with its frame rates. Raw and compressed forms of one size are one format;
    /// the capture chooses the form that reaches the wanted rate.
    public final class Format: Sendable, Equatable {
        public let formatDescription: CMFormatDescription
        public let videoSupportedFrameRateRanges: [AVFrameRateRange]

        init(width: Int32, height: Int32, ranges: [AVFrameRateRange]) {
            formatDescription = CMFormatDescription(dimensions: CMVideoDimensions(width: width, height: height))
            videoSupportedFrameRateRanges = ranges
        }

        public static func == (left: Format, right: Format) -> Bool {
            left.formatDescription.dimensions == right.formatDescription.dimensions
                && left.videoSupportedFrameRateRanges == right.videoSupportedFrameRateRanges
        }
    }

    /// Identifies the camera on this machine.
    public let uniqueID: String
    /// What the camera calls itself.
    public let localizedName: String
    /// The side on which the camera is, as far as the system knows.
    public let position: Position
    /// Sizes and rates that the camera offers.
    public let formats: [Format]

    init(uniqueID: String, localizedName: String, position: Position, formats: [Format]) {
        self.uniqueID = uniqueID
        self.localizedName = localizedName
        self.position = position
        self.formats = formats
    }

    public static func == (left: AVCaptureDevice, right: AVCaptureDevice) -> Bool { left.uniqueID == right.uniqueID }
}

/// A range of frame rates. Stands in for the type of AVFoundation.
public final class AVFrameRateRange: Sendable, Equatable {
    public let minFrameRate: Double
    public let maxFrameRate: Double
    init(minFrameRate: Double, maxFrameRate: Double) {
        self.minFrameRate = minFrameRate
        self.maxFrameRate = maxFrameRate
    }
    public static func == (left: AVFrameRateRange, right: AVFrameRateRange) -> Bool {
        left.minFrameRate == right.minFrameRate && left.maxFrameRate == right.maxFrameRate
    }
}

/// A running or stopped capture. Stands in for the type of AVFoundation.
public final class AVCaptureSession: Sendable {
    private let running = Locked(false)
    init() {}
    public var isRunning: Bool { running.read() }
    func setRunning(_ isRunning: Bool) { running.write(isRunning) }
}

// MARK: From the SDK's own descriptions and back

extension AVCaptureDevice {
    /// The public form of a camera.
    convenience init(_ camera: CameraDescription) {
        self.init(
            uniqueID: camera.id, localizedName: camera.name, position: Position(camera.position),
            formats: camera.formats.map(Format.init))
    }
}

extension AVCaptureDevice.Position {
    init(_ position: CameraDescription.Position) {
        switch position {
        case .unspecified: self = .unspecified
        case .back: self = .back
        case .front: self = .front
        }
    }
}

extension AVCaptureDevice.Format {
    convenience init(_ format: CameraDescription.Format) {
        self.init(
            width: Int32(clamping: format.size.width), height: Int32(clamping: format.size.height),
            ranges: format.frameRates.map {
                AVFrameRateRange(minFrameRate: $0.lowerBound, maxFrameRate: $0.upperBound)
            })
    }
}

extension CameraDescription.Size {
    init(_ format: AVCaptureDevice.Format) {
        let dimensions = format.formatDescription.dimensions
        self.init(width: Int(dimensions.width), height: Int(dimensions.height))
    }
}
