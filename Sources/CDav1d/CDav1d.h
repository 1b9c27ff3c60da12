/* dav1d for Swift: error macros, and pictures without nested structures. */
#ifndef SORA_CDAV1D_H
#define SORA_CDAV1D_H
#include <errno.h>
#include <string.h>
#include <dav1d/dav1d.h>

static inline Dav1dContext *sora_dav1d_open(int threads) {
  Dav1dSettings settings;
  Dav1dContext *context = NULL;
  dav1d_default_settings(&settings);
  settings.n_threads = threads;
  settings.max_frame_delay = 1;
  settings.frame_size_limit = 16384u * 16384u;
  settings.logger.callback = NULL;
  return dav1d_open(&context, &settings) == 0 ? context : NULL;
}
static inline void sora_dav1d_close(Dav1dContext *context) { dav1d_close(&context); }

typedef struct {
  const uint8_t *y, *u, *v;
  ptrdiff_t stride_y, stride_uv;
  int width, height;
  int is_i420;
} sora_dav1d_view;
typedef void (*sora_dav1d_visitor)(const sora_dav1d_view *view, void *context);

static inline int sora_dav1d_pictures(Dav1dContext *decoder, sora_dav1d_visitor visit, void *context) {
  for (;;) {
    Dav1dPicture picture;
    memset(&picture, 0, sizeof picture);
    int code = dav1d_get_picture(decoder, &picture);
    if (code == DAV1D_ERR(EAGAIN)) return 0;
    if (code < 0) return code;
    sora_dav1d_view view = {(const uint8_t *)picture.data[0], (const uint8_t *)picture.data[1],
                            (const uint8_t *)picture.data[2], picture.stride[0], picture.stride[1],
                            picture.p.w, picture.p.h,
                            picture.p.layout == DAV1D_PIXEL_LAYOUT_I420 && picture.p.bpc == 8};
    visit(&view, context);
    dav1d_picture_unref(&picture);
  }
}

/* Decodes one temporal unit; 0, or a negative error. */
static inline int sora_dav1d_decode(Dav1dContext *decoder, const uint8_t *bytes, size_t size,
                                    sora_dav1d_visitor visit, void *context) {
  Dav1dData data;
  memset(&data, 0, sizeof data);
  uint8_t *copy = dav1d_data_create(&data, size);
  if (!copy) return DAV1D_ERR(ENOMEM);
  memcpy(copy, bytes, size);
  int code = 0;
  while (data.sz > 0) {
    code = dav1d_send_data(decoder, &data);
    if (code < 0 && code != DAV1D_ERR(EAGAIN)) {
      dav1d_data_unref(&data);
      return code;
    }
    int result = sora_dav1d_pictures(decoder, visit, context);
    if (result < 0) {
      if (data.sz > 0) dav1d_data_unref(&data);
      return result;
    }
  }
  return sora_dav1d_pictures(decoder, visit, context);
}
static inline void sora_dav1d_reset(Dav1dContext *decoder) { dav1d_flush(decoder); }
#endif
