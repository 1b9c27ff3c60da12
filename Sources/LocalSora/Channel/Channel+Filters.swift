import SoraMessages
import SoraWire

// Forwarding filters: senders' sound or picture that receivers do not get (spec/signaling.md 7.8).

extension Channel {
    /// Whether the channel's and the receiver's filters let a track through. All of them are asked.
    func passesFilters(_ track: SenderTrack, to receiver: Member) -> Bool {
        guard !receiver.filters.isEmpty || !channelFilters.isEmpty else { return true }
        let subject = ForwardingFilter.Subject(
            connectionID: track.sender.id.rawValue, clientID: track.sender.clientID, kind: track.kind.rawValue)
        return ForwardingFilter.forwards(subject, through: channelFilters)
            && ForwardingFilter.forwards(subject, through: receiver.filters)
    }

    /// Puts changed filters into force.
    func applyFilters(to receiver: Member, now: Instant) {
        for subscription in receiver.subscriptions.values {
            subscription.isBlocked = !passesFilters(subscription.track, to: receiver)
            select(subscription, now: now)
        }
        drain(receiver, now: now)
    }

    func applyFiltersToAll(now: Instant) {
        for id in order {
            if let member = members[id] { applyFilters(to: member, now: now) }
        }
    }
}
