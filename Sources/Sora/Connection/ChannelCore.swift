import Foundation
internal import SoraLocking

/// The inside of a ``MediaChannel``: what the application sees of the connection, and the order in which it sees it.
///
/// Two rules hold it together. *The application's view changes on the delivery queue*, in the same job as the handler
/// that announces the change, so that what a handler reads fits what it was told. *The end is settled once*: the
/// first cause wins, wherever it comes from, and nothing is delivered after the end.
///
/// All state is in locked parts; no lock is held while code of the application runs.
final class ChannelCore: Sendable {
    /// What getters tell.
    struct View {
        var state = ConnectionState.disconnected
        var epoch = 0
        var contactUrl: URL?
        var connectedUrl: URL?
        var peerConnection: RTCPeerConnection?
        var clientId: String?
        var bundleId: String?
        var connectionId: String?
        var startTime: Date?
        var connectionCount: Int?
        var publisherCount: Int?
        var subscriberCount: Int?
        var streams: [ConnectedStream] = []
    }

    private struct Life {
        var driver: (any ConnectionDriver)?
        var hasStarted = false
        var completion: ((MediaChannel?, (any Error)?) -> Void)?
        /// Set when the end began.
        var isEnding = false
        var rawError: (any Error)?
        var wasConnected = false
        var isFinished = false
        /// Nothing is delivered any more.
        var isOver = false
        var isAbandoned = false
    }

    let settings: ConfigurationSnapshot
    let progress: AttemptProgress
    let deliveries: DeliveryQueue
    let outgoing = OutgoingMessages()
    let events = EventHub()
    let camera = ConnectionCamera()
    let microphone: ConnectionMicrophone
    private let webSocketHandlers: Transfer<WebSocketChannelHandlers>
    private let handlersSlot: Locked<MediaChannelHandlers>
    private let view = Locked(View())
    private let life: Locked<Life>
    private let weakChannel = Locked(Weak<MediaChannel>())
    private let weakSora: Locked<Weak<Sora>>
    private let secrets: SecretRegistry.Registration

    struct Weak<Object: AnyObject> {
        weak var object: Object?
    }

    init(
        settings: ConfigurationSnapshot, configuration: Configuration, sora: Sora, progress: AttemptProgress,
        deliveries: DeliveryQueue = DeliveryQueue(label: "sora.delivery"),
        completion: @escaping (MediaChannel?, (any Error)?) -> Void
    ) {
        self.deliveries = deliveries
        self.settings = settings
        self.progress = progress
        microphone = ConnectionMicrophone(
            isHardMuted: !settings.initialMicrophoneEnabled, processesVoice: settings.processesVoice)
        webSocketHandlers = Transfer(configuration.webSocketChannelHandlers)
        handlersSlot = Locked(unchecked: configuration.mediaChannelHandlers)
        life = Locked(unchecked: Life(completion: completion))
        weakSora = Locked(Weak(object: sora))
        secrets = SecretRegistry.shared.register(settings.secrets)
    }

    var channel: MediaChannel? { weakChannel.withLock { $0.object } }
    private var sora: Sora? { weakSora.withLock { $0.object } }
    func attach(_ channel: MediaChannel) { weakChannel.withLockUnchecked { $0.object = channel } }

    var handlers: MediaChannelHandlers {
        get { handlersSlot.read() }
        set { handlersSlot.write(newValue) }
    }

    /// A copy of what the application sees now.
    var snapshot: View { view.read() }
    var state: ConnectionState { view.withLock { $0.state } }
    var isEnding: Bool { life.withLock { $0.isEnding } }

    // MARK: Life

    func reserve() { view.withLock { $0.state = .connecting } }

    /// Starts the driver on the delivery queue, unless the attempt was ended in the meantime.
    func start(_ makeDriver: @escaping ConnectionDriverFactory) {
        deliveries.enqueue { [weak self] in
            guard let self else { return }
            let mayStart = life.withLock { life in
                life.hasStarted = true
                return !life.isEnding
            }
            guard mayStart else { return finish() }
            guard !settings.urlCandidates.isEmpty else {
                if beginEnd(SoraError.configurationError(reason: "urlCandidates is empty")) { finish() }
                return
            }
            view.withLock { $0.startTime = Date() }
            let driver = makeDriver(settings, self)
            // An end that began in between finds either the driver or the mark that it must finish by itself.
            let isAlive = life.withLock { life in
                guard !life.isEnding, !life.isAbandoned else { return false }
                life.driver = driver
                return true
            }
            if isAlive {
                driver.start()
            } else {
                driver.abandon()
                finish()
            }
        }
    }

