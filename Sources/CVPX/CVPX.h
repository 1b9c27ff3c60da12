/* libvpx for Swift: what macros, unions and varargs hide from it. */
#ifndef SORA_CVPX_H
#define SORA_CVPX_H
#include <string.h>
#include <vpx/vpx_encoder.h>
#include <vpx/vpx_decoder.h>
#include <vpx/vp8cx.h>
#include <vpx/vp8dx.h>

static inline vpx_codec_err_t sora_vpx_enc_init(vpx_codec_ctx_t *ctx, vpx_codec_iface_t *iface,
                                                const vpx_codec_enc_cfg_t *cfg) {
  return vpx_codec_enc_init_ver(ctx, iface, cfg, 0, VPX_ENCODER_ABI_VERSION);
}

static inline vpx_codec_err_t sora_vpx_dec_init(vpx_codec_ctx_t *ctx, vpx_codec_iface_t *iface,
                                                unsigned int threads) {
  vpx_codec_dec_cfg_t cfg;
  memset(&cfg, 0, sizeof cfg);
  cfg.threads = threads;
  return vpx_codec_dec_init_ver(ctx, iface, &cfg, 0, VPX_DECODER_ABI_VERSION);
}

/* Controls whose argument is an int. */
static inline vpx_codec_err_t sora_vpx_control(vpx_codec_ctx_t *ctx, int control, int value) {
  return vpx_codec_control_(ctx, control, value);
}

/* Whether the last decoded frame was damaged; libvpx conceals instead of failing. */
static inline int sora_vp8_is_corrupted(vpx_codec_ctx_t *ctx) {
  int corrupted = 0;
  if (vpx_codec_control_(ctx, VP8D_GET_FRAME_CORRUPTED, &corrupted) != VPX_CODEC_OK) return 0;
  return corrupted;
}

static inline vpx_codec_err_t sora_vpx_encode(vpx_codec_ctx_t *ctx, const uint8_t *y, int stride_y,
                                              const uint8_t *u, int stride_u, const uint8_t *v, int stride_v,
                                              unsigned int width, unsigned int height, int64_t pts,
                                              unsigned long duration, int64_t flags) {
  vpx_image_t image;
  /* The planes are read only; the library's type just lacks the const. */
  if (!vpx_img_wrap(&image, VPX_IMG_FMT_I420, width, height, 1, (unsigned char *)(uintptr_t)y))
    return VPX_CODEC_INVALID_PARAM;
  image.planes[VPX_PLANE_Y] = (unsigned char *)(uintptr_t)y;
  image.planes[VPX_PLANE_U] = (unsigned char *)(uintptr_t)u;
  image.planes[VPX_PLANE_V] = (unsigned char *)(uintptr_t)v;
  image.stride[VPX_PLANE_Y] = stride_y;
  image.stride[VPX_PLANE_U] = stride_u;
  image.stride[VPX_PLANE_V] = stride_v;
  return vpx_codec_encode(ctx, &image, pts, duration, (vpx_enc_frame_flags_t)flags, VPX_DL_REALTIME);
}

/* The next coded frame, or NULL; other kinds of packet are passed over. */
static inline const uint8_t *sora_vpx_next_frame(vpx_codec_ctx_t *ctx, vpx_codec_iter_t *iter, size_t *size,
                                                 int *is_key, int *is_droppable, int64_t *pts) {
  const vpx_codec_cx_pkt_t *packet;
  while ((packet = vpx_codec_get_cx_data(ctx, iter))) {
    if (packet->kind != VPX_CODEC_CX_FRAME_PKT) continue;
    *size = packet->data.frame.sz;
    *is_key = (packet->data.frame.flags & VPX_FRAME_IS_KEY) != 0;
    *is_droppable = (packet->data.frame.flags & VPX_FRAME_IS_DROPPABLE) != 0;
    *pts = packet->data.frame.pts;
    return (const uint8_t *)packet->data.frame.buf;
  }
  return NULL;
}

static inline const uint8_t *sora_vpx_plane(const vpx_image_t *image, int plane) { return image->planes[plane]; }
static inline int sora_vpx_stride(const vpx_image_t *image, int plane) { return image->stride[plane]; }

static inline const char *sora_vpx_error(vpx_codec_ctx_t *ctx) {
  const char *detail = vpx_codec_error_detail(ctx);
  return detail ? detail : vpx_codec_error(ctx);
}
#endif
