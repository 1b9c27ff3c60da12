/// How the screen is captured.
public struct ScreenCaptureSettings {
    static let rates = 1...120

    /// Upper bound of the frame rate. Clamped to 1...120 by the initializer, and again where it is used.
    public var targetFPS: Int
    /// Changes or drops (nil) a captured picture before it is sent.
    public var videoSampleBufferTransformer: ((CMSampleBuffer) -> CMSampleBuffer?)?
    /// Is told about trouble; the capture goes on.
    public var onRuntimeError: ((any Error) -> Void)?

    public init(
        targetFPS: Int = 15, videoSampleBufferTransformer: ((CMSampleBuffer) -> CMSampleBuffer?)? = nil,
        onRuntimeError: ((any Error) -> Void)? = nil
    ) {
        self.targetFPS = Self.clamped(targetFPS)
        self.videoSampleBufferTransformer = videoSampleBufferTransformer
        self.onRuntimeError = onRuntimeError
    }

    static func clamped(_ rate: Int) -> Int { min(max(rate, rates.lowerBound), rates.upperBound) }
}
