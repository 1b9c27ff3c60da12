import Foundation
internal import SoraLocking

/// The secrets of the live connections, so that they can be hidden by value wherever they turn up.
///
/// Each connection registers its own (proxy password, TURN credentials, metadata texts) and takes them back when it
/// is released. Texts shorter than four characters are not registered: hiding them would make the log unreadable
/// and they are no secrets.
final class SecretRegistry: Sendable {
    static let shared = SecretRegistry()

    private struct State {
        var counts: [String: Int] = [:]
        var variants: [String] = []
    }
    private let state = Locked(State())

    /// All forms in which a registered secret may appear, longest first.
    var variants: [String] { state.withLock { $0.variants } }

    /// Registers secrets until the returned token goes away.
    func register(_ secrets: [String]) -> Registration {
        let kept = secrets.filter { $0.count >= 4 && !Self.harmless.contains($0) }
        change(kept, by: 1)
        return Registration(registry: self, secrets: kept)
    }

    final class Registration: Sendable {
        private let registry: SecretRegistry
        private let secrets: [String]
        fileprivate init(registry: SecretRegistry, secrets: [String]) {
            self.registry = registry
            self.secrets = secrets
        }
        deinit { registry.change(secrets, by: -1) }
    }

    /// Words that appear as values in settings and in ordinary log lines.
    private static let harmless: Set<String> = ["true", "false", "null", "none", "user", "guest"]

    private func change(_ secrets: [String], by step: Int) {
        guard !secrets.isEmpty else { return }
        state.withLock { state in
            for secret in secrets {
                let count = state.counts[secret, default: 0] + step
                state.counts[secret] = count > 0 ? count : nil
            }
            state.variants = Set(state.counts.keys.flatMap(Self.forms)).sorted { $0.count > $1.count }
        }
    }

    /// The text itself, percent-encoded, as a JSON string and in Base64.
    private static func forms(of secret: String) -> [String] {
        var forms = [secret]
        if let percent = secret.addingPercentEncoding(withAllowedCharacters: .alphanumerics) { forms.append(percent) }
        if let query = secret.addingPercentEncoding(withAllowedCharacters: .urlQueryAllowed) { forms.append(query) }
        if let data = try? JSONEncoder().encode(secret), let text = String(data: data, encoding: .utf8) {
            forms.append(String(text.dropFirst().dropLast()))
        }
        forms.append(Data(secret.utf8).base64EncodedString())
        return forms
    }
}
