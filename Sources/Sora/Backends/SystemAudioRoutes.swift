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
                guard let reason = reason(from: old, to: devices) else { return }
                AudioRouteObserver.shared.routeChanged(to: route(devices), reason: reason)
            }
            guard let watch else { return }
            let first = watch.devices
            known.write(first)
            if !first.isEmpty { _ = RTCAudioSession.sharedInstance().replaceRoute(route(first)) }
            monitor.write(watch)
        }
    }

    /// Why the route is another one; nil when the default devices are the same.
    static func reason(from old: [MediaDevice], to new: [MediaDevice]) -> AVAudioSession.RouteChangeReason? {
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
        if !oldDefaults.subtracting(after).isEmpty { return .oldDeviceUnavailable }
        if !newDefaults.subtracting(before).isEmpty { return .newDeviceAvailable }
        return oldDefaults == newDefaults ? .unknown : .override
    }

    static func route(_ devices: [MediaDevice]) -> AVAudioSessionRouteDescription {
        func ports(_ kind: MediaDevice.Kind) -> [AVAudioSessionPortDescription] {
            devices.filter { $0.kind == kind && $0.isDefault }.map { device in
                AVAudioSessionPortDescription(
                    portName: device.name, portType: port(device), uid: device.id, channels: nil)
            }
        }
        return AVAudioSessionRouteDescription(inputs: ports(.microphone), outputs: ports(.speaker))
    }

    /// The kind of port, from the names that the sound server gives to device and port.
    static func port(_ device: MediaDevice) -> AVAudioSession.Port {
        let text = "\(device.port ?? "") \(device.id)".lowercased()
        if device.kind == .speaker {
            if text.contains("headphone") || text.contains("headset") { return .headphones }
            if text.contains("bluez") || text.contains("a2dp") { return .bluetoothA2DP }
            if text.contains("hdmi") { return .HDMI }
            if text.contains("usb") { return .usbAudio }
            return text.contains("lineout") || text.contains("line-out") ? .lineOut : .builtInSpeaker
        }
        if text.contains("bluez") { return .bluetoothHFP }
        if text.contains("headset") { return .headsetMic }
        if text.contains("linein") || text.contains("line-in") { return .lineIn }
        return text.contains("usb") ? .usbAudio : .builtInMic
    }
}
#endif
