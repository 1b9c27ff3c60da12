import TestSupport
import Testing

extension Trait where Self == LeavesNoObjects {
    /// After each test, no object of devices and files that it made is alive, beside those of the process.
    static var leavesNoObjects: Self {
        .leavesNoObjects(but: [
            // The device services of the machine, and who wants to hear of changes.
            "SoraDevices.CameraServer": 1, "SoraDevices.SoundServer": 1, "SoraDevices.ChangeList": 2,
            // The owner of windows.
            "SoraDevices.WindowThread": 1,
            // The watch over cameras never stops (see `CameraServer`), nor does the owner of windows: each has a thread.
            "SoraDevices.DeviceThread.Body": 2,
        ])
    }
}
