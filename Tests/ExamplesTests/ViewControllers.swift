// Code as iOS teams write it, compiled here in Swift 6 mode; `Tests/APIExamplesSwift5Tests` has the same in Swift 5 mode.
import Foundation
import Sora

/// What UIKit's class means to the code below: on the main actor, with a view.
@MainActor
class UIViewController {
    let view = UIView()
    func viewDidLoad() {}
}

/// A publisher and viewer with views, callbacks and a switch over the end.
final class VideoChatViewController: UIViewController {
    let senderView = VideoView()
    private(set) var receiverViews: [String: VideoView] = [:]
    private(set) var statusText = ""
    private(set) var members: Int?
    private(set) var metadataName: String?
    private(set) var headerLengths: [String: Double] = [:]
    private var task: ConnectionTask?

    override func viewDidLoad() {
        super.viewDidLoad()
        senderView.contentMode = .scaleAspectFill
        view.addSubview(senderView)
    }

    func configuration(url: URL) -> Configuration {
        var configuration = Configuration(urlCandidates: [url], channelId: "room", role: .sendrecv)
        configuration.signalingConnectMetadata = ["access_token": "secret"]
        configuration.cameraSettings = CameraSettings(resolution: .vga480p, frameRate: 30, position: .front)
        configuration.dataChannelSignaling = true
        configuration.dataChannels = [
            ["label": "#chat", "direction": "sendrecv", "header": [["type": "sender_connection_id"]]]
        ]
        install(in: configuration)
        return configuration
    }

    private func install(in configuration: Configuration) {
        let publisher = configuration.publisherStreamId
        configuration.mediaChannelHandlers.onAddStream = { @Sendable [weak self] stream in
            nonisolated(unsafe) let stream = stream
            Task { @MainActor in self?.add(stream, isLocal: stream.streamId == publisher) }
        }
        configuration.mediaChannelHandlers.onRemoveStream = { @Sendable [weak self] stream in
            let id = stream.streamId
            Task { @MainActor in self?.receiverViews.removeValue(forKey: id)?.removeFromSuperview() }
        }
        configuration.mediaChannelHandlers.onDisconnect = { @Sendable [weak self] event in
            Task { @MainActor in self?.show(event) }
        }
        configuration.mediaChannelHandlers.onDataChannelMessage = { @Sendable [weak self] _, label, data in
            Task { @MainActor in self?.statusText = "\(label) \(data.count)" }
        }
        configuration.mediaChannelHandlers.onReceiveSignalingJSON = { @Sendable [weak self] json in
            guard case .success(let signaling) = Signaling.decode(Data(json.utf8)) else { return }
            nonisolated(unsafe) let received = signaling
            Task { @MainActor in self?.receive(received) }
        }
    }

    func connect(url: URL) {
        task = Sora.shared.connect(configuration: configuration(url: url)) { @Sendable [weak self] _, error in
            if let error = error {
                Task { @MainActor in self?.statusText = error.localizedDescription }
            }
        }
    }

    func receive(_ signaling: Signaling) {
        switch signaling {
        case .notify(let notify):
            members = notify.connectionCount
            if let metadata = notify.metadata as? [String: Any] { metadataName = metadata["name"] as? String }
        case .offer(let offer):
            for channel in offer.dataChannels ?? [] {
                guard let label = channel["label"] as? String, let headers = channel["header"] as? [[String: Any]]
                else { continue }
                for header in headers { headerLengths[label] = (header["length"] as! Double) }
            }
        default:
            break
        }
    }

    private func add(_ stream: MediaStream, isLocal: Bool) {
        let target = isLocal ? senderView : VideoView()
        stream.videoRenderer = target
        guard !isLocal else { return }
        receiverViews[stream.streamId] = target
        view.addSubview(target)
    }

    func show(_ event: SoraCloseEvent) {
        switch event {
        case .ok(let code, let reason):
            statusText = "\(code) \(reason)"
        case .error(let error):
            statusText = error.localizedDescription
        }
    }

    func leave() {
        task?.cancel()
        for channel in Sora.shared.mediaChannels { channel.disconnect(error: nil) }
    }
}
