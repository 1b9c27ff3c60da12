import SoraMessages
import SoraPeer
import SoraRTP
import SoraWire

// Which simulcast layer each receiver gets: by its wish, by what arrives, by spotlight, and by what
// its bandwidth carries (spec/signaling.md 7.4, 7.6).

extension Channel {
    static let mediaTickInterval: Duration = .milliseconds(100)
    /// A layer that is silent for so long, while others bring frames, is gone.
    private static let layerSilence: Duration = .milliseconds(500)
    private static let framesMissedLimit = 4
    private static let rateInterval: Duration = .seconds(1)
    private static let statusInterval: Duration = .seconds(3)
    /// The first seconds of a receiver, in which its estimate grows.
    private static let startUpTime: Duration = .seconds(4)
    /// How long an estimate must stay below what is sent.
    private static let patience: Duration = .seconds(3)
    /// The same where it is far below.
    private static let shortPatience: Duration = .seconds(1)
    /// The same where the path has shown its limit besides: a queue grows in it, and soon it overflows.
    private static let congestionPatience: Duration = .milliseconds(200)

    // MARK: Choosing

    /// The layer that a subscription shall forward now.
    func layer(for subscription: Subscription) -> Int? {
        let track = subscription.track
        guard !subscription.isBlocked, !subscription.isPaused else { return nil }
        guard track.kind == .video else { return track.layers[0].isActive ? 0 : nil }
        var chosen: Int?
        switch wish(of: subscription) {
        case .rid(let rid): chosen = track.layer(for: rid)
        case .auto: chosen = track.highestActiveLayer
        }
        if let layer = chosen, let cap = subscription.bandwidthCap, layer > cap {
            // Never below the lowest that arrives: some picture is better than none.
            chosen =
                track.layers.indices.prefix(cap + 1).last { track.layers[$0].isActive }
                ?? track.layers.firstIndex(where: \.isActive)
        }
        return chosen
    }

    /// What the receiver wants of this sender.
    func wish(of subscription: Subscription) -> LayerWish {
        let receiver = subscription.receiver
        let sender = subscription.track.sender
        if receiver.grant.spotlight { return .rid(spotlightLayer(of: sender, for: receiver)) }
        return receiver.layerWishes[sender.id] ?? receiver.defaultWish
    }

    /// Makes the forwarder follow what is to be forwarded now.
    func select(_ subscription: Subscription, trigger: Subscription.Trigger? = nil, now: Instant) {
        guard subscription.forwarder != nil else { return }
        let wanted = layer(for: subscription)
        if let trigger { subscription.trigger = trigger }
        if wanted != subscription.selected {
            subscription.selected = wanted
            subscription.forwarder?.select(wanted)
            if wanted == nil, subscription.announced != nil { switched(subscription, now: now) }
        }
        if let layer = subscription.forwarder?.layerNeedingKeyFrame {
            requestKeyFrame(of: subscription.track, layer: layer, now: now)
        }
    }

    /// Looks again at everything that a receiver gets.
    func selectAll(of receiver: Member, trigger: Subscription.Trigger? = nil, now: Instant) {
        for subscription in receiver.subscriptions.values { select(subscription, trigger: trigger, now: now) }
    }

    /// A layer of a sender came or went.
    func layersChanged(of track: SenderTrack, now: Instant) {
        for subscription in track.subscriptions { select(subscription, trigger: .sender, now: now) }
    }

    /// The forwarder entered another layer, or stopped.
    func switched(_ subscription: Subscription, now: Instant) {
        let track = subscription.track
        guard track.kind == .video else { return }
        let current = track.name(of: subscription.forwarder?.currentLayer)
        let previous = subscription.announced
        subscription.announced = current
        let trigger = subscription.trigger
        subscription.trigger = .sender
        guard let previous, previous != current, track.isSimulcast else { return }
        let receiver = subscription.receiver
        emit(
            event: .layerSwitched, receiver, "\(previous.rawValue) to \(current.rawValue) of \(track.sender.id)",
            now: now)
        guard receiver.isAnnounced else { return }
        var message = NotifyMessage(eventType: NotifyMessage.Event.simulcastSwitched)
        message.timestamp = timestamp(now)
        message.senderConnectionID = track.sender.id.rawValue
        message.priority = SourceLayer.order(of: current) > SourceLayer.order(of: previous) ? "higher" : "lower"
        message.trigger = trigger.rawValue
        message.rpcRIDs = receiver.grant.simulcastRPCRids.map(\.rawValue)
        let wish = wish(of: subscription)
        message.autoRIDs = wish == .auto ? track.layers.map(\.rank.rawValue) : []
        if case .rid(let rid) = wish { message.requestRID = rid.rawValue } else { message.requestRID = "auto" }
        message.currentRID = current.rawValue
        message.previousRID = previous.rawValue
        notify(message, to: receiver, now: now)
    }

