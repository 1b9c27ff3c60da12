import Foundation

/// How sound is used.
public enum AudioMode: Sendable {
    /// A category of the application's choice.
    case `default`(category: AVAudioSession.Category, output: AudioOutput)
    /// Sound for calls with pictures.
    case videoChat
    /// Sound for calls without pictures.
    case voiceChat(output: AudioOutput)
}

/// Where sound comes out.
public enum AudioOutput: Sendable {
    /// Where the system sends it.
    case `default`
    /// At a loudspeaker, if there is one.
    case speaker
}

/// Applies an ``AudioMode`` to an audio session.
enum AudioModeChange {
    static func apply(
        _ mode: AudioMode, options: AVAudioSession.CategoryOptions, to session: RTCAudioSession
    ) throws {
        session.lockForConfiguration()
        defer { session.unlockForConfiguration() }
        let output: AudioOutput? =
            switch mode {
            case .default(_, let output), .voiceChat(let output): output
            case .videoChat: nil
            }
        // Coming back from the speaker needs the override to go first.
        if output == .default, session.category == .playAndRecord { try session.overrideOutputAudioPort(.none) }
        let allOptions = output == .speaker ? options.union(.defaultToSpeaker) : options
        switch mode {
        case .default(let category, _):
            try session.setCategory(category, with: allOptions)
            try session.setMode(.default)
        case .videoChat:
            try session.setCategory(.playAndRecord, with: options)
            try session.setMode(.videoChat)
        case .voiceChat(let output):
            try session.setCategory(.playAndRecord, with: allOptions)
            try session.setMode(.voiceChat)
            try session.overrideOutputAudioPort(output == .speaker ? .speaker : .none)
        }
    }
}