    /// The application ends the connection. Works in every state; only the first call of either side has an effect.
    func disconnect(error: (any Error)?) {
        guard beginEnd(error) else { return }
        let (driver, hasStarted) = life.withLock { ($0.driver, $0.hasStarted) }
        if let driver {
            driver.end(.user)
        } else if hasStarted {
            // The start job is between its two looks; it sees the end and finishes.
            return
        }
    }

    /// Settles the end. Called by the driver for every cause that is not the application's, before it releases things.
    ///
    /// - Returns: true if this call was the first; the caller then sees to it that ``finish()`` is called.
    @discardableResult
    func beginEnd(_ error: (any Error)?) -> Bool {
        let isFirst = life.withLock { life in
            guard !life.isEnding, !life.isAbandoned else { return false }
            life.isEnding = true
            life.rawError = error
            return true
        }
        guard isFirst else { return false }
        progress.settle(.completed)
        view.withLock { $0.state = .disconnecting }
        outgoing.close()
        camera.hardMute.cancel()
        return true
    }

    /// Everything of the driver is released: the rest of the connection is, and then the application is told.
    func finish() {
        let isFirst = life.withLock { life in
            guard !life.isFinished, !life.isAbandoned else { return false }
            life.isFinished = true
            return true
        }
        guard isFirst else { return }
        // Strong: the end is delivered even if the driver is the last one to know the connection.
        microphone.close {
            self.camera.close(streams: self.view.withLock { $0.streams }) {
                self.deliveries.enqueue { self.deliverEnd() }
            }
        }
    }

    /// The application let go of the channel without ending it: no handler runs any more.
    func abandon() {
        let driver = life.withLock { life -> (any ConnectionDriver)? in
            guard !life.isFinished else { return nil }
            life.isAbandoned = true
            life.completion = nil
            defer { life.driver = nil }
            return life.driver
        }
        driver?.abandon()
        let streams = view.withLock { $0.streams }
        microphone.close()
        camera.close(streams: streams) {}
        for stream in streams { stream.terminate() }
        events.finish()
    }

    // MARK: Access to the driver

    /// The driver while the connection has one and is not ending.
    var liveDriver: (any ConnectionDriver)? { life.withLock { $0.isEnding ? nil : $0.driver } }

    /// Queues a message for a data channel.
    func send(_ data: Data, label: String) -> SoraError? {
        switch outgoing.put(data, label: label) {
        case .refused(let error): return error
        case .queued(let wakesDriver):
            if wakesDriver { life.withLock { $0.driver }?.outgoingMessagesAvailable() }
            return nil
        }
    }

    // MARK: Reports

    /// Queues a report of the driver.
    ///
    /// - Parameter completion: runs after the application's handlers for it have returned, or at once in its turn when
    ///   there is nobody to tell.
    func deliver(_ report: ConnectionReport, completion: (@Sendable () -> Void)? = nil) {
        deliveries.enqueue({ [weak self] in self?.handle(report) }, completion: completion)
    }

    private func handle(_ report: ConnectionReport) {
        guard let channel, !life.withLock({ $0.isOver || $0.isAbandoned }) else { return }
        let handlers = self.handlers
        switch report {
        case .webSocketOpened(let url):
            view.withLock { if $0.contactUrl == nil { $0.contactUrl = url } }
        case .webSocketMessage(let message):
            webSocketHandlers.value.onReceive?(message)
        case .signalingText(let text):
            handlers.onReceiveSignalingJSON?(text)
            publish(event(.signalingReceivedJSON, signalingJSON: text))
        case .signalingProcessed(let text):
            guard let handler = handlers.signaling else { return }
            switch Signaling.decode(Data(text.utf8)) {
            case .success(let signaling): handler(signaling)
            case .failure(let error):
                Logger.error(
                    type: .signalingChannel,
                    message: "cannot decode signaling message: \(error.localizedDescription)")
            }
        case .offerTaken(let facts):
            view.withLock { view in
                view.connectedUrl = facts.url
                view.clientId = facts.clientId
                view.bundleId = facts.bundleId
                view.connectionId = facts.connectionId
                view.peerConnection = RTCPeerConnection(facts.peer)
            }
        case .redirected:
            let streams = view.withLock { view in
                view.epoch += 1
                view.peerConnection = nil
                defer { view.streams = [] }
                return view.streams
            }
            for stream in streams { stream.terminate() }
        case .counts(let connections, let publishers, let subscribers):
            view.withLock { view in
                view.connectionCount = connections
                view.publisherCount = publishers
                view.subscriberCount = subscribers
            }
        case .streamAdded(let stream):
            let isNew = view.withLockUnchecked { view in
                guard !view.streams.contains(where: { $0.streamId == stream.streamId }) else { return false }
                view.streams.append(stream)
                return true
            }
            guard isNew else { return }
            handlers.onAddStream?(stream)
            publish(event(.streamAdded, streamId: stream.streamId))
        case .streamRemoved(let id):
            let removed = view.withLock { view -> ConnectedStream? in
                guard let index = view.streams.firstIndex(where: { $0.streamId == id }) else { return nil }
                return view.streams.remove(at: index)
            }
            guard let removed else { return }
            handlers.onRemoveStream?(removed)
            publish(event(.streamRemoved, streamId: id))
            removed.terminate()
        case .connected:
            deliverConnected(channel, handlers)
        case .dataChannelOpened(let label):
            handlers.onDataChannelOpened?(channel, label)
            publish(event(.dataChannelOpened, dataChannelLabel: label))
        case .dataChannelsAvailable:
            handlers.onDataChannel?(channel)
            publish(event(.dataChannelAvailable))
        case .dataChannelMessage(let label, let data):
            handlers.onDataChannelMessage?(channel, label, data)
            publish(event(.dataChannelMessage, dataChannelLabel: label, dataChannelMessage: data))
        }
    }

