#if canImport(UIKit)
import UIKit
#endif
import Foundation
import Sora

@MainActor
final class RoomScreen {
    let remoteView = VideoView()
    private var task: ConnectionTask?

    func connect(to url: URL) {
        let configuration = Configuration(url: url, channelId: "room", role: .recvonly)
        let publisher = configuration.publisherStreamId
        configuration.mediaChannelHandlers.onAddStream = { @Sendable [weak self] stream in
            guard stream.streamId != publisher else { return }
            nonisolated(unsafe) let stream = stream
            Task { @MainActor in stream.videoRenderer = self?.remoteView }
        }
        task = Sora.shared.connect(configuration: configuration) { @Sendable _, error in
            if let error { Logger.error(type: .user("room"), message: error.localizedDescription) }
        }
    }

    func cancel() { task?.cancel() }
}
