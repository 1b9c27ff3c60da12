/* libaom's encoder for Swift: what macros, unions and varargs hide from it. */
#ifndef SORA_CAOM_H
#define SORA_CAOM_H
#include <string.h>
#include <aom/aom_encoder.h>
#include <aom/aomcx.h>

static inline aom_codec_err_t sora_aom_enc_init(aom_codec_ctx_t *ctx, const aom_codec_enc_cfg_t *cfg) {
  return aom_codec_enc_init_ver(ctx, aom_codec_av1_cx(), cfg, 0, AOM_ENCODER_ABI_VERSION);
}
static inline aom_codec_err_t sora_aom_defaults(aom_codec_enc_cfg_t *cfg) {
  return aom_codec_enc_config_default(aom_codec_av1_cx(), cfg, AOM_USAGE_REALTIME);
}
static inline aom_codec_err_t sora_aom_control(aom_codec_ctx_t *ctx, int control, int value) {
  return aom_codec_control(ctx, control, value);
}
static inline aom_codec_err_t sora_aom_encode(aom_codec_ctx_t *ctx, const uint8_t *y, int stride_y, const uint8_t *u,
                                              int stride_u, const uint8_t *v, int stride_v, unsigned int width,
                                              unsigned int height, int64_t pts, unsigned long duration, int force_key) {
  aom_image_t image;
  /* The planes are read only; the library's type just lacks the const. */
  if (!aom_img_wrap(&image, AOM_IMG_FMT_I420, width, height, 1, (unsigned char *)(uintptr_t)y))
    return AOM_CODEC_INVALID_PARAM;
  image.planes[AOM_PLANE_Y] = (unsigned char *)(uintptr_t)y;
  image.planes[AOM_PLANE_U] = (unsigned char *)(uintptr_t)u;
  image.planes[AOM_PLANE_V] = (unsigned char *)(uintptr_t)v;
  image.stride[AOM_PLANE_Y] = stride_y;
  image.stride[AOM_PLANE_U] = stride_u;
  image.stride[AOM_PLANE_V] = stride_v;
  return aom_codec_encode(ctx, &image, pts, duration, force_key ? AOM_EFLAG_FORCE_KF : 0);
}
static inline const uint8_t *sora_aom_next_frame(aom_codec_ctx_t *ctx, aom_codec_iter_t *iter, size_t *size,
                                                 int *is_key) {
  const aom_codec_cx_pkt_t *packet;
  while ((packet = aom_codec_get_cx_data(ctx, iter))) {
    if (packet->kind != AOM_CODEC_CX_FRAME_PKT) continue;
    *size = packet->data.frame.sz;
    *is_key = (packet->data.frame.flags & AOM_FRAME_IS_KEY) != 0;
    return (const uint8_t *)packet->data.frame.buf;
  }
  return NULL;
}
static inline const char *sora_aom_error(aom_codec_ctx_t *ctx) {
  const char *detail = aom_codec_error_detail(ctx);
  return detail ? detail : aom_codec_error(ctx);
}
#endif
