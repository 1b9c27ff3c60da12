#if Media
import CVPX
import SoraFrames
import SoraWire

/// VP8 and VP9 by libvpx, set up for conversation: constant rate, no look-ahead, key frames on request.
package final class VPXEncoder: VideoEncoder {
    package let codec: VideoCodecKind
    private var settings: VideoEncoderSettings
    private var context: UnsafeMutablePointer<vpx_codec_ctx_t>?
    private var configuration = vpx_codec_enc_cfg_t()
    private var clock = EncodingClock(unit: .microseconds(1))
    /// Capture times of frames inside the encoder, by presentation time.
    private var capturedAt: [(pts: Int64, timestamp: Int64)] = []

    /// Opens at once, so that a setting libvpx refuses is known before the first frame.
    package init(_ settings: VideoEncoderSettings) throws(CodecError) {
        codec = settings.codec
        self.settings = settings.clamped
        guard codec == .vp8 || codec == .vp9 else { throw .unavailable(codec.rawValue) }
        try open()
    }

    deinit { close() }

    /// Settings as clamped, with the size of the latest frame.
    package var currentSettings: VideoEncoderSettings { settings }

    package func encode(_ frame: VideoFrame, forceKeyFrame: Bool) throws(CodecError) -> [EncodedVideoFrame] {
        var forceKeyFrame = forceKeyFrame
        if frame.width != settings.width || frame.height != settings.height {
            // Reopening costs a key frame, which another size needs anyway; libvpx's own way up in size does not
            // exist for VP8.
            settings.width = frame.width
            settings.height = frame.height
            close()
        }
        if context == nil {
            try open()
            forceKeyFrame = true
        }
        guard let context else { throw .openingFailed(codec: codec.rawValue, detail: "no context") }

        let pts = clock.time(of: frame.timestamp)
        let duration = UInt(1_000_000 / settings.framerate)
        let flags = forceKeyFrame ? Int64(VPX_EFLAG_FORCE_KF) : 0
        let result = frame.buffer.withPlanes { planes in
            sora_vpx_encode(
                context, planes.y, Int32(planes.strideY), planes.u, Int32(planes.strideU), planes.v,
                Int32(planes.strideV), UInt32(planes.width), UInt32(planes.height), pts, duration, flags)
        }
        guard result == VPX_CODEC_OK else {
            throw .encodingFailed(codec: codec.rawValue, detail: String(cString: sora_vpx_error(context)))
        }
        capturedAt.append((pts, frame.timestamp))
        return drain(context, frame: frame)
    }

    package func setBitrate(_ bitsPerSecond: Int, framerate: Double) throws(CodecError) {
        settings.bitrate = bitsPerSecond
        settings.framerate = framerate
        settings = settings.clamped
        guard let context else { return }
        configuration.rc_target_bitrate = UInt32(settings.bitrate / 1000)
        guard vpx_codec_enc_config_set(context, &configuration) == VPX_CODEC_OK else {
            throw .encodingFailed(codec: codec.rawValue, detail: String(cString: sora_vpx_error(context)))
        }
        setIntraLimit(context)
    }

    private func drain(
        _ context: UnsafeMutablePointer<vpx_codec_ctx_t>, frame: VideoFrame
    ) -> [EncodedVideoFrame] {
        var output: [EncodedVideoFrame] = []
        var iterator: vpx_codec_iter_t?
        var size = 0
        var isKey: Int32 = 0
        var isDroppable: Int32 = 0
        var pts: Int64 = 0
        while let bytes = sora_vpx_next_frame(context, &iterator, &size, &isKey, &isDroppable, &pts) {
            let timestamp = capturedAt.first { $0.pts == pts }?.timestamp ?? frame.timestamp
            output.append(
                EncodedVideoFrame(
                    codec: codec, isKeyFrame: isKey != 0, width: settings.width, height: settings.height,
                    timestamp: timestamp, payload: Array(UnsafeBufferPointer(start: bytes, count: size)),
                    rotation: frame.rotation, isLayerSync: isKey != 0, isDiscardable: isDroppable != 0))
        }
        // No look-ahead: whatever did not come out by now was dropped.
        capturedAt.removeAll(keepingCapacity: true)
        return output
    }

    private func open() throws(CodecError) {
        close()
        guard let interface = codec == .vp8 ? vpx_codec_vp8_cx() : vpx_codec_vp9_cx() else {
            throw .unavailable(codec.rawValue)
        }
        guard vpx_codec_enc_config_default(interface, &configuration, 0) == VPX_CODEC_OK else {
            throw .openingFailed(codec: codec.rawValue, detail: "no default configuration")
        }
        configuration.g_w = UInt32(settings.width)
        configuration.g_h = UInt32(settings.height)
        configuration.g_timebase = vpx_rational(num: 1, den: 1_000_000)
        configuration.g_threads = UInt32(threads)
        configuration.g_lag_in_frames = 0
        configuration.g_error_resilient = 0
        configuration.rc_end_usage = VPX_CBR
        configuration.rc_target_bitrate = UInt32(settings.bitrate / 1000)
        configuration.rc_min_quantizer = 2
        configuration.rc_max_quantizer = codec == .vp8 ? 56 : 52
        // Without these three libvpx takes many seconds to follow a new target.
        configuration.rc_undershoot_pct = codec == .vp8 ? 100 : 50
        configuration.rc_overshoot_pct = codec == .vp8 ? 15 : 50
        configuration.rc_buf_sz = 1000
        configuration.rc_buf_initial_sz = 500
        configuration.rc_buf_optimal_sz = 600
        configuration.rc_dropframe_thresh = settings.mayDropFrames ? 30 : 0
        configuration.rc_resize_allowed = 0
        if let interval = settings.keyFrameInterval {
            configuration.kf_mode = VPX_KF_AUTO
            configuration.kf_min_dist = 0
            configuration.kf_max_dist = UInt32(min(max(interval, 1), 100_000))
        } else {
            configuration.kf_mode = VPX_KF_DISABLED
        }
        let context = UnsafeMutablePointer<vpx_codec_ctx_t>.allocate(capacity: 1)
        context.initialize(to: vpx_codec_ctx_t())
        guard sora_vpx_enc_init(context, interface, &configuration) == VPX_CODEC_OK else {
            let detail = String(cString: sora_vpx_error(context))
            context.deallocate()
            throw .openingFailed(codec: codec.rawValue, detail: detail)
        }
        self.context = context
        clock.restart()
        capturedAt = []
        setControls(context)
    }

    private func setControls(_ context: UnsafeMutablePointer<vpx_codec_ctx_t>) {
        func set(_ control: vp8e_enc_control_id, _ value: Int) {
            _ = sora_vpx_control(context, Int32(control.rawValue), Int32(value))
        }
        let isDetail = settings.content == .detail
        set(VP8E_SET_STATIC_THRESHOLD, isDetail ? 100 : 1)
        setIntraLimit(context)
        if codec == .vp8 {
            set(VP8E_SET_CPUUSED, -6)
            set(VP8E_SET_NOISE_SENSITIVITY, 0)
            set(VP8E_SET_TOKEN_PARTITIONS, 0)
            set(VP8E_SET_SCREEN_CONTENT_MODE, isDetail ? 1 : 0)
        } else {
            set(VP8E_SET_CPUUSED, settings.width * settings.height <= 352 * 288 ? 7 : 8)
            set(VP9E_SET_TILE_COLUMNS, threads > 2 ? 2 : threads > 1 ? 1 : 0)
            set(VP9E_SET_ROW_MT, threads > 1 ? 1 : 0)
            set(VP9E_SET_AQ_MODE, 3)
            set(VP9E_SET_FRAME_PARALLEL_DECODING, 0)
            set(VP9E_SET_TUNE_CONTENT, isDetail ? 1 : 0)
        }
    }

    /// A key frame may take half of the optimal buffer, so that it does not stall the frames behind it.
    private func setIntraLimit(_ context: UnsafeMutablePointer<vpx_codec_ctx_t>) {
        let percent = max(300, Int(600 * 0.5 * settings.framerate / 10))
        _ = sora_vpx_control(context, Int32(VP8E_SET_MAX_INTRA_BITRATE_PCT.rawValue), Int32(percent))
    }

    private var threads: Int {
        let threads = CodecMachine.threads(for: settings, twoFrom: 1280 * 720, fourFrom: 1920 * 1080)
        // VP8's threads spin while they wait for each other's rows. With no core to spare one that must wait for its turn
        // lets the others burn theirs: on two busy cores 720p fell from 30 pictures a second to 5.
        return codec == .vp8 && settings.threads == nil ? min(threads, max(1, CodecMachine.coreCount / 2)) : threads
    }

    private func close() {
        guard let context else { return }
        vpx_codec_destroy(context)
        context.deallocate()
        self.context = nil
    }
}
#endif