    // MARK: Wishes

    /// Changes a receiver's wish, for one sender or for all.
    func requestLayer(_ wish: LayerWish, of sender: ConnectionID?, for receiver: Member, now: Instant) {
        if let sender {
            receiver.layerWishes[sender] = wish
        } else {
            receiver.layerWishes.removeAll()
            receiver.defaultWish = wish
        }
        for subscription in receiver.subscriptions.values
        where subscription.track.kind == .video && (sender == nil || subscription.track.sender.id == sender) {
            select(subscription, trigger: .receiver, now: now)
        }
        drain(receiver, now: now)
    }

    // MARK: Time

    func handleMediaTick(now: Instant) {
        let isRateDue = now - lastRateReckoning >= Self.rateInterval
        var isAlive = false
        for id in order {
            guard let member = members[id] else { continue }
            for track in [member.audioTrack, member.videoTrack] {
                guard let track, let last = track.lastPacket else { continue }
                if now - last < .seconds(5) { isAlive = true }
                updateActivity(of: track, now: now)
                if isRateDue { reckonRates(of: track, now: now) }
            }
        }
        for id in order {
            if let member = members[id], member.availableBitrate != nil { respectBandwidth(of: member, now: now) }
        }
        if isRateDue {
            lastRateReckoning = now
            for id in order {
                if let member = members[id], member.isBandwidthLimited { improveBandwidth(of: member, now: now) }
            }
        }
        if now - lastStatusCheck >= Self.statusInterval {
            lastStatusCheck = now
            for id in order {
                if let member = members[id], !member.subscriptions.isEmpty { updateNetworkStatus(of: member, now: now) }
            }
        }
        updateSpotlight(now: now)
        handleArchiveTick(now: now)
        nextMediaTick = isAlive ? now + Self.mediaTickInterval : nil
    }

    private func updateActivity(of track: SenderTrack, now: Instant) {
        guard track.isSimulcast else { return }
        var hasChanged = false
        for index in track.layers.indices where track.layers[index].isActive {
            guard let last = track.layers[index].lastPacket, now - last >= Self.layerSilence,
                track.layers[index].framesMissed >= Self.framesMissedLimit
            else { continue }
            track.layers[index].isActive = false
            track.layers[index].bitrate = 0
            hasChanged = true
        }
        if hasChanged { layersChanged(of: track, now: now) }
    }

    private func reckonRates(of track: SenderTrack, now: Instant) {
        let elapsed = now - lastRateReckoning
        for index in track.layers.indices { track.layers[index].reckonRate(over: elapsed) }
        // A sender that does not keep to its limit is told so (REMB), every second until it does.
        let limit = track.sender.grant.videoBitRate * 1000
        guard track.kind == .video, limit > 0 else { return }
        let sum = track.layers.reduce(0) { $0 + $1.bitrate }
        if sum > limit + limit / 5 {
            track.sender.peer.sendBitrateLimit(limit, now: now)
            drain(track.sender, now: now)
        }
    }

    // MARK: Bandwidth

    /// Tells a receiver how good the way to it is, when that changes: by the loss that it reports.
    private func updateNetworkStatus(of receiver: Member, now: Instant) {
        guard receiver.isAnnounced else { return }
        let streams = receiver.peer.statistics(now: now).outbound.filter { $0.packetsSent > 0 }
        let loss = streams.compactMap(\.fractionLost).max() ?? 0
        let level =
            switch loss {
            case ..<0.02: 0
            case ..<0.06: 1
            case ..<0.15: 2
            default: 3
            }
        guard level != receiver.unstableLevel else { return }
        receiver.unstableLevel = level
        var message = NotifyMessage(eventType: NotifyMessage.Event.networkStatus)
        message.timestamp = timestamp(now)
        message.unstableLevel = level
        notify(message, to: receiver, now: now)
        drain(receiver, now: now)
    }

    /// What the way to a receiver is estimated to carry. Takes effect at the next tick that finds it so.
    func availableBitrateChanged(_ bitrate: Int, of receiver: Member, now: Instant) {
        receiver.availableBitrate = bitrate
        if nextMediaTick == nil, !receiver.subscriptions.isEmpty { nextMediaTick = now + Self.mediaTickInterval }
    }

