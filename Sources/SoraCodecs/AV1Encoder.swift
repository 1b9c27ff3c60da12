#if Media
import CAOM
import SoraFrames

/// AV1 by libaom, set up for conversation.
package final class AV1Encoder: VideoEncoder {
    package let codec = VideoCodecKind.av1
    private var settings: VideoEncoderSettings
    private var context: UnsafeMutablePointer<aom_codec_ctx_t>?
    private var configuration = aom_codec_enc_cfg_t()
    private var clock = EncodingClock(unit: .microseconds(1))

    package init(_ settings: VideoEncoderSettings) throws(CodecError) {
        self.settings = settings.clamped
        try open()
    }

    deinit { close() }

    package func encode(_ frame: VideoFrame, forceKeyFrame: Bool) throws(CodecError) -> [EncodedVideoFrame] {
        var forceKeyFrame = forceKeyFrame
        if frame.width != settings.width || frame.height != settings.height {
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
        let result = frame.buffer.withPlanes { planes in
            sora_aom_encode(
                context, planes.y, Int32(planes.strideY), planes.u, Int32(planes.strideU), planes.v,
                Int32(planes.strideV), UInt32(planes.width), UInt32(planes.height), pts, duration,
                forceKeyFrame ? 1 : 0)
        }
        guard result == AOM_CODEC_OK else {
            throw .encodingFailed(codec: codec.rawValue, detail: String(cString: sora_aom_error(context)))
        }
        var output: [EncodedVideoFrame] = []
        var iterator: aom_codec_iter_t?
        var size = 0
        var isKey: Int32 = 0
        while let bytes = sora_aom_next_frame(context, &iterator, &size, &isKey) {
            output.append(
                EncodedVideoFrame(
                    codec: codec, isKeyFrame: isKey != 0, width: settings.width, height: settings.height,
                    timestamp: frame.timestamp, payload: Array(UnsafeBufferPointer(start: bytes, count: size)),
                    rotation: frame.rotation, isLayerSync: isKey != 0))
        }
        return output
    }

    package func setBitrate(_ bitsPerSecond: Int, framerate: Double) throws(CodecError) {
        settings.bitrate = bitsPerSecond
        settings.framerate = framerate
        settings = settings.clamped
        guard let context else { return }
        configuration.rc_target_bitrate = UInt32(settings.bitrate / 1000)
        guard aom_codec_enc_config_set(context, &configuration) == AOM_CODEC_OK else {
            throw .encodingFailed(codec: codec.rawValue, detail: String(cString: sora_aom_error(context)))
        }
    }

    private func open() throws(CodecError) {
        close()
        guard sora_aom_defaults(&configuration) == AOM_CODEC_OK else {
            throw .openingFailed(codec: codec.rawValue, detail: "no default configuration")
        }
        configuration.g_w = UInt32(settings.width)
        configuration.g_h = UInt32(settings.height)
        configuration.g_timebase = aom_rational(num: 1, den: 1_000_000)
        configuration.g_threads = UInt32(threads)
        configuration.g_lag_in_frames = 0
        configuration.g_error_resilient = 0
        configuration.rc_end_usage = AOM_CBR
        configuration.rc_target_bitrate = UInt32(settings.bitrate / 1000)
        // With quantizers at their ends libaom's rate control can hit an assertion of its own.
        configuration.rc_min_quantizer = 10
        configuration.rc_max_quantizer = 56
        configuration.rc_undershoot_pct = 50
        configuration.rc_overshoot_pct = 50
        configuration.rc_buf_sz = 1000
        configuration.rc_buf_initial_sz = 600
        configuration.rc_buf_optimal_sz = 600
        configuration.rc_dropframe_thresh = settings.mayDropFrames ? 30 : 0
        if let interval = settings.keyFrameInterval {
            configuration.kf_mode = AOM_KF_AUTO
            configuration.kf_max_dist = UInt32(min(max(interval, 1), 100_000))
        } else {
            configuration.kf_mode = AOM_KF_DISABLED
        }
        let context = UnsafeMutablePointer<aom_codec_ctx_t>.allocate(capacity: 1)
        context.initialize(to: aom_codec_ctx_t())
        guard sora_aom_enc_init(context, &configuration) == AOM_CODEC_OK else {
            let detail = String(cString: sora_aom_error(context))
            context.deallocate()
            throw .openingFailed(codec: codec.rawValue, detail: detail)
        }
        self.context = context
        clock.restart()
        setControls(context)
    }

    /// Tools that cost more time than a conversation has are off.
    private func setControls(_ context: UnsafeMutablePointer<aom_codec_ctx_t>) {
        func set(_ control: aome_enc_control_id, _ value: Int) {
            _ = sora_aom_control(context, Int32(control.rawValue), Int32(value))
        }
        set(AOME_SET_CPUUSED, settings.width * settings.height >= 640 * 360 ? 10 : 9)
        set(AV1E_SET_AQ_MODE, 3)
        set(AOME_SET_MAX_INTRA_BITRATE_PCT, max(300, Int(600 * 0.5 * settings.framerate / 10)))
        set(AV1E_SET_TILE_COLUMNS, threads >= 4 ? 2 : threads >= 2 ? 1 : 0)
        set(AV1E_SET_ROW_MT, threads > 1 ? 1 : 0)
        set(AV1E_SET_TUNE_CONTENT, settings.content == .detail ? 1 : 0)
        set(AV1E_SET_ENABLE_PALETTE, settings.content == .detail ? 1 : 0)
        set(AV1E_SET_COEFF_COST_UPD_FREQ, 3)
        set(AV1E_SET_MODE_COST_UPD_FREQ, 3)
        set(AV1E_SET_MV_COST_UPD_FREQ, 3)
        set(AV1E_SET_INTRA_DEFAULT_TX_ONLY, 1)
        set(AV1E_SET_DISABLE_TRELLIS_QUANT, 1)
        set(AV1E_SET_MAX_REFERENCE_FRAMES, 3)
        for off in [
            AV1E_SET_ENABLE_TPL_MODEL, AV1E_SET_DELTAQ_MODE, AV1E_SET_ENABLE_ORDER_HINT, AV1E_SET_ENABLE_OBMC,
            AV1E_SET_ENABLE_GLOBAL_MOTION, AV1E_SET_ENABLE_WARPED_MOTION, AV1E_SET_ENABLE_CFL_INTRA,
            AV1E_SET_ENABLE_SMOOTH_INTRA, AV1E_SET_ENABLE_ANGLE_DELTA, AV1E_SET_ENABLE_FILTER_INTRA,
            AV1E_SET_ENABLE_DIST_WTD_COMP, AV1E_SET_ENABLE_DIFF_WTD_COMP, AV1E_SET_ENABLE_DUAL_FILTER,
            AV1E_SET_ENABLE_INTERINTRA_COMP, AV1E_SET_ENABLE_INTERINTRA_WEDGE, AV1E_SET_ENABLE_INTRA_EDGE_FILTER,
            AV1E_SET_ENABLE_INTRABC, AV1E_SET_ENABLE_MASKED_COMP, AV1E_SET_ENABLE_PAETH_INTRA, AV1E_SET_ENABLE_QM,
            AV1E_SET_ENABLE_RECT_PARTITIONS, AV1E_SET_ENABLE_REF_FRAME_MVS, AV1E_SET_ENABLE_TX64,
        ] { set(off, 0) }
    }

    private var threads: Int {
        CodecMachine.threads(for: settings, twoFrom: 640 * 360, fourFrom: 1280 * 720)
    }

    private func close() {
        guard let context else { return }
        aom_codec_destroy(context)
        context.deallocate()
        self.context = nil
    }
}
#endif
