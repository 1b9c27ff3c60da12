/// One input or output of an audio route.
public struct SoraAudioPortSnapshot: Sendable, Equatable {
    /// What the system calls it.
    public let name: String
    /// Raw value of the port type.
    public let portType: String
    /// Identifies the port on this machine.
    public let uid: String
    /// Number of channels, 0 if unknown.
    public let channelCount: Int
    public let hasDataSource: Bool

    init(_ port: AVAudioSessionPortDescription) {
        name = port.portName
        portType = port.portType.rawValue
        uid = port.uid
        channelCount = port.channels?.count ?? 0
        hasDataSource = !(port.dataSources ?? []).isEmpty
    }
}

/// Where sound came from and went to at one moment.
public struct SoraAudioRouteSnapshot: Sendable, Equatable {
    /// Where sound comes from.
    public let inputs: [SoraAudioPortSnapshot]
    /// Where sound goes to.
    public let outputs: [SoraAudioPortSnapshot]

    init(_ route: AVAudioSessionRouteDescription) {
        inputs = route.inputs.map(SoraAudioPortSnapshot.init)
        outputs = route.outputs.map(SoraAudioPortSnapshot.init)
    }
}

/// A change of the audio route.
public struct SoraAudioRouteEvent: Sendable, Equatable {
    /// Why the route changed.
    public let reason: AVAudioSession.RouteChangeReason
    /// The route before the change.
    public let previousRoute: SoraAudioRouteSnapshot

    init(reason: AVAudioSession.RouteChangeReason, previousRoute: AVAudioSessionRouteDescription) {
        self.reason = reason
        self.previousRoute = SoraAudioRouteSnapshot(previousRoute)
    }
}
