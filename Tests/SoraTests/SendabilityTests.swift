import Foundation
import Sora
import Testing

/// Tells at compile time, by the choice of an overload, whether a type is `Sendable`.
private enum Probe<Value> {
    static var isSendable: Bool { false }
}
extension Probe where Value: Sendable {
    static var isSendable: Bool { true }
}

private final class Box: Encodable {}

/// Which types may cross isolation is part of the API (api 1.3.1): a conformance too many breaks code that adds its own.
@Suite struct SendabilityTests {
    @Test func valuesThatMayCross() {
        var wrong: [String] = []
        func note(_ isSendable: Bool, _ name: String) { if !isSendable { wrong.append(name) } }
        note(Probe<Sora>.isSendable, "Sora")
        note(Probe<SoraEvent>.isSendable, "SoraEvent")
        note(Probe<SoraEventKind>.isSendable, "SoraEventKind")
        note(Probe<SoraEventError>.isSendable, "SoraEventError")
        note(Probe<SoraAudioRouteEvent>.isSendable, "SoraAudioRouteEvent")
        note(Probe<SoraAudioRouteSnapshot>.isSendable, "SoraAudioRouteSnapshot")
        note(Probe<SoraAudioPortSnapshot>.isSendable, "SoraAudioPortSnapshot")
        note(Probe<SoraCloseEvent>.isSendable, "SoraCloseEvent")
        note(Probe<AsyncStream<SoraEvent>>.isSendable, "AsyncStream<SoraEvent>")
        note(Probe<SoraError>.isSendable, "SoraError")
        note(Probe<RPCErrorDetail>.isSendable, "RPCErrorDetail")
        note(Probe<ConnectionState>.isSendable, "ConnectionState")
        note(Probe<ConnectionTask.State>.isSendable, "ConnectionTask.State")
        note(Probe<Role>.isSendable, "Role")
        note(Probe<AudioCodec>.isSendable, "AudioCodec")
        note(Probe<VideoCodec>.isSendable, "VideoCodec")
        note(Probe<Rid>.isSendable, "Rid")
        note(Probe<SimulcastRid>.isSendable, "SimulcastRid")
        note(Probe<SimulcastRequestRid>.isSendable, "SimulcastRequestRid")
        note(Probe<SpotlightRid>.isSendable, "SpotlightRid")
        note(Probe<Configuration.Spotlight>.isSendable, "Configuration.Spotlight")
        note(Probe<ForwardingFilterRule>.isSendable, "ForwardingFilterRule")
        note(Probe<ForwardingFilterRuleField>.isSendable, "ForwardingFilterRuleField")
        note(Probe<ForwardingFilterRuleOperator>.isSendable, "ForwardingFilterRuleOperator")
        note(Probe<ForwardingFilterAction>.isSendable, "ForwardingFilterAction")
        note(Probe<Proxy>.isSendable, "Proxy")
        note(Probe<MediaConstraints>.isSendable, "MediaConstraints")
        note(Probe<SDPSemantics>.isSendable, "SDPSemantics")
        note(Probe<DegradationPreference>.isSendable, "DegradationPreference")
        note(Probe<ICETransportPolicy>.isSendable, "ICETransportPolicy")
        note(Probe<AudioMode>.isSendable, "AudioMode")
        note(Probe<AudioOutput>.isSendable, "AudioOutput")
        note(Probe<AspectRatio>.isSendable, "AspectRatio")
        note(Probe<CameraSettings>.isSendable, "CameraSettings")
        note(Probe<CameraSettings.Resolution>.isSendable, "CameraSettings.Resolution")
        note(Probe<VideoViewConnectionMode>.isSendable, "VideoViewConnectionMode")
        note(Probe<CameraVideoCapturer>.isSendable, "CameraVideoCapturer")
        note(Probe<DeviceInfo>.isSendable, "DeviceInfo")
        note(Probe<WebSocketStatusCode>.isSendable, "WebSocketStatusCode")
        note(Probe<WebSocketMessage>.isSendable, "WebSocketMessage")
        note(Probe<SignalingRole>.isSendable, "SignalingRole")
        note(Probe<SignalingAnswer>.isSendable, "SignalingAnswer")
        note(Probe<SignalingUpdate>.isSendable, "SignalingUpdate")
        note(Probe<SignalingReOffer>.isSendable, "SignalingReOffer")
        note(Probe<SignalingReAnswer>.isSendable, "SignalingReAnswer")
        note(Probe<SignalingSwitched>.isSendable, "SignalingSwitched")
        note(Probe<SignalingRedirect>.isSendable, "SignalingRedirect")
        note(Probe<SignalingClose>.isSendable, "SignalingClose")
        note(Probe<SignalingPing>.isSendable, "SignalingPing")
        note(Probe<SignalingPong>.isSendable, "SignalingPong")
        note(Probe<SignalingDisconnect>.isSendable, "SignalingDisconnect")
        note(Probe<Logger>.isSendable, "Logger")
        note(Probe<Logger.Group>.isSendable, "Logger.Group")
        note(Probe<LogLevel>.isSendable, "LogLevel")
        note(Probe<LogType>.isSendable, "LogType")
        note(Probe<Log>.isSendable, "Log")
        note(Probe<JSONValue>.isSendable, "JSONValue")
        note(Probe<SendableRPCResponse<Int>>.isSendable, "SendableRPCResponse<Int>")
        note(Probe<RequestSimulcastRidParams>.isSendable, "RequestSimulcastRidParams")
        note(Probe<RequestSimulcastRidResult>.isSendable, "RequestSimulcastRidResult")
        note(Probe<RequestSpotlightRidParams>.isSendable, "RequestSpotlightRidParams")
        note(Probe<RequestSpotlightRidResult>.isSendable, "RequestSpotlightRidResult")
        note(Probe<ResetSpotlightRidParams>.isSendable, "ResetSpotlightRidParams")
        note(Probe<ResetSpotlightRidResult>.isSendable, "ResetSpotlightRidResult")
        note(Probe<PutSignalingNotifyMetadataParams<Int>>.isSendable, "PutSignalingNotifyMetadataParams<Int>")
        note(Probe<PutSignalingNotifyMetadataItemParams<Int>>.isSendable, "PutSignalingNotifyMetadataItemParams<Int>")
        note(Probe<StatisticsSnapshot>.isSendable, "StatisticsSnapshot")
        note(Probe<StatisticsEntrySnapshot>.isSendable, "StatisticsEntrySnapshot")
        #expect(wrong == [])
    }

