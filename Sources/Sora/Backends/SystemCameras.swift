#if Media
import Foundation
internal import SoraDevices
internal import SoraFrames

/// The cameras of PipeWire and V4L2.
///
/// Which one looks to the front is told by `SORA_FRONT_CAMERA` and `SORA_BACK_CAMERA` (unique ids), else by the
/// camera's name, else by the order: the first is `.front`, the second `.back`.
struct SystemCameras: CameraBackend {
    func devices() -> [CameraDescription] {
        let found = DeviceMonitor.list(.camera)
        let positions = Self.positions(
            found.map { (id: $0.id, name: $0.name) }, environment: ProcessInfo.processInfo.environment)
        return zip(found, positions).map { device, position in
            CameraDescription(
                id: device.id, name: device.name, position: position, formats: Self.formats(device.formats))
        }
    }

    func start(
        camera: String, size: CameraDescription.Size, frameRate: Int,
        onFrame: @escaping @Sendable (SoraFrames.VideoFrame) -> Void,
        onFailure: @escaping @Sendable (any Error) -> Void
    ) throws -> any CameraCapture {
        guard let found = DeviceMonitor.list(.camera).first(where: { $0.id == camera }) else {
            throw SoraError.cameraError(reason: DeviceError.noSuchDevice(camera).description)
        }
        do {
            let source = try CameraSource(found, width: size.width, height: size.height, framerate: frameRate)
            try source.start { event in
                switch event {
                case .video(let frame): onFrame(frame)
                case .audio: break
                case .ended: onFailure(SoraError.cameraError(reason: "the camera ended its stream"))
                case .failed(let error): onFailure(SoraError.cameraError(reason: error.description))
                }
            }
            return Capture(source)
        } catch {
            throw SoraError.cameraError(reason: error.description)
        }
    }

    private final class Capture: CameraCapture {
        private let source: CameraSource
        init(_ source: CameraSource) { self.source = source }
        func stop() { source.stop() }
    }

    /// One format per size; the camera source chooses between raw and compressed by the wanted rate.
    static func formats(_ formats: [CameraFormat]) -> [CameraDescription.Format] {
        var found: [CameraDescription.Format] = []
        for format in formats {
            let size = CameraDescription.Size(width: format.width, height: format.height)
            if let index = found.firstIndex(where: { $0.size == size }) {
                for rates in format.framerates where !found[index].frameRates.contains(rates) {
                    found[index].frameRates.append(rates)
                }
            } else {
                found.append(CameraDescription.Format(size: size, frameRates: format.framerates))
            }
        }
        return found
    }

    /// The position of each camera; at most one is `.front` and one `.back`.
    static func positions(
        _ cameras: [(id: String, name: String)], environment: [String: String]
    ) -> [CameraDescription.Position] {
        var positions = [CameraDescription.Position](repeating: .unspecified, count: cameras.count)
        func claim(_ position: CameraDescription.Position, _ matches: (Int) -> Bool) {
            guard !positions.contains(position) else { return }
            if let index = cameras.indices.first(where: { positions[$0] == .unspecified && matches($0) }) {
                positions[index] = position
            }
        }
        if let id = environment["SORA_FRONT_CAMERA"] { claim(.front) { cameras[$0].id == id } }
        if let id = environment["SORA_BACK_CAMERA"] { claim(.back) { cameras[$0].id == id } }
        claim(.front) { cameras[$0].name.lowercased().contains("front") }
        claim(.back) { index in
            let name = cameras[index].name.lowercased()
            return name.contains("rear") || name.contains("back")
        }
        claim(.front) { _ in true }
        claim(.back) { _ in true }
        return positions
    }
}
#endif