    private func deliverConnected(_ channel: MediaChannel, _ handlers: MediaChannelHandlers) {
        let completion = life.withLock { life -> ((MediaChannel?, (any Error)?) -> Void)?? in
            // A cancellation or an end that was quicker reports itself.
            guard !life.isEnding, !life.wasConnected, progress.settle(.completed) else { return .none }
            life.wasConnected = true
            defer { life.completion = nil }
            return .some(life.completion)
        }
        guard let completion else { return }
        view.withLock { if $0.state == .connecting { $0.state = .connected } }
        completion?(channel, nil)
        sora?.handlers.onConnect?(channel, nil)
        sora?.events.publish(event(.connected))
        self.handlers.onConnect?(nil)
        publish(event(.connected))
    }

    private func deliverEnd() {
        let (rawError, wasConnected, completion) = life.withLock { life in
            defer {
                life.completion = nil
                life.driver = nil
                life.isOver = true
            }
            if !life.wasConnected, progress.state == .canceled { life.rawError = SoraError.connectionCancelled }
            return (life.rawError, life.wasConnected, life.completion)
        }
        let streams = view.withLock { view in
            view.contactUrl = nil
            view.connectedUrl = nil
            defer { view.streams = [] }
            return view.streams
        }
        for stream in streams { stream.terminate() }
        view.withLock { $0.state = .disconnected }
        guard let channel else { return events.finish() }
        let sora = self.sora
        if !wasConnected {
            let error = rawError ?? SoraError.connectionCancelled
            completion?(nil, error)
            sora?.handlers.onConnect?(nil, error)
            sora?.events.publish(event(.connectFailed, error: SoraEventError(error)))
            handlers.onConnect?(error)
            publish(event(.connectFailed, error: SoraEventError(error)))
        }
        if let sora, sora.remove(channel) {
            sora.handlers.onRemoveMediaChannel?(channel)
            sora.events.publish(event(.mediaChannelRemoved))
            sora.handlers.onDisconnect?(channel, rawError)
            sora.events.publish(event(.disconnected, error: rawError.map(SoraEventError.init)))
        }
        let closeEvent = SoraCloseEvent(rawError: rawError)
        handlers.legacyDisconnect?(rawError)
        handlers.onDisconnect?(closeEvent)
        publish(event(.disconnected, closeEvent: closeEvent))
        events.finish()
    }

    // MARK: Events

    func publish(_ kind: SoraEventKind, streamId: String, isEnabled: Bool) {
        publish(event(kind, streamId: streamId, isEnabled: isEnabled))
    }

    private func publish(_ event: SoraEvent) { events.publish(event) }

    /// An event with the identity of the connection as it is now.
    func event(
        _ kind: SoraEventKind, error: SoraEventError? = nil, closeEvent: SoraCloseEvent? = nil,
        streamId: String? = nil, isEnabled: Bool? = nil, signalingJSON: String? = nil,
        dataChannelLabel: String? = nil, dataChannelMessage: Data? = nil
    ) -> SoraEvent {
        let (connectionId, epoch) = view.withLock { ($0.connectionId, $0.epoch) }
        return SoraEvent(
            kind, connectionId: connectionId, transportEpoch: epoch, error: error, closeEvent: closeEvent,
            streamId: streamId, isEnabled: isEnabled, signalingJSON: signalingJSON,
            dataChannelLabel: dataChannelLabel, dataChannelMessage: dataChannelMessage)
    }
}
