#if Media
import Foundation
internal import SoraDevices
internal import SoraLocking

/// Follows the sound server's default devices and reports changes as changes of the audio route.
enum SystemAudioRoutes {
    private static let monitor = Locked<DeviceMonitor?>(nil)
    private static let hasStarted = Locked(false)

    /// Begins in the background; does nothing the second time.
    static func start() {
        guard !hasStarted.exchange(true) else { return }
        SoraDispatcher.audio.dispatchQueue.async {
            let known = Locked<[MediaDevice]>([])
            let watch = try? DeviceMonitor(kinds: [.microphone, .speaker]) { devices in
                let old = known.exchange(devices)
                guard let change = change(from: old, to: devices) else { return }
                AudioRouteObserver.shared.routeChanged(to: route(devices), by: change)
            }
            guard let watch else { return }
            let first = watch.devices
            known.write(first)
            if !first.isEmpty { AudioRouteObserver.shared.routeFound(route(first)) }
            monitor.write(watch)
        }
    }

    /// Why the route is another one; nil when the default devices are the same.
    static func change(from old: [MediaDevice], to new: [MediaDevice]) -> AudioRoute.Change? {
        func defaults(_ devices: [MediaDevice]) -> [String?] {
            [MediaDevice.Kind.microphone, .speaker].map { kind in
                devices.first { $0.kind == kind && $0.isDefault }.map { "\($0.id) \($0.port ?? "")" }
            }
        }
        func identifiers(_ devices: [MediaDevice]) -> Set<String> { Set(devices.map(\.id)) }
        guard defaults(old) != defaults(new) else { return nil }
        let (before, after) = (identifiers(old), identifiers(new))
        let oldDefaults = Set(old.filter(\.isDefault).map(\.id))
        let newDefaults = Set(new.filter(\.isDefault).map(\.id))
        if !oldDefaults.subtracting(after).isEmpty { return .deviceWent }
        if !newDefaults.subtracting(before).isEmpty { return .deviceCame }
        return oldDefaults == newDefaults ? .unknown : .choice
    }

    static func route(_ devices: [MediaDevice]) -> AudioRoute {
        func ports(_ kind: MediaDevice.Kind) -> [AudioRoute.Port] {
            devices.filter { $0.kind == kind && $0.isDefault }.map { device in
                AudioRoute.Port(name: device.name, kind: port(device), id: device.id)
            }
        }
        return AudioRoute(inputs: ports(.microphone), outputs: ports(.speaker))
    }

    /// The kind of port, from the names that the sound server gives to device and port.
    static func port(_ device: MediaDevice) -> AudioRoute.Kind {
        let text = "\(device.port ?? "") \(device.id)".lowercased()
        if device.kind == .speaker {
            if text.contains("headphone") || text.contains("headset") { return .headphones }
            if text.contains("bluez") || text.contains("a2dp") { return .bluetoothPlayback }
            if text.contains("hdmi") { return .hdmi }
            if text.contains("usb") { return .usb }
            return text.contains("lineout") || text.contains("line-out") ? .lineOut : .builtInSpeaker
        }
        if text.contains("bluez") { return .bluetoothHandsFree }
        if text.contains("headset") { return .headsetMicrophone }
        if text.contains("linein") || text.contains("line-in") { return .lineIn }
        return text.contains("usb") ? .usb : .builtInMicrophone
    }
}
#endif
