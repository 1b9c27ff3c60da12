import SoraWire

/// How loud a sender has been lately, from the audio-level header extension (RFC 6464).
struct Loudness {
    /// 0 (silence) ... 127 (loudest), smoothed.
    private(set) var level = 0.0
    private var lastPacket: Instant?
    /// Since when the sender has been above the threshold without a pause longer than ``hold``.
    private(set) var speakingSince: Instant?
    private var lastAbove: Instant?

    /// Above this level (−50 dBov) a packet counts as speech.
    static let threshold = 77.0
    /// Pauses between words do not end a speech.
    static let hold: Duration = .milliseconds(800)
    /// Shorter noises do not begin one.
    static let attack: Duration = .milliseconds(200)

    /// - Parameter decibels: the extension's value, -dBov: 0 is the loudest, 127 silence.
    mutating func receive(decibels: UInt8, now: Instant) {
        let value = 127 - Double(min(decibels, 127))
        level = level * 0.8 + value * 0.2
        lastPacket = now
        guard value >= Self.threshold else { return }
        if let last = lastAbove, now - last <= Self.hold {
            if speakingSince == nil { speakingSince = last }
        } else {
            speakingSince = now
        }
        lastAbove = now
    }

    /// Whether the sender is speaking, for long enough to be no mere noise.
    func isSpeaking(at now: Instant) -> Bool {
        guard let since = speakingSince, let last = lastAbove else { return false }
        return now - last <= Self.hold && last - since >= Self.attack
    }
}
