import Foundation
internal import SoraLocking

/// Tells every ``Sora`` about changes of the audio route.
final class AudioRouteObserver: Sendable {
    static let shared = AudioRouteObserver()

    private let instances = Locked<[ChannelCore.Weak<Sora>]>([])
    private let deliveries = DeliveryQueue(label: "sora.audio.route")

    func add(_ sora: Sora) {
        DeviceBackends.watchAudioRoutes()
        instances.withLock { instances in
            instances.removeAll { $0.object == nil }
            instances.append(ChannelCore.Weak(object: sora))
        }
    }

    /// Takes over the route that was there at first.
    func routeFound(_ route: AudioRoute) {
        _ = RTCAudioSession.sharedInstance().replaceRoute(AVAudioSessionRouteDescription(route))
    }

    /// Takes over a new route of the backend and reports it.
    func routeChanged(to route: AudioRoute, by change: AudioRoute.Change) {
        routeChanged(
            to: AVAudioSessionRouteDescription(route), reason: AVAudioSession.RouteChangeReason(change))
    }

    /// Takes over a new route and reports it, unless its reason is one that is not reported.
    func routeChanged(
        to route: AVAudioSessionRouteDescription, reason: AVAudioSession.RouteChangeReason,
        session: RTCAudioSession = .sharedInstance()
    ) {
        let previous = session.replaceRoute(route)
        guard reason != .routeConfigurationChange else { return }
        let listeners = instances.withLock { $0.compactMap(\.object) }
        deliveries.enqueue {
            for sora in listeners {
                sora.handlers.onChangeAudioRoute?(session, reason, previous)
                sora.events.publish(
                    SoraEvent(
                        .audioRouteChanged, audioRoute: SoraAudioRouteEvent(reason: reason, previousRoute: previous)))
            }
        }
    }
}
