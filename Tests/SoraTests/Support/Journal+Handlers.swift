import Foundation

@testable import Sora

extension Journal {
    /// Installs handlers that write everything down.
    func record(_ handlers: MediaChannelHandlers) {
        handlers.onConnect = { self.add("channel.onConnect \($0?.localizedDescription ?? "nil")") }
        handlers.onDisconnect = { self.add("channel.onDisconnect \(Stage.text($0))") }
        handlers.onAddStream = { self.add("onAddStream \($0.streamId)") }
        handlers.onRemoveStream = { self.add("onRemoveStream \($0.streamId)") }
        handlers.onReceiveSignalingJSON = { self.add("json \($0)") }
        handlers.onDataChannel = { _ in self.add("onDataChannel") }
        handlers.onDataChannelOpened = { _, label in self.add("opened \(label)") }
        handlers.onDataChannelMessage = { _, label, data in self.add("message \(label) \(data.count)") }
    }

    /// The same for the handlers of an instance.
    func record(_ handlers: SoraHandlers, of sora: Sora) {
        handlers.onConnect = { channel, error in
            self.add("sora.onConnect \(channel == nil ? "nil" : "channel") \(error?.localizedDescription ?? "nil")")
        }
        handlers.onDisconnect = { self.add("sora.onDisconnect \($1?.localizedDescription ?? "nil") \($0.state)") }
        handlers.onAddMediaChannel = { self.add("added \($0.state)") }
        handlers.onRemoveMediaChannel = { [weak sora] channel in
            self.add("removed \(sora?.mediaChannels.contains { $0 === channel } == true)")
        }
    }
}
