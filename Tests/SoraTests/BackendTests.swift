#if Media
import Foundation
import SoraDevices
import TestSupport
import Testing

@testable import Sora

@Suite(.serialized, .leavesNoObjects) struct BackendTests {
    typealias Position = CameraDescription.Position
    func positions(_ names: [String], _ environment: [String: String] = [:]) -> [Position] {
        SystemCameras.positions(names.map { (id: "id-\($0)", name: $0) }, environment: environment)
    }

    @Test func camerasHavePositionsByOrderNameOrEnvironment() {
        #expect(positions([]) == [])
        #expect(positions(["A"]) == [.front])
        #expect(positions(["A", "B", "C"]) == [.front, .back, .unspecified])
        #expect(positions(["Rear Camera", "Front Camera"]) == [.back, .front])
        #expect(positions(["Back Camera"]) == [.back])
        #expect(positions(["A", "B", "C"], ["SORA_FRONT_CAMERA": "id-C"]) == [.back, .unspecified, .front])
        #expect(positions(["A", "B"], ["SORA_BACK_CAMERA": "id-A", "SORA_FRONT_CAMERA": "gone"]) == [.back, .front])
    }

    @Test func formatsOfOneSizeAreOne() {  // DEV2
        let formats = SystemCameras.formats([
            CameraFormat(width: 1920, height: 1080, pixelFormat: "YUY2", framerates: [5...5]),
            CameraFormat(width: 640, height: 480, pixelFormat: "YUY2", framerates: [30...30]),
            CameraFormat(width: 1920, height: 1080, mediaType: "image/jpeg", framerates: [30...30, 5...5]),
        ])
        #expect(formats.count == 2)
        #expect(formats[0].frameRates == [5...5, 30...30])
        #expect(formats[1].size == CameraDescription.Size(width: 640, height: 480))
    }

    func device(_ id: String, _ kind: MediaDevice.Kind = .speaker, isDefault: Bool = false, port: String? = nil)
        -> MediaDevice
    {
        MediaDevice(kind: kind, id: id, name: id, isDefault: isDefault, port: port)
    }

    @Test func routeChangesHaveTheirReasons() {
        let built = device("built", isDefault: true)
        let usb = device("usb", isDefault: true)
        func demoted(_ device: MediaDevice) -> MediaDevice {
            var device = device
            device.isDefault = false
            return device
        }
        #expect(SystemAudioRoutes.change(from: [built], to: [demoted(built), usb]) == .deviceCame)
        #expect(SystemAudioRoutes.change(from: [demoted(built), usb], to: [built]) == .deviceWent)
        #expect(SystemAudioRoutes.change(from: [built, demoted(usb)], to: [demoted(built), usb]) == .choice)
        #expect(SystemAudioRoutes.change(from: [built], to: [built, demoted(usb)]) == nil)
        let headphones = device("built", isDefault: true, port: "analog-output-headphones")
        #expect(SystemAudioRoutes.change(from: [built], to: [headphones]) == .unknown)
    }

    @Test func routeNamesItsPorts() {
        let route = SystemAudioRoutes.route([
            device("alsa_output.pci", isDefault: true, port: "analog-output-headphones"),
            device("alsa_output.hdmi"), device("alsa_input.usb-cam", .microphone, isDefault: true),
        ])
        #expect(route.outputs.map(\.kind) == [.headphones])
        #expect(route.inputs.map(\.kind) == [.usb] && route.inputs.first?.id == "alsa_input.usb-cam")
        let shown = AVAudioSessionRouteDescription(route)
        #expect(shown.outputs.map(\.portType) == [.headphones] && shown.outputs.first?.portName == "alsa_output.pci")
        #expect(shown.inputs.map(\.portType) == [.usbAudio] && shown.inputs.first?.uid == "alsa_input.usb-cam")
    }

    @Test func devicesThatAreNotThereGiveSoraErrors() async {
        #expect(throws: SoraError.self) {
            try SystemCameras().start(
                camera: "gone", size: CameraDescription.Size(width: 320, height: 240), frameRate: 30,
                onFrame: { _ in }, onFailure: { _ in })
        }
    }
}
#endif
