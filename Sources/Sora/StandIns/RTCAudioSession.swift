import Foundation
internal import SoraLocking

/// The audio state of the process. Stands in for the type of the WebRTC framework.
public final class RTCAudioSession: Sendable {
    private struct State {
        var category = AVAudioSession.Category.playAndRecord
        var categoryOptions: AVAudioSession.CategoryOptions = []
        var mode = AVAudioSession.Mode.voiceChat
        var portOverride = AVAudioSession.PortOverride.none
        var isActive = false
        var useManualAudio = false
        var isAudioEnabled = false
        var route = AVAudioSessionRouteDescription(inputs: [], outputs: [])
        var sampleRate = 48_000.0
        var inputChannels = 1
        var outputChannels = 2
    }

    private static let instance = RTCAudioSession()
    public static func sharedInstance() -> RTCAudioSession { instance }

    private let state = Locked(State())
    /// Held during changes of several settings; recursive so that calls inside a configuration block work.
    private let configurationLock = NSRecursiveLock()
    private let observers = Locked<[Int: @Sendable () -> Void]>([:])

    init() {}

    public var category: AVAudioSession.Category { state.withLock { $0.category } }
    public var categoryOptions: AVAudioSession.CategoryOptions { state.withLock { $0.categoryOptions } }
    public var mode: AVAudioSession.Mode { state.withLock { $0.mode } }
    public var currentRoute: AVAudioSessionRouteDescription { state.withLock { $0.route } }
    public var isActive: Bool { state.withLock { $0.isActive } }
    public var sampleRate: Double { state.withLock { $0.sampleRate } }
    public var inputNumberOfChannels: Int { state.withLock { $0.inputChannels } }
    public var outputNumberOfChannels: Int { state.withLock { $0.outputChannels } }

    /// True: devices open only while ``isAudioEnabled`` is true.
    public var useManualAudio: Bool {
        get { state.withLock { $0.useManualAudio } }
        set { change { $0.useManualAudio = newValue } }
    }
    /// Effective only with ``useManualAudio``.
    public var isAudioEnabled: Bool {
        get { state.withLock { $0.isAudioEnabled } }
        set { change { $0.isAudioEnabled = newValue } }
    }

    public func lockForConfiguration() { configurationLock.lock() }
    public func unlockForConfiguration() { configurationLock.unlock() }

    public func setCategory(_ category: AVAudioSession.Category, with options: AVAudioSession.CategoryOptions) throws {
        change {
            $0.category = category
            $0.categoryOptions = options
        }
    }
    public func setMode(_ mode: AVAudioSession.Mode) throws { change { $0.mode = mode } }
    public func overrideOutputAudioPort(_ port: AVAudioSession.PortOverride) throws {
        change { $0.portOverride = port }
    }

    // MARK: Inside the SDK

    var portOverride: AVAudioSession.PortOverride { state.withLock { $0.portOverride } }
    /// Whether devices may be open at all now.
    var allowsDevices: Bool { state.withLock { !$0.useManualAudio || $0.isAudioEnabled } }
    /// Whether the category permits a microphone.
    var allowsCapture: Bool {
        let category = category
        return category == .playAndRecord || category == .record || category == .multiRoute
    }
    /// Whether the category permits a loudspeaker.
    var allowsPlayout: Bool { category != .record }

    func setActive(_ isActive: Bool) { state.withLock { $0.isActive = isActive } }

    /// Takes over a new route and returns the one before.
    func replaceRoute(_ route: AVAudioSessionRouteDescription) -> AVAudioSessionRouteDescription {
        state.withLock { state in
            defer { state.route = route }
            return state.route
        }
    }

    /// Calls `observer` after each change of a setting, until the returned number is given to ``removeObserver(_:)``.
    func addObserver(_ observer: @escaping @Sendable () -> Void) -> Int {
        observers.withLock { observers in
            let id = (observers.keys.max() ?? 0) + 1
            observers[id] = observer
            return id
        }
    }
    func removeObserver(_ id: Int) {
        let old = observers.withLock { $0.removeValue(forKey: id) }
        withExtendedLifetime(old) {}
    }

    private func change(_ body: (inout State) -> Void) {
        state.withLockUnchecked(body)
        for observer in observers.read().values { observer() }
    }
}

/// Where the SDK's devices find what the application has set.
enum ProcessAudio {
    static var policy: any AudioPolicy { RTCAudioSession.sharedInstance() }
}

extension RTCAudioSession: AudioPolicy {
    var wantsVoiceProcessing: Bool {
        let mode = mode
        return mode == .voiceChat || mode == .videoChat
    }
}
