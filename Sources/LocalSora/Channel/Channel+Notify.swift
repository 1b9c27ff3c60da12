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
        for id in order {
            guard let other = members[id], other !== member, other.isAnnounced, other.bundleID != member.bundleID
            else { continue }
            notify(message, to: other, now: now)
            drain(other, now: now)
        }
    }

    func notify(_ message: NotifyMessage, to member: Member, now: Instant) {
        guard member.grant.notifies else { return }
        deliver(message.json, type: "notify", to: member, now: now)
    }

    /// RFC 3339 in UTC with microseconds.
    func timestamp(_ now: Instant) -> String {
        let seconds = settings.wallClockOrigin + Double(now.nanoseconds) / 1e9
        var whole = Int64(seconds.rounded(.down))
        let micros = min(Int((seconds - Double(whole)) * 1e6), 999_999)
        let secondOfDay = Int(((whole % 86_400) + 86_400) % 86_400)
        whole = (whole - Int64(secondOfDay)) / 86_400
        // Days since 1970 to a civil date: years begin in March, so that leap days come last.
        let shifted = whole + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        func pad(_ value: Int, _ width: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, width - text.count)) + text
        }
        let date = "\(pad(Int(year), 4))-\(pad(Int(month), 2))-\(pad(Int(day), 2))"
        let time = "\(pad(secondOfDay / 3600, 2)):\(pad(secondOfDay / 60 % 60, 2)):\(pad(secondOfDay % 60, 2))"
        return "\(date)T\(time).\(pad(micros, 6))Z"
    }
}
