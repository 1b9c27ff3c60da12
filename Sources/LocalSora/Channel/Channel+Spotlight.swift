import SoraMessages
import SoraPeer
import SoraWire

// Spotlight: the latest speakers are in focus and are seen well, the others less so (spec/signaling.md 7.6).

extension Channel {
    /// Which layer of a sender a spotlight receiver gets.
    func spotlightLayer(of sender: Member, for receiver: Member) -> LayerRID {
        let rids = receiver.spotlightRIDs[sender.id] ?? receiver.defaultSpotlightRIDs
        return sender.isFocused ? rids.focus : rids.unfocus
    }

    /// Those in focus, in the order in which they got there.
    var focused: [Member] {
        order.compactMap { members[$0] }.filter(\.isFocused).sorted {
            ($0.focusedAt ?? .zero) < ($1.focusedAt ?? .zero)
        }
    }

    /// Puts new speakers into focus, in place of those who have been silent for longest.
    func updateSpotlight(now: Instant) {
        guard isSpotlight else { return }
        for id in order {
            guard let member = members[id], member.isAnnounced, let track = member.audioTrack,
                track.loudness.isSpeaking(at: now)
            else { continue }
            member.lastSpokeAt = now
            if !member.isFocused { focus(member, isFixed: false, isCommand: false, now: now) }
        }
    }

    /// Takes out of focus who is too many: not the fixed ones, and first who has been silent for longest.
    private func limitFocus(now: Instant) {
        let present = focused
        let fixed = present.count { $0.focusIsFixed }
        let surplus = present.count - max(spotlightNumber, fixed)
        guard surplus > 0 else { return }
        let leaving = present.filter { !$0.focusIsFixed }
            .sorted {
                ($0.lastSpokeAt ?? .zero, $0.focusedAt ?? .zero) < ($1.lastSpokeAt ?? .zero, $1.focusedAt ?? .zero)
            }
        for member in leaving.prefix(surplus) { unfocus(member, now: now) }
    }

    /// - Parameter isCommand: by the HTTP API, which pushes out a speaker where speech alone would wait.
    func focus(_ member: Member, isFixed: Bool, isCommand: Bool, now: Instant) {
        guard member.role.sends, !member.isFocused || member.focusIsFixed != isFixed else { return }
        if !isFixed, !member.isFocused {
            // A full circle makes room first, unless all its places are fixed.
            let present = focused
            let fixed = present.count { $0.focusIsFixed }
            guard fixed < spotlightNumber else { return }
            if present.count >= spotlightNumber {
                let silent = present.filter {
                    !$0.focusIsFixed && (isCommand || !($0.audioTrack?.loudness.isSpeaking(at: now) ?? false))
                }
                guard let longest = silent.min(by: { ($0.lastSpokeAt ?? .zero) < ($1.lastSpokeAt ?? .zero) }) else {
                    return
                }
                unfocus(longest, now: now)
            }
        }
        let wasFocused = member.isFocused
        member.isFocused = true
        member.focusIsFixed = isFixed
        if !wasFocused {
            member.focusedAt = now
            member.lastSpokeAt = member.lastSpokeAt ?? now
        }
        spotlightChanged(NotifyMessage.Event.spotlightFocused, of: member, isFixed: isFixed, now: now)
        if isFixed { limitFocus(now: now) }
    }

    func unfocus(_ member: Member, now: Instant) {
        guard member.isFocused else { return }
        let wasFixed = member.focusIsFixed
        member.isFocused = false
        member.focusIsFixed = false
        member.focusedAt = nil
        spotlightChanged(NotifyMessage.Event.spotlightUnfocused, of: member, isFixed: wasFixed, now: now)
    }

    private func spotlightChanged(_ event: String, of member: Member, isFixed: Bool, now: Instant) {
        if let track = member.videoTrack {
            for subscription in track.subscriptions { select(subscription, trigger: .sender, now: now) }
        }
        guard member.isAnnounced else { return }
        emit(event: .spotlight, member, event, now: now)
        report(
            event == NotifyMessage.Event.spotlightFocused ? .spotlightFocused : .spotlightUnfocused, member,
            isFixed: isFixed, now: now)
        var message = NotifyMessage(eventType: event)
        message.timestamp = timestamp(now)
        message.clientID = member.clientID
        message.connectionID = member.id.rawValue
        message.audio = member.grant.audio
        message.video = member.grant.video
        message.fixed = isFixed
        message.spotlightNumber = spotlightNumber
        notify(message, now: now) { _ in true }
    }

    // MARK: Wishes

    /// Changes which layers a receiver gets, for one sender or for all.
    func requestSpotlightLayers(
        focus: LayerRID, unfocus: LayerRID, of sender: ConnectionID?, for receiver: Member, now: Instant
    ) {
        let rids = SpotlightRIDs(focus: focus, unfocus: unfocus)
        if let sender {
            receiver.spotlightRIDs[sender] = rids
        } else {
            receiver.spotlightRIDs.removeAll()
            receiver.defaultSpotlightRIDs = rids
        }
        selectAll(of: receiver, trigger: .receiver, now: now)
        drain(receiver, now: now)
    }

    /// Goes back to what `connect` or authorization said.
    func resetSpotlightLayers(of sender: ConnectionID?, for receiver: Member, now: Instant) {
        if let sender {
            receiver.spotlightRIDs.removeValue(forKey: sender)
        } else {
            receiver.spotlightRIDs.removeAll()
            receiver.defaultSpotlightRIDs = receiver.grant.spotlightRIDs
        }
        selectAll(of: receiver, trigger: .receiver, now: now)
        drain(receiver, now: now)
    }

    func changeSpotlightNumber(_ number: Int, now: Instant) {
        spotlightNumber = number
        limitFocus(now: now)
    }
}

/// Layers of a spotlight receiver.
package struct SpotlightRIDs: Sendable, Equatable {
    package var focus: LayerRID
    package var unfocus: LayerRID
    package init(focus: LayerRID = .r1, unfocus: LayerRID = .r0) {
        self.focus = focus
        self.unfocus = unfocus
    }
}

/// One item of a request for several spotlight receivers.
package struct SpotlightRequest: Sendable, Equatable {
    package var receiver: String
    /// Nil: all senders.
    package var sender: String?
    package var rids: SpotlightRIDs
    package init(receiver: String, sender: String? = nil, rids: SpotlightRIDs) {
        self.receiver = receiver
        self.sender = sender
        self.rids = rids
    }
}
