/// Names for what an application does with sound. Stands in for the type of AVFoundation; the state itself is in
/// ``RTCAudioSession``.
public final class AVAudioSession: Sendable {
    /// What sound is for.
    public struct Category: RawRepresentable, Hashable, Sendable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public static let ambient = Category(rawValue: "AVAudioSessionCategoryAmbient")
        public static let soloAmbient = Category(rawValue: "AVAudioSessionCategorySoloAmbient")
        /// Forbids capture.
        public static let playback = Category(rawValue: "AVAudioSessionCategoryPlayback")
        /// Forbids playout.
        public static let record = Category(rawValue: "AVAudioSessionCategoryRecord")
        public static let playAndRecord = Category(rawValue: "AVAudioSessionCategoryPlayAndRecord")
        public static let multiRoute = Category(rawValue: "AVAudioSessionCategoryMultiRoute")
    }

    /// How sound is used within a category.
    public struct Mode: RawRepresentable, Hashable, Sendable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public static let `default` = Mode(rawValue: "AVAudioSessionModeDefault")
        public static let voiceChat = Mode(rawValue: "AVAudioSessionModeVoiceChat")
        public static let videoChat = Mode(rawValue: "AVAudioSessionModeVideoChat")
    }

    /// Options of a category. Those for Bluetooth and AirPlay are stored and have no effect.
    public struct CategoryOptions: OptionSet, Hashable, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static let mixWithOthers = CategoryOptions(rawValue: 1)
        public static let duckOthers = CategoryOptions(rawValue: 2)
        public static let allowBluetooth = CategoryOptions(rawValue: 4)
        public static let defaultToSpeaker = CategoryOptions(rawValue: 8)
        public static let allowBluetoothA2DP = CategoryOptions(rawValue: 32)
        public static let allowAirPlay = CategoryOptions(rawValue: 64)
    }

    /// Which output is preferred over the system's choice.
    public enum PortOverride: UInt, Sendable {
        case none
        case speaker
    }

    /// The kind of an input or output.
    public struct Port: RawRepresentable, Hashable, Sendable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public static let builtInMic = Port(rawValue: "MicrophoneBuiltIn")
        public static let builtInSpeaker = Port(rawValue: "Speaker")
        public static let headphones = Port(rawValue: "Headphones")
        public static let headsetMic = Port(rawValue: "MicrophoneWired")
        public static let lineIn = Port(rawValue: "LineIn")
        public static let lineOut = Port(rawValue: "LineOut")
        public static let usbAudio = Port(rawValue: "USBAudio")
        public static let HDMI = Port(rawValue: "HDMIOutput")
        public static let bluetoothHFP = Port(rawValue: "BluetoothHFP")
        public static let bluetoothA2DP = Port(rawValue: "BluetoothA2DPOutput")
    }

    /// Why the route changed.
    public enum RouteChangeReason: UInt, Sendable {
        case unknown = 0
        case newDeviceAvailable = 1
        case oldDeviceUnavailable = 2
        case categoryChange = 3
        case override = 4
        case wakeFromSleep = 6
        case noSuitableRouteForCategory = 7
        case routeConfigurationChange = 8
    }

    private static let instance = AVAudioSession()
    public static func sharedInstance() -> AVAudioSession { instance }
    private init() {}

    public var category: Category { RTCAudioSession.sharedInstance().category }
    public var categoryOptions: CategoryOptions { RTCAudioSession.sharedInstance().categoryOptions }
    public var mode: Mode { RTCAudioSession.sharedInstance().mode }
    public var currentRoute: AVAudioSessionRouteDescription { RTCAudioSession.sharedInstance().currentRoute }
}

/// Where sound comes from and goes to. Stands in for the type of AVFoundation.
public final class AVAudioSessionRouteDescription: Sendable {
    public let inputs: [AVAudioSessionPortDescription]
    public let outputs: [AVAudioSessionPortDescription]
    init(inputs: [AVAudioSessionPortDescription], outputs: [AVAudioSessionPortDescription]) {
        self.inputs = inputs
        self.outputs = outputs
    }
}

/// One input or output. Stands in for the type of AVFoundation.
public final class AVAudioSessionPortDescription: Sendable {
    public let portName: String
    public let portType: AVAudioSession.Port
    public let uid: String
    public let channels: [AVAudioSessionChannelDescription]?
    public let dataSources: [AVAudioSessionDataSourceDescription]?
    init(
        portName: String, portType: AVAudioSession.Port, uid: String,
        channels: [AVAudioSessionChannelDescription]?, dataSources: [AVAudioSessionDataSourceDescription]? = nil
    ) {
        self.portName = portName
        self.portType = portType
        self.uid = uid
        self.channels = channels
        self.dataSources = dataSources
    }
}

/// One channel of an input or output. Stands in for the type of AVFoundation.
public final class AVAudioSessionChannelDescription: Sendable {
    public let channelName: String
    public let channelNumber: Int
    public let owningPortUID: String
    init(channelName: String, channelNumber: Int, owningPortUID: String) {
        self.channelName = channelName
        self.channelNumber = channelNumber
        self.owningPortUID = owningPortUID
    }
}

/// One of several places that a port can take sound from. Stands in for the type of AVFoundation.
public final class AVAudioSessionDataSourceDescription: Sendable {
    public let dataSourceID: Int
    public let dataSourceName: String
    init(dataSourceID: Int, dataSourceName: String) {
        self.dataSourceID = dataSourceID
        self.dataSourceName = dataSourceName
    }
}

// MARK: From the SDK's own descriptions

extension AVAudioSessionRouteDescription {
    /// The public form of a route.
    convenience init(_ route: AudioRoute) {
        self.init(
            inputs: route.inputs.map(AVAudioSessionPortDescription.init),
            outputs: route.outputs.map(AVAudioSessionPortDescription.init))
    }
}

extension AVAudioSessionPortDescription {
    convenience init(_ port: AudioRoute.Port) {
        self.init(portName: port.name, portType: AVAudioSession.Port(port.kind), uid: port.id, channels: nil)
    }
}

extension AVAudioSession.Port {
    init(_ kind: AudioRoute.Kind) {
        switch kind {
        case .builtInMicrophone: self = .builtInMic
        case .headsetMicrophone: self = .headsetMic
        case .lineIn: self = .lineIn
        case .bluetoothHandsFree: self = .bluetoothHFP
        case .builtInSpeaker: self = .builtInSpeaker
        case .headphones: self = .headphones
        case .lineOut: self = .lineOut
        case .hdmi: self = .HDMI
        case .bluetoothPlayback: self = .bluetoothA2DP
        case .usb: self = .usbAudio
        }
    }
}

extension AVAudioSession.RouteChangeReason {
    init(_ change: AudioRoute.Change) {
        switch change {
        case .deviceCame: self = .newDeviceAvailable
        case .deviceWent: self = .oldDeviceUnavailable
        case .choice: self = .override
        case .unknown: self = .unknown
        }
    }
}