    /// Goes down where the estimate has been below what is sent for a while: estimates start low and
    /// waver, and one bad moment is no reason. The larger the lack, the shorter the patience.
    private func respectBandwidth(of receiver: Member, now: Instant) {
        guard let available = receiver.availableBitrate else { return }
        let needed = receiver.subscriptions.values.reduce(0) { $0 + rate(of: $1, layer: $1.selected) }
        guard needed > available + available / 20 else {
            receiver.exceedingSince = nil
            return
        }
        let since = receiver.exceedingSince ?? now
        receiver.exceedingSince = since
        let isYoung = receiver.connectedAt.map { now - $0 < Self.startUpTime } ?? true
        // At its limit an estimate is 85 % of what arrives: with a fifth less than is needed, not everything does.
        let isCongested = needed * 8 / 10 > available && receiver.peer.hasMetPathLimit
        let isSevere = needed * 7 / 10 > available && !isYoung
        let patience = isCongested ? Self.congestionPatience : isSevere ? Self.shortPatience : Self.patience
        guard now - since >= patience else { return }
        receiver.exceedingSince = nil
        emit(
            event: .bandwidthReduced, receiver, "\(needed / 1000) kbit/s are sent, \(available / 1000) are estimated",
            now: now)
        reduceBandwidth(of: receiver, to: available, now: now)
    }

    private func rate(of subscription: Subscription, layer: Int?) -> Int {
        guard let layer, subscription.track.layers.indices.contains(layer) else { return 0 }
        return subscription.track.layers[layer].bitrate
    }

    /// Subscriptions whose layer can be changed, the most important first: who is in focus, then by joining.
    private func adaptable(_ receiver: Member) -> [Subscription] {
        let all = order.compactMap { receiver.subscriptions[SubscriptionKey(sender: $0, kind: .video)] }
            .filter { $0.track.isSimulcast && $0.isFlowing }
        guard receiver.grant.spotlight else { return all }
        return all.filter { $0.track.sender.isFocused } + all.filter { !$0.track.sender.isFocused }
    }

    /// Goes down a layer here and there until the rest fits, the least important first (pitfall SRV2).
    private func reduceBandwidth(of receiver: Member, to bitrate: Int, now: Instant) {
        var sum = receiver.subscriptions.values.reduce(0) { $0 + rate(of: $1, layer: $1.selected) }
        var hasReduced = false
        var candidates = Array(adaptable(receiver).reversed())
        while sum > bitrate {
            var hasStepped = false
            for subscription in candidates {
                guard sum > bitrate, let layer = subscription.selected,
                    let lower = subscription.track.layers.indices.prefix(layer).last(where: {
                        subscription.track.layers[$0].isActive
                    })
                else { continue }
                sum -= max(rate(of: subscription, layer: layer) - rate(of: subscription, layer: lower), 0)
                subscription.bandwidthCap = lower
                select(subscription, trigger: .receiver, now: now)
                hasStepped = true
                hasReduced = true
            }
            candidates.removeAll { $0.selected == nil || $0.selected == 0 }
            if !hasStepped { break }
        }
        guard hasReduced else { return }
        receiver.isBandwidthLimited = true
        // A reduction soon after an attempt to improve says that the attempt was too much.
        if let last = receiver.lastImprovement, now - last < .seconds(5) {
            receiver.improvementInterval = min(receiver.improvementInterval * 2, .seconds(60))
        }
        receiver.nextImprovement = now + receiver.improvementInterval
        drain(receiver, now: now)
    }

    /// Goes up one layer of one subscription, if the estimate allows it or it is time to try: an estimate
    /// alone cannot grow far beyond what is being sent.
    private func improveBandwidth(of receiver: Member, now: Instant) {
        let candidates = adaptable(receiver).filter { $0.bandwidthCap != nil }
        let isDue = receiver.nextImprovement <= now
        let sum = receiver.subscriptions.values.reduce(0) { $0 + rate(of: $1, layer: $1.selected) }
        for subscription in candidates {
            guard let cap = subscription.bandwidthCap else { continue }
            let next = cap + 1
            let more = max(
                rate(of: subscription, layer: next) - rate(of: subscription, layer: subscription.selected), 0)
            let fits = (receiver.availableBitrate ?? .max) / 10 * 9 >= sum + more
            let isSettled = receiver.nextImprovement - now <= receiver.improvementInterval - .seconds(2)
            guard isDue || (fits && isSettled) else { continue }
            subscription.bandwidthCap = next >= subscription.track.layers.count - 1 ? nil : next
            let before = subscription.selected
            select(subscription, trigger: .receiver, now: now)
            if subscription.selected != before {
                receiver.lastImprovement = now
                receiver.nextImprovement = now + receiver.improvementInterval
                drain(receiver, now: now)
                return
            }
        }
        if !receiver.subscriptions.values.contains(where: { $0.bandwidthCap != nil }) {
            receiver.isBandwidthLimited = false
            if let last = receiver.lastImprovement, now - last > .seconds(30) {
                receiver.improvementInterval = .seconds(5)
            }
        }
    }
}