    @Test func objectsThatMustNotBeDeclaredSafe() {
        var wrong: [String] = []
        func note(_ isSendable: Bool, _ name: String) { if isSendable { wrong.append(name) } }
        note(Probe<Configuration>.isSendable, "Configuration")
        note(Probe<WebRTCConfiguration>.isSendable, "WebRTCConfiguration")
        note(Probe<ForwardingFilter>.isSendable, "ForwardingFilter")
        note(Probe<MediaChannel>.isSendable, "MediaChannel")
        note(Probe<any MediaStream>.isSendable, "any MediaStream")
        note(Probe<ConnectionTask>.isSendable, "ConnectionTask")
        note(Probe<SoraHandlers>.isSendable, "SoraHandlers")
        note(Probe<MediaChannelHandlers>.isSendable, "MediaChannelHandlers")
        note(Probe<MediaStreamHandlers>.isSendable, "MediaStreamHandlers")
        note(Probe<WebSocketChannelHandlers>.isSendable, "WebSocketChannelHandlers")
        note(Probe<CameraVideoCapturerHandlers>.isSendable, "CameraVideoCapturerHandlers")
        note(Probe<Signaling>.isSendable, "Signaling")
        note(Probe<SignalingConnect>.isSendable, "SignalingConnect")
        note(Probe<SignalingOffer>.isSendable, "SignalingOffer")
        note(Probe<SignalingNotify>.isSendable, "SignalingNotify")
        note(Probe<SignalingNotifyMetadata>.isSendable, "SignalingNotifyMetadata")
        note(Probe<SignalingPush>.isSendable, "SignalingPush")
        note(Probe<SignalingCandidate>.isSendable, "SignalingCandidate")
        note(Probe<ICEServerInfo>.isSendable, "ICEServerInfo")
        note(Probe<ICECandidate>.isSendable, "ICECandidate")
        note(Probe<VideoFrame>.isSendable, "VideoFrame")
        note(Probe<ScreenCaptureSettings>.isSendable, "ScreenCaptureSettings")
        note(Probe<RPCResponse<Int>>.isSendable, "RPCResponse<Int>")
        note(Probe<Statistics>.isSendable, "Statistics")
        note(Probe<StatisticsEntry>.isSendable, "StatisticsEntry")
        note(Probe<PutSignalingNotifyMetadataParams<Box>>.isSendable, "PutSignalingNotifyMetadataParams<Box>")
        #expect(wrong == [])
        // The main actor's own.
        #expect(Probe<VideoView>.isSendable)
    }
}
