import Foundation
import Sora
import Testing

/// Tells at compile time, by the choice of an overload, whether a type is `Sendable`.
private enum Probe<Value> {
    static var verdict: Verdict { Verdict(type: Value.self, isSendable: false) }
}
extension Probe where Value: Sendable {
    static var verdict: Verdict { Verdict(type: Value.self, isSendable: true) }
}
private struct Verdict {
    var type: Any.Type
    var isSendable: Bool
}

private final class Box: Encodable {}

/// Which types may cross isolation is part of the API (api 1.3.1): a conformance too many breaks code that adds its own.
@Suite(.serialized, .leavesNoObjects) struct SendabilityTests {
    @Test func valuesThatMayCross() {
        func note(_ verdict: Verdict) { #expect(verdict.isSendable, "\(verdict.type)") }
        note(Probe<Sora>.verdict)
        note(Probe<SoraEvent>.verdict)
        note(Probe<SoraEventKind>.verdict)
        note(Probe<SoraEventError>.verdict)
        note(Probe<SoraAudioRouteEvent>.verdict)
        note(Probe<SoraAudioRouteSnapshot>.verdict)
        note(Probe<SoraAudioPortSnapshot>.verdict)
        note(Probe<SoraCloseEvent>.verdict)
        note(Probe<AsyncStream<SoraEvent>>.verdict)
        note(Probe<SoraError>.verdict)
        note(Probe<RPCErrorDetail>.verdict)
        note(Probe<ConnectionState>.verdict)
        note(Probe<ConnectionTask.State>.verdict)
        note(Probe<Role>.verdict)
        note(Probe<AudioCodec>.verdict)
        note(Probe<VideoCodec>.verdict)
        note(Probe<Rid>.verdict)
        note(Probe<SimulcastRid>.verdict)
        note(Probe<SimulcastRequestRid>.verdict)
        note(Probe<SpotlightRid>.verdict)
        note(Probe<Configuration.Spotlight>.verdict)
        note(Probe<ForwardingFilterRule>.verdict)
        note(Probe<ForwardingFilterRuleField>.verdict)
        note(Probe<ForwardingFilterRuleOperator>.verdict)
        note(Probe<ForwardingFilterAction>.verdict)
        note(Probe<Proxy>.verdict)
        note(Probe<MediaConstraints>.verdict)
        note(Probe<SDPSemantics>.verdict)
        note(Probe<DegradationPreference>.verdict)
        note(Probe<ICETransportPolicy>.verdict)
        note(Probe<AudioMode>.verdict)
        note(Probe<AudioOutput>.verdict)
        note(Probe<AspectRatio>.verdict)
        note(Probe<CameraSettings>.verdict)
        note(Probe<CameraSettings.Resolution>.verdict)
        note(Probe<VideoViewConnectionMode>.verdict)
        note(Probe<CameraVideoCapturer>.verdict)
        note(Probe<DeviceInfo>.verdict)
        note(Probe<WebSocketStatusCode>.verdict)
        note(Probe<WebSocketMessage>.verdict)
        note(Probe<SignalingRole>.verdict)
        note(Probe<SignalingAnswer>.verdict)
        note(Probe<SignalingUpdate>.verdict)
        note(Probe<SignalingReOffer>.verdict)
        note(Probe<SignalingReAnswer>.verdict)
        note(Probe<SignalingSwitched>.verdict)
        note(Probe<SignalingRedirect>.verdict)
        note(Probe<SignalingClose>.verdict)
        note(Probe<SignalingPing>.verdict)
        note(Probe<SignalingPong>.verdict)
        note(Probe<SignalingDisconnect>.verdict)
        note(Probe<Logger>.verdict)
        note(Probe<Logger.Group>.verdict)
        note(Probe<LogLevel>.verdict)
        note(Probe<LogType>.verdict)
        note(Probe<Log>.verdict)
        note(Probe<JSONValue>.verdict)
        note(Probe<SendableRPCResponse<Int>>.verdict)
        note(Probe<RequestSimulcastRidParams>.verdict)
        note(Probe<RequestSimulcastRidResult>.verdict)
        note(Probe<RequestSpotlightRidParams>.verdict)
        note(Probe<RequestSpotlightRidResult>.verdict)
        note(Probe<ResetSpotlightRidParams>.verdict)
        note(Probe<ResetSpotlightRidResult>.verdict)
        note(Probe<PutSignalingNotifyMetadataParams<Int>>.verdict)
        note(Probe<PutSignalingNotifyMetadataItemParams<Int>>.verdict)
        note(Probe<StatisticsSnapshot>.verdict)
        note(Probe<StatisticsEntrySnapshot>.verdict)
    }

    @Test func objectsThatMustNotBeDeclaredSafe() {
        func note(_ verdict: Verdict) { #expect(!verdict.isSendable, "\(verdict.type)") }
        note(Probe<Configuration>.verdict)
        note(Probe<WebRTCConfiguration>.verdict)
        note(Probe<ForwardingFilter>.verdict)
        note(Probe<MediaChannel>.verdict)
        note(Probe<any MediaStream>.verdict)
        note(Probe<ConnectionTask>.verdict)
        note(Probe<SoraHandlers>.verdict)
        note(Probe<MediaChannelHandlers>.verdict)
        note(Probe<MediaStreamHandlers>.verdict)
        note(Probe<WebSocketChannelHandlers>.verdict)
        note(Probe<CameraVideoCapturerHandlers>.verdict)
        note(Probe<Signaling>.verdict)
        note(Probe<SignalingConnect>.verdict)
        note(Probe<SignalingOffer>.verdict)
        note(Probe<SignalingNotify>.verdict)
        note(Probe<SignalingNotifyMetadata>.verdict)
        note(Probe<SignalingPush>.verdict)
        note(Probe<SignalingCandidate>.verdict)
        note(Probe<ICEServerInfo>.verdict)
        note(Probe<ICECandidate>.verdict)
        note(Probe<VideoFrame>.verdict)
        note(Probe<ScreenCaptureSettings>.verdict)
        note(Probe<RPCResponse<Int>>.verdict)
        note(Probe<Statistics>.verdict)
        note(Probe<StatisticsEntry>.verdict)
        note(Probe<PutSignalingNotifyMetadataParams<Box>>.verdict)
        // The main actor's own.
        #expect(Probe<VideoView>.verdict.isSendable)
    }
}
