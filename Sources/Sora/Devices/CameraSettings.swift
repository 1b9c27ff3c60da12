/// The camera that is opened on connect, and how.
public struct CameraSettings: CustomStringConvertible, Sendable {
    /// 720p, 30 frames a second, the front camera.
    public static var `default`: CameraSettings { CameraSettings() }

    /// Sizes that cameras usually offer; the nearest one of the camera is used.
    public enum Resolution: Sendable, Codable {
        /// 320×240
        case qvga240p
        /// 640×480
        case vga480p
        /// 960×540
        case qhd540p
        /// 1280×720
        case hd720p
        /// 1920×1080
        case hd1080p
        /// 3840×2160
        case uhd2160p
        /// 4032×3024
        case uhd3024p

        static let names = NamedCases<Resolution>([
            (.qvga240p, "qvga240p"), (.vga480p, "vga480p"), (.qhd540p, "qhd540p"), (.hd720p, "hd720p"),
            (.hd1080p, "hd1080p"), (.uhd2160p, "uhd2160p"), (.uhd3024p, "uhd3024p"),
        ])

        public init(from decoder: any Decoder) throws { self = try Self.names.decode(from: decoder) }
        public func encode(to encoder: any Encoder) throws { try Self.names.encode(self, to: encoder) }

        /// In pixels.
        public var width: Int32 { size.width }
        /// In pixels.
        public var height: Int32 { size.height }

        private var size: (width: Int32, height: Int32) {
            switch self {
            case .qvga240p: (320, 240)
            case .vga480p: (640, 480)
            case .qhd540p: (960, 540)
            case .hd720p: (1280, 720)
            case .hd1080p: (1920, 1080)
            case .uhd2160p: (3840, 2160)
            case .uhd3024p: (4032, 3024)
            }
        }
    }

    /// The wanted size.
    public var resolution: Resolution
    /// Frames a second.
    public var frameRate: Int
    /// Which camera is opened.
    public var position: AVCaptureDevice.Position
    /// False: the SDK does not touch cameras at all.
    public var isEnabled: Bool

    public var description: String { "\(Resolution.names.text(for: resolution)), \(frameRate)fps" }

    /// Settings; what is not given is as in ``default``.
    public init(
        resolution: Resolution = .hd720p, frameRate: Int = 30, position: AVCaptureDevice.Position = .front,
        isEnabled: Bool = true
    ) {
        self.resolution = resolution
        self.frameRate = frameRate
        self.position = position
        self.isEnabled = isEnabled
    }
}
