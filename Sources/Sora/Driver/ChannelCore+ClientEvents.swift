import Foundation
internal import SoraClient
internal import SoraMessages

extension ChannelCore {
    /// Tells the application of an event of the machine that needs nothing of the driver, and opens or closes the gate
    /// for outgoing messages with it.
    func report(_ event: ClientConnection.Event) {
        switch event {
        case .webSocketOpened(let url):
            if let url = URL(string: url) { deliver(.webSocketOpened(url)) }
        case .signaling(let message, let text):
            if case .switched = message { outgoing.markSwitched() }
            deliver(.signalingProcessed(text))
        case .streamRemoved(let id): deliver(.streamRemoved(id: id))
        case .redirected:
            outgoing.reset()
            deliver(.redirected)
        case .connected: deliver(.connected)
        case .countsChanged(let connections, let publishers, let subscribers):
            deliver(.counts(connections: connections, publishers: publishers, subscribers: subscribers))
        case .dataChannelOpened(let label):
            outgoing.set(.open, label: label)
            deliver(.dataChannelOpened(label: label))
        case .dataChannelsAvailable: deliver(.dataChannelsAvailable)
        case .disconnecting: outgoing.close()
        case .signalingText, .offerTaken, .sendersAttached, .streamAdded, .streamChanged, .dataChannelMessage,
            .rpcFinished, .ended:
            break
        }
    }
}
