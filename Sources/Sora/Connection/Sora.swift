import Foundation
internal import SoraLocking

/// The entry point: makes connections and knows those that live.
///
/// Most programs use ``shared``. Everything may be called from any thread.
///
/// `@unchecked Sendable`: every stored property is a `let`. ``handlers``, the events and the list of channels lock
/// themselves, and the two factories are `@Sendable` closures. The check is off only because ``SoraHandlers`` holds
/// handlers of the application, which by the contract of the API run on any thread.
public final class Sora: @unchecked Sendable {
    /// The instance of the process.
    public static let shared = Sora()

    /// Callbacks for all connections of this instance.
    public let handlers = SoraHandlers()

    let events = EventHub()
    private let channels = Locked<[MediaChannel]>([])
    private let makeDriver: ConnectionDriverFactory
    private let makeDeliveries: @Sendable () -> DeliveryQueue

    /// A further instance with its own connections, callbacks and events.
    public convenience init() { self.init(makeDriver: Engine.makeDriver) }

    init(
        makeDriver: @escaping ConnectionDriverFactory,
        makeDeliveries: @escaping @Sendable () -> DeliveryQueue = { DeliveryQueue(label: "sora.delivery") }
    ) {
        self.makeDriver = makeDriver
        self.makeDeliveries = makeDeliveries
        AudioRouteObserver.shared.add(self)
    }

    /// The connections that were added and not yet removed, oldest first.
    public var mediaChannels: [MediaChannel] { channels.read() }

    /// The events of this instance from now on.
    public func subscribeEvents(
        bufferingPolicy: AsyncStream<SoraEvent>.Continuation.BufferingPolicy = .bufferingNewest(
            SoraEvent.defaultBufferSize)
    ) -> AsyncStream<SoraEvent> {
        events.subscribe(bufferingPolicy: bufferingPolicy)
    }

    /// Starts one connection attempt. Returns at once; the handler is called exactly once, later.
    ///
    /// - Parameters:
    ///   - configuration: copied now, except for its two handler objects.
    ///   - webRTCConfiguration: ignored; `configuration.webRTCConfiguration` counts.
    ///   - handler: gets the connection or the error.
    @discardableResult
    public func connect(
        configuration: Configuration, webRTCConfiguration: WebRTCConfiguration = WebRTCConfiguration(),
        handler: @escaping (_ mediaChannel: MediaChannel?, _ error: (any Error)?) -> Void
    ) -> ConnectionTask {
        begin(configuration, prepare: { _ in }, handler)
    }

    /// Starts one attempt.
    ///
    /// - Parameter prepare: gets the connection directly before it starts, on the caller's thread.
    func begin(
        _ configuration: Configuration, prepare: (MediaChannel) -> Void,
        _ handler: @escaping (MediaChannel?, (any Error)?) -> Void
    ) -> ConnectionTask {
        let progress = AttemptProgress()
        let settings: ConfigurationSnapshot
        do {
            settings = try ConfigurationSnapshot(configuration)
        } catch {
            progress.settle(.completed)
            reportUnusable(error, handler)
            return ConnectionTask(progress: progress, onCancel: {})
        }
        let core = ChannelCore(
            settings: settings, configuration: configuration, sora: self, progress: progress,
            deliveries: makeDeliveries(), completion: handler)
        let channel = MediaChannel(configuration: configuration, core: core)
        core.reserve()
        channels.withLockUnchecked { $0.append(channel) }
        handlers.onAddMediaChannel?(channel)
        events.publish(SoraEvent(.mediaChannelAdded, transportEpoch: 0))
        prepare(channel)
        core.start(makeDriver)
        return ConnectionTask(progress: progress) { [weak core] in
            core?.disconnect(error: SoraError.connectionCancelled)
        }
    }

    private func reportUnusable(
        _ error: SoraError, _ handler: @escaping (MediaChannel?, (any Error)?) -> Void
    ) {
        let handler = Transfer(handler)
        DispatchQueue(label: "sora.delivery").async {
            handler.value(nil, error)
            self.handlers.onConnect?(nil, error)
            self.events.publish(SoraEvent(.connectFailed, error: SoraEventError(error)))
        }
    }

    /// Takes a connection off the list. False if it was not there.
    func remove(_ channel: MediaChannel) -> Bool {
        channels.withLockUnchecked { channels in
            guard let index = channels.firstIndex(where: { $0 === channel }) else { return false }
            channels.remove(at: index)
            return true
        }
    }

    // MARK: Audio

    /// True: audio devices open only while ``audioEnabled`` is true. For the whole process; initially false.
    public var usesManualAudio: Bool {
        get { RTCAudioSession.sharedInstance().useManualAudio }
        set { RTCAudioSession.sharedInstance().useManualAudio = newValue }
    }

    /// Lets audio devices open when ``usesManualAudio`` is true. For the whole process; initially false.
    public var audioEnabled: Bool {
        get { RTCAudioSession.sharedInstance().isAudioEnabled }
        set { RTCAudioSession.sharedInstance().isAudioEnabled = newValue }
    }

    /// Runs `block` once, now, while the SDK does not touch the audio session.
    public func configureAudioSession(block: () -> Void) {
        let session = RTCAudioSession.sharedInstance()
        session.lockForConfiguration()
        defer { session.unlockForConfiguration() }
        block()
    }

    /// Chooses how sound is used. Meant to be called once a connection stands.
    public func setAudioMode(
        _ mode: AudioMode,
        options: AVAudioSession.CategoryOptions = [.allowBluetooth, .allowBluetoothA2DP, .allowAirPlay]
    ) -> Result<Void, any Error> {
        Result { try AudioModeChange.apply(mode, options: options, to: RTCAudioSession.sharedInstance()) }
    }

    // MARK: Process

    /// The level of ``Logger/shared``.
    public static var logLevel: LogLevel {
        get { Logger.shared.level }
        set { Logger.shared.level = newValue }
    }

    /// How much the engine writes to standard output. Initially `.none`.
    public static func setWebRTCLogLevel(_ severity: RTCLoggingSeverity) { EngineLog.setSeverity(severity) }

    /// Releases what the engine holds for the whole process. Optional, before the process ends; may be called twice.
    public static func finish() { Engine.finish() }
}
