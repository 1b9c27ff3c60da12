import Foundation

/// The two serial queues on which the SDK does its own work with cameras and sound.
public enum SoraDispatcher {
    /// For work on cameras.
    case camera
    /// For work on sound.
    case audio

    private static let cameraQueue = DispatchQueue(label: "sora.camera")
    private static let audioQueue = DispatchQueue(label: "sora.audio")

    /// Runs `block` after everything that was put into the queue before.
    public static func async(on queue: SoraDispatcher, block: @escaping () -> Void) {
        let job = Transfer(block)
        queue.dispatchQueue.async { job.value() }
    }

    var dispatchQueue: DispatchQueue {
        switch self {
        case .camera: Self.cameraQueue
        case .audio: Self.audioQueue
        }
    }
}
