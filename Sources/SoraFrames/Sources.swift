/// What a source of media reports, in order, from one thread of its own.
package enum MediaSourceEvent: Sendable {
    case video(VideoFrame)
    case audio(AudioFrame)
    /// The material is at its end. Nothing follows.
    case ended
    /// The source broke and has stopped. Nothing follows.
    case failed(DeviceError)
}

/// A camera, a microphone, a screen, a file or a test pattern.
///
/// `start` gives frames to `sink` until `stop`, `.ended` or `.failed`; afterwards it can be started again.
/// After `stop` has returned no frame arrives any more. `stop` may be called any number of times, but not from inside
/// the sink. Timestamps of pictures and sound of one source share one clock, so that they can be kept in step.
package protocol MediaSource: AnyObject, Sendable {
    var hasVideo: Bool { get }
    var hasAudio: Bool { get }
    func start(_ sink: @escaping @Sendable (MediaSourceEvent) -> Void) throws(DeviceError)
    func stop()
}

/// Takes pictures: a window, a snapshot, a counter.
package protocol VideoSink: AnyObject, Sendable {
    /// Called on any thread, returns quickly.
    func consume(_ frame: VideoFrame)
}

/// Takes sound: a speaker, a level meter.
package protocol AudioSink: AnyObject, Sendable {
    /// Called on any thread, returns quickly.
    func consume(_ frame: AudioFrame)
}

/// Takes coded frames: a recorder.
package protocol EncodedSink: AnyObject, Sendable {
    func consume(_ frame: EncodedVideoFrame)
    func consume(_ frame: EncodedAudioFrame)
}

/// What can go wrong with files and devices.
package enum DeviceError: Error, Equatable, Sendable, CustomStringConvertible {
    case fileNotFound(path: String)
    case fileNotReadable(path: String, reason: String)
    /// Exists, but holds no picture or sound that can be decoded.
    case undecodable(path: String, reason: String)
    case fileNotWritable(path: String, reason: String)
    /// No device with this id, or none at all.
    case noSuchDevice(String)
    case deviceFailed(device: String, reason: String)
    /// A service or a plug-in is missing: what, and how to get it.
    case unavailable(what: String, remedy: String)
    case alreadyRunning

    package var description: String {
        switch self {
        case .fileNotFound(let path): "there is no file \(path)"
        case .fileNotReadable(let path, let reason): "\(path) cannot be read: \(reason)"
        case .undecodable(let path, let reason): "\(path) holds no media that can be decoded: \(reason)"
        case .fileNotWritable(let path, let reason): "\(path) cannot be written: \(reason)"
        case .noSuchDevice(let id): "there is no device \(id); list the devices to see what is there"
        case .deviceFailed(let device, let reason): "\(device) failed: \(reason)"
        case .unavailable(let what, let remedy): "\(what) is not available; \(remedy)"
        case .alreadyRunning: "it is running already; stop it before starting it again"
        }
    }
}
