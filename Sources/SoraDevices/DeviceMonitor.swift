#if Media
import CGStreamer
import SoraFrames
import SoraLocking

/// Lists the machine's cameras, microphones and speakers, and reports when they come, go or change.
///
/// Cameras come from PipeWire, or from V4L2 where PipeWire has none; sound devices from PulseAudio's interface, which
/// PipeWire serves too. PipeWire must run before the first use in a process, to be asked for cameras.
package final class DeviceMonitor: Sendable {
    private let kinds: [MediaDevice.Kind]
    private let subscriptions: (camera: Int?, sound: Int?)

    /// Starts to watch. `onChange` gets the devices of these kinds, on a thread of the monitor, after each change.
    package init(
        kinds: [MediaDevice.Kind] = [.camera, .microphone, .speaker],
        onChange: (@Sendable ([MediaDevice]) -> Void)? = nil
    ) throws(DeviceError) {
        self.kinds = kinds
        try GStreamer.requireRunning()
        guard let onChange else {
            subscriptions = (nil, nil)
            return
        }
        let last = Locked(Self.devices(kinds))
        let check: @Sendable () -> Void = {
            // The lock keeps the calls of two services' threads apart, and in order.
            last.withLock { last in
                // Connecting anew must not happen on a service's own thread.
                let now = Self.devices(kinds, connects: false)
                if now != last {
                    last = now
                    onChange(now)
                }
            }
        }
        subscriptions = (
            kinds.contains(.camera) ? CameraServer.changes.subscribe(check) : nil,
            kinds.contains(.microphone) || kinds.contains(.speaker) ? SoundServer.changes.subscribe(check) : nil
        )
    }

    deinit { stop() }

    /// The devices at this moment.
    package var devices: [MediaDevice] { Self.devices(kinds) }

    /// No `onChange` begins after this returns. Not to be called inside `onChange`.
    package func stop() {
        if let id = subscriptions.camera { CameraServer.changes.unsubscribe(id) }
        if let id = subscriptions.sound { SoundServer.changes.unsubscribe(id) }
    }

    /// What is there at this moment; empty when no device service runs.
    package static func list(_ kind: MediaDevice.Kind) -> [MediaDevice] { devices([kind]) }

    private static func devices(_ kinds: [MediaDevice.Kind], connects: Bool = true) -> [MediaDevice] {
        var output: [MediaDevice] = []
        if kinds.contains(.camera) { output += CameraServer.current(connects: connects)?.devices() ?? [] }
        if kinds.contains(.microphone) || kinds.contains(.speaker) {
            output += (SoundServer.current(connects: connects)?.devices ?? []).filter { kinds.contains($0.kind) }
        }
        return output
    }
}

/// Who wants to hear of changes.
final class ChangeList: Sendable {
    private struct Subscribers {
        var next = 0
        var all: [Int: @Sendable () -> Void] = [:]
    }
    /// Held while subscribers are called, so that `unsubscribe` waits for a call on its way.
    private let subscribers = Locked(Subscribers())

    func subscribe(_ body: @escaping @Sendable () -> Void) -> Int {
        subscribers.withLock {
            $0.next += 1
            $0.all[$0.next] = body
            return $0.next
        }
    }
    func unsubscribe(_ id: Int) { _ = subscribers.withLock { $0.all.removeValue(forKey: id) } }
    func announce() { subscribers.withLock { for subscriber in $0.all.values { subscriber() } } }
}

/// The one GstDeviceMonitor of the process, for cameras.
///
/// It is never stopped: stopping PipeWire's device provider (1.22, 0.3.65) corrupts the heap now and then.
final class CameraServer: @unchecked Sendable {
    // Sendable is proven: the pointers never change, and GstDeviceMonitor and GstBus may be used from any thread.
    static let changes = ChangeList()
    private let pointer: UnsafeMutablePointer<GstDeviceMonitor>
    private let bus: UnsafeMutablePointer<GstBus>

    private static let shared = Locked<CameraServer?>(nil)

    /// Nil when there is no service that knows cameras; asked again each time.
    static func current(connects: Bool = true) -> CameraServer? {
        guard GStreamer.failure == nil else { return nil }
        return shared.withLock { shared in
            if shared == nil, connects { shared = CameraServer() }
            return shared
        }
    }

