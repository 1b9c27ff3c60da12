#if Media
import CPulse
import Dispatch
import SoraFrames
import SoraLocking
import Synchronization

/// What the sound server (PulseAudio, or PipeWire in its place) says about microphones and speakers.
///
/// One connection per process, made when first asked for. GStreamer's device provider does not report a change of the
/// default device, hence libpulse itself.
final class SoundServer: @unchecked Sendable {
    // Sendable is proven: `loop` and `context` never change and are used under the loop's lock or on its thread;
    // everything else stands behind a lock of ours.
    static let changes = ChangeList()
    private static let shared = Locked<SoundServer?>(nil)

    private struct State {
        var isAlive = false
        var defaultSink = ""
        var defaultSource = ""
        var speakers: [MediaDevice] = []
        var microphones: [MediaDevice] = []
        /// Lists under construction.
        var newSpeakers: [MediaDevice] = []
        var newMicrophones: [MediaDevice] = []
        /// An event came while a look was on its way: look again.
        var isLooking = false
        var mustLookAgain = false
    }
    private let state = Locked(State())
    private let loop: OpaquePointer
    private let context: OpaquePointer
    private let settled = DispatchSemaphore(value: 0)
    private let isSettled = Atomic<Bool>(false)

    /// Nil when no sound server runs; asked again each time. Waits at most two seconds.
    static func current(connects: Bool = true) -> SoundServer? {
        shared.withLock { shared in
            if let server = shared, server.state.withLock({ $0.isAlive }) { return server }
            guard connects else { return nil }
            shared?.close()
            shared = SoundServer()
            return shared
        }
    }

    var devices: [MediaDevice] {
        state.withLock { state in
            (state.microphones + state.speakers).map { device in
                var device = device
                device.isDefault =
                    device.id == (device.kind == .speaker ? state.defaultSink : state.defaultSource)
                return device
            }
        }
    }

    private init?() {
        guard let loop = pa_threaded_mainloop_new() else { return nil }
        guard let context = pa_context_new(pa_threaded_mainloop_get_api(loop), "Sora") else {
            pa_threaded_mainloop_free(loop)
            return nil
        }
        self.loop = loop
        self.context = context
        let me = Unmanaged.passUnretained(self).toOpaque()
        pa_context_set_state_callback(context, { _, raw in SoundServer.at(raw)?.stateChanged() }, me)
        pa_context_set_subscribe_callback(context, { _, _, _, raw in SoundServer.at(raw)?.look() }, me)
        let isConnecting =
            pa_context_connect(context, nil, PA_CONTEXT_NOAUTOSPAWN, nil) == 0 && pa_threaded_mainloop_start(loop) == 0
        let isInTime = isConnecting && settled.wait(timeout: .now() + .seconds(2)) == .success
        guard isInTime, state.withLock({ $0.isAlive }) else {
            close()
            return nil
        }
    }

    private func close() {
        pa_threaded_mainloop_stop(loop)
        pa_context_disconnect(context)
        pa_context_unref(context)
        pa_threaded_mainloop_free(loop)
    }

    private static func at(_ raw: UnsafeMutableRawPointer?) -> SoundServer? {
        raw.map { Unmanaged<SoundServer>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: On the loop's thread

    private func settle() {
        if !isSettled.exchange(true, ordering: .acquiringAndReleasing) { settled.signal() }
    }

    private func stateChanged() {
        switch pa_context_get_state(context) {
        case PA_CONTEXT_READY:
            let mask =
                PA_SUBSCRIPTION_MASK_SINK.rawValue | PA_SUBSCRIPTION_MASK_SOURCE.rawValue
                | PA_SUBSCRIPTION_MASK_SERVER.rawValue
            drop(pa_context_subscribe(context, pa_subscription_mask_t(mask), nil, nil))
            look()
        case PA_CONTEXT_FAILED, PA_CONTEXT_TERMINATED:
            state.withLock {
                $0.isAlive = false
                $0.speakers = []
                $0.microphones = []
            }
            if isSettled.load(ordering: .acquiring) { Self.changes.announce() }
            settle()
        default: break
        }
    }

    /// Asks for the defaults, the speakers, the microphones; answers come in this order.
    private func look() {
        let isFree = state.withLock { state in
            if state.isLooking {
                state.mustLookAgain = true
                return false
            }
            state.isLooking = true
            state.newSpeakers = []
            state.newMicrophones = []
            return true
        }
        guard isFree else { return }
        let me = Unmanaged.passUnretained(self).toOpaque()
        drop(
            pa_context_get_server_info(
                context, { _, info, raw in if let info { SoundServer.at(raw)?.take(info.pointee) } }, me))
        drop(
            pa_context_get_sink_info_list(
                context, { _, info, end, raw in if end == 0, let info { SoundServer.at(raw)?.take(info.pointee) } },
                me))
        drop(
            pa_context_get_source_info_list(
                context,
                { _, info, end, raw in
                    if end == 0, let info {
                        SoundServer.at(raw)?.take(info.pointee)
                    } else {
                        SoundServer.at(raw)?.publish()
                    }
                }, me))
    }

    private func drop(_ operation: OpaquePointer?) { if let operation { pa_operation_unref(operation) } }

    private func take(_ info: pa_server_info) {
        state.withLock {
            $0.defaultSink = info.default_sink_name.map { String(cString: $0) } ?? ""
            $0.defaultSource = info.default_source_name.map { String(cString: $0) } ?? ""
        }
    }

    private func take(_ info: pa_sink_info) {
        guard let id = info.name.map({ String(cString: $0) }) else { return }
        let name = info.description.map { String(cString: $0) } ?? id
        let port = info.active_port.map { Self.port($0.pointee.name) } ?? nil
        state.withLock { $0.newSpeakers.append(MediaDevice(kind: .speaker, id: id, name: name, port: port)) }
    }

    private func take(_ info: pa_source_info) {
        guard let id = info.name.map({ String(cString: $0) }) else { return }
        let name = info.description.map { String(cString: $0) } ?? id
        let port = info.active_port.map { Self.port($0.pointee.name) } ?? nil
        let isMonitor = info.monitor_of_sink != UInt32.max
        state.withLock {
            $0.newMicrophones.append(
                MediaDevice(kind: .microphone, id: id, name: name, isMonitor: isMonitor, port: port))
        }
    }

    private static func port(_ name: UnsafePointer<CChar>?) -> String? { name.map { String(cString: $0) } }

    private func publish() {
        let (isFirst, again): (Bool, Bool) = state.withLock { state in
            defer {
                state.isAlive = true
                state.isLooking = false
                state.mustLookAgain = false
            }
            state.speakers = state.newSpeakers
            state.microphones = state.newMicrophones
            return (!state.isAlive, state.mustLookAgain)
        }
        settle()
        if !isFirst { Self.changes.announce() }
        if again { look() }
    }
}
#endif
