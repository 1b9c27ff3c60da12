import SoraMessages
import SoraWire

// Notifications and pushes.

extension Channel {
    func connectionNotification(_ event: String, about member: Member, now: Instant) -> NotifyMessage {
        var message = NotifyMessage(eventType: event)
        message.timestamp = timestamp(now)
        message.role = member.role
        message.sessionID = sessionID
        message.clientID = member.clientID
        message.bundleID = member.bundleID
        message.connectionID = member.id.rawValue
        message.audio = member.grant.audio
        message.video = member.grant.video
        message.minutes = minutes(of: member, now: now)
        let counts = counts
        message.channelConnections = counts.connections
        message.channelSendrecvConnections = counts.sendrecv
        message.channelSendonlyConnections = counts.sendonly
        message.channelRecvonlyConnections = counts.recvonly
        message.turnTransportType = "udp"
        message.authnMetadata = member.notifyMetadata
        message.authzMetadata = member.grant.authzMetadata
        return message
    }

    /// Tells everybody of a new connection; the connection itself also who was there before it.
    func notifyCreated(_ member: Member, now: Instant) {
        let message = connectionNotification(NotifyMessage.Event.connectionCreated, about: member, now: now)
        var own = message
        own.data = order.compactMap { members[$0] }
            .filter { $0.isAnnounced && $0 !== member && $0.bundleID != member.bundleID }
            .map { other in
                var peer = NotifyPeer()
                peer.clientID = other.clientID
                peer.bundleID = other.bundleID
                peer.connectionID = other.id.rawValue
                peer.authnMetadata = other.notifyMetadata
                peer.authzMetadata = other.grant.authzMetadata
                return peer
            }
        notify(own, to: member, now: now)
        notifyAll(message, about: member, now: now)
    }

    /// Tells all announced members but the one that it is about, and those of its bundle.
    func notifyAll(_ message: NotifyMessage, about member: Member, now: Instant) {
        notify(message, now: now) { $0 !== member && $0.bundleID != member.bundleID }
    }

    /// Tells all announced members that `isMeant` picks. The message is written and compressed once.
    func notify(_ message: NotifyMessage, now: Instant, to isMeant: (Member) -> Bool) {
        let json = message.json
        let text = json.text
        var shared = SharedMessage(label: SystemLabel.notify) { Array(text.utf8) }
        for id in order {
            guard let other = members[id], other.isAnnounced, other.grant.notifies, isMeant(other) else { continue }
            if script != nil {
                deliver(json, type: NotifyMessage.type, to: other, now: now)
            } else if carrier(for: NotifyMessage.type, of: other) == .webSocket {
                transmit(text, to: other, over: .webSocket, now: now)
            } else {
                send(&shared, to: other, now: now)
            }
            drain(other, now: now)
        }
    }

    func notify(_ message: NotifyMessage, to member: Member, now: Instant) {
        guard member.grant.notifies else { return }
        deliver(message.json, type: "notify", to: member, now: now)
    }

    /// RFC 3339 in UTC with microseconds.
    func timestamp(_ now: Instant) -> String { settings.timestamp(now) }
}