    private init?() {
        guard let pointer = sora_gst_monitor_new() else { return nil }
        gst_device_monitor_add_filter(pointer, "Video/Source", nil)
        guard let bus = gst_device_monitor_get_bus(pointer), gst_device_monitor_start(pointer) != 0 else {
            sora_gst_unref(pointer)
            return nil
        }
        self.pointer = pointer
        self.bus = bus
        _ = DeviceThread { [self] in
            while true {
                guard let message = gst_bus_timed_pop(self.bus, sora_gst_none()) else { continue }
                let kind = sora_gst_kind(message)
                sora_gst_message_unref(message)
                switch kind {
                case SORA_GST_DEVICE_ADDED, SORA_GST_DEVICE_REMOVED, SORA_GST_DEVICE_CHANGED: Self.changes.announce()
                default: break
                }
            }
        }
    }

    func devices() -> [MediaDevice] {
        let all = withDevices { device in Found(device) }
        let paths = Set(all.filter { $0.provider != "GstV4l2Device" }.compactMap(\.path))
        // A camera that PipeWire has is not listed again by its V4L2 name.
        return all.filter { found in
            found.provider != "GstV4l2Device" || found.path.map { !paths.contains($0) } ?? true
        }.map(\.device)
    }

    /// A GStreamer element that captures from the device.
    static func makeElement(id: String) throws(DeviceError) -> UnsafeMutablePointer<GstElement> {
        var isFound = false
        let elements = current()?.withDevices { device -> UnsafeMutablePointer<GstElement>? in
            guard !isFound, Found(device)?.device.id == id else { return nil }
            isFound = true
            return gst_device_create_element(device, nil)
        }
        guard let element = elements?.first else { throw .noSuchDevice(id) }
        return element
    }

    private struct Found {
        var device: MediaDevice
        var provider: String
        var path: String?

        init?(_ pointer: UnsafeMutablePointer<GstDevice>) {
            provider = String(cString: sora_gst_type_name(pointer))
            func property(_ name: String) -> String? { Self.take(sora_gst_device_property(pointer, name)) }
            let name = Self.take(gst_device_get_display_name(pointer)) ?? "unnamed"
            path = property("api.v4l2.path") ?? property("device.path")
            device = MediaDevice(
                kind: .camera, id: property("node.name") ?? path ?? name, name: name,
                formats: CameraServer.formats(pointer))
        }

        private static func take(_ text: UnsafeMutablePointer<CChar>?) -> String? {
            guard let text else { return nil }
            defer { g_free(text) }
            return String(cString: text)
        }
    }

    private func withDevices<R>(_ body: (UnsafeMutablePointer<GstDevice>) -> R?) -> [R] {
        var output: [R] = []
        let list = gst_device_monitor_get_devices(pointer)
        var next = list
        while let item = next {
            if let data = item.pointee.data {
                if let result = body(data.assumingMemoryBound(to: GstDevice.self)) { output.append(result) }
                sora_gst_unref(data)
            }
            next = item.pointee.next
        }
        g_list_free(list)
        return output
    }

    private static func formats(_ device: UnsafeMutablePointer<GstDevice>) -> [CameraFormat] {
        guard let caps = gst_device_get_caps(device) else { return [] }
        defer { sora_gst_caps_unref(caps) }
        var output: [CameraFormat] = []
        for index in 0..<gst_caps_get_size(caps) {
            guard let structure = gst_caps_get_structure(caps, index), let name = gst_structure_get_name(structure)
            else { continue }
            let mediaType = String(cString: name)
            var width: gint = 0
            var height: gint = 0
            guard mediaType == "video/x-raw" || mediaType == "image/jpeg",
                gst_structure_get_int(structure, "width", &width) != 0,
                gst_structure_get_int(structure, "height", &height) != 0
            else { continue }
            let pixels = gst_structure_get_string(structure, "format").map { String(cString: $0) } ?? ""
            let rates = Rates()
            sora_gst_visit_rates(
                structure,
                { low, high, raw in
                    guard let raw, low.isFinite, high.isFinite, low >= 0, low <= high else { return }
                    Unmanaged<Rates>.fromOpaque(raw).takeUnretainedValue().ranges.append(low...high)
                }, Unmanaged.passUnretained(rates).toOpaque())
            output.append(
                CameraFormat(
                    width: Int(width), height: Int(height), mediaType: mediaType, pixelFormat: pixels,
                    framerates: rates.ranges))
        }
        return output
    }

    private final class Rates {
        var ranges: [ClosedRange<Double>] = []
    }
}
#endif
