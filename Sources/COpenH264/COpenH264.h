/* OpenH264 for Swift: its C interface is a table of functions, its settings are nested arrays. */
#ifndef SORA_COPENH264_H
#define SORA_COPENH264_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#pragma push_macro("bool")
#undef bool
#include <wels/codec_api.h>
#pragma pop_macro("bool")

static inline ISVCEncoder *sora_h264_encoder_open(int width, int height, int bitrate, float framerate, int threads,
                                                  int skips_frames, int is_screen) {
  ISVCEncoder *encoder = NULL;
  if (WelsCreateSVCEncoder(&encoder) != 0 || !encoder) return NULL;
  int level = WELS_LOG_QUIET;
  (*encoder)->SetOption(encoder, ENCODER_OPTION_TRACE_LEVEL, &level);
  SEncParamExt settings;
  memset(&settings, 0, sizeof settings);
  (*encoder)->GetDefaultParams(encoder, &settings);
  settings.iUsageType = is_screen ? SCREEN_CONTENT_REAL_TIME : CAMERA_VIDEO_REAL_TIME;
  settings.iPicWidth = width;
  settings.iPicHeight = height;
  settings.iTargetBitrate = bitrate;
  /* Far above any target: the library refuses to raise the target above this later. */
  settings.iMaxBitrate = UNSPECIFIED_BIT_RATE;
  settings.iRCMode = RC_BITRATE_MODE;
  settings.fMaxFrameRate = framerate;
  settings.bEnableFrameSkip = skips_frames;
  settings.uiIntraPeriod = 0;
  settings.iNumRefFrame = 1;
  settings.eSpsPpsIdStrategy = CONSTANT_ID;
  settings.iMultipleThreadIdc = threads;
  settings.iEntropyCodingModeFlag = 0;
  settings.bEnableSceneChangeDetect = 0;
  settings.bEnableDenoise = 0;
  settings.bEnableLongTermReference = 0;
  settings.iTemporalLayerNum = 1;
  settings.iSpatialLayerNum = 1;
  settings.sSpatialLayers[0].iVideoWidth = width;
  settings.sSpatialLayers[0].iVideoHeight = height;
  settings.sSpatialLayers[0].fFrameRate = framerate;
  settings.sSpatialLayers[0].iSpatialBitrate = bitrate;
  settings.sSpatialLayers[0].iMaxSpatialBitrate = UNSPECIFIED_BIT_RATE;
  settings.sSpatialLayers[0].uiProfileIdc = PRO_BASELINE;
  settings.sSpatialLayers[0].sSliceArgument.uiSliceMode = SM_SINGLE_SLICE;
  if ((*encoder)->InitializeExt(encoder, &settings) != cmResultSuccess) {
    WelsDestroySVCEncoder(encoder);
    return NULL;
  }
  int format = videoFormatI420;
  (*encoder)->SetOption(encoder, ENCODER_OPTION_DATAFORMAT, &format);
  return encoder;
}
static inline void sora_h264_encoder_close(ISVCEncoder *encoder) {
  (*encoder)->Uninitialize(encoder);
  WelsDestroySVCEncoder(encoder);
}
static inline int sora_h264_encoder_rate(ISVCEncoder *encoder, int bitrate, float framerate) {
  SBitrateInfo info = {SPATIAL_LAYER_ALL, bitrate};
  int code = (*encoder)->SetOption(encoder, ENCODER_OPTION_BITRATE, &info);
  if (code != cmResultSuccess) return code;
  return (*encoder)->SetOption(encoder, ENCODER_OPTION_FRAME_RATE, &framerate);
}

typedef void (*sora_h264_writer)(const uint8_t *bytes, size_t size, void *context);
/* One picture. `*kind` becomes 0: skipped, 1: delta, 2: key frame. Returns 0 or an error. */
static inline int sora_h264_encode(ISVCEncoder *encoder, const uint8_t *y, int stride_y, const uint8_t *u,
                                   int stride_u, const uint8_t *v, int stride_v, int width, int height,
                                   int64_t milliseconds, int force_key, int *kind, sora_h264_writer write,
                                   void *context) {
  if (force_key) (*encoder)->ForceIntraFrame(encoder, 1);
  SSourcePicture picture;
  SFrameBSInfo info;
  memset(&picture, 0, sizeof picture);
  memset(&info, 0, sizeof info);
  picture.iColorFormat = videoFormatI420;
  picture.iPicWidth = width;
  picture.iPicHeight = height;
  picture.uiTimeStamp = milliseconds;
  picture.iStride[0] = stride_y;
  picture.iStride[1] = stride_u;
  picture.iStride[2] = stride_v;
  /* Read only; the library's type just lacks the const. */
  picture.pData[0] = (unsigned char *)(uintptr_t)y;
  picture.pData[1] = (unsigned char *)(uintptr_t)u;
  picture.pData[2] = (unsigned char *)(uintptr_t)v;
  int code = (*encoder)->EncodeFrame(encoder, &picture, &info);
  if (code != cmResultSuccess) return code;
  *kind = 0;
  if (info.eFrameType == videoFrameTypeSkip || info.eFrameType == videoFrameTypeInvalid) return 0;
  *kind = info.eFrameType == videoFrameTypeIDR ? 2 : 1;
  for (int i = 0; i < info.iLayerNum; i++) {
    size_t size = 0;
    for (int n = 0; n < info.sLayerInfo[i].iNalCount; n++) size += (size_t)info.sLayerInfo[i].pNalLengthInByte[n];
    write(info.sLayerInfo[i].pBsBuf, size, context);
  }
  return 0;
}

static inline ISVCDecoder *sora_h264_decoder_open(void) {
  ISVCDecoder *decoder = NULL;
  if (WelsCreateDecoder(&decoder) != 0 || !decoder) return NULL;
  int level = WELS_LOG_QUIET;
  (*decoder)->SetOption(decoder, DECODER_OPTION_TRACE_LEVEL, &level);
  SDecodingParam settings;
  memset(&settings, 0, sizeof settings);
  settings.sVideoProperty.size = sizeof settings.sVideoProperty;
  settings.sVideoProperty.eVideoBsType = VIDEO_BITSTREAM_AVC;
  settings.eEcActiveIdc = ERROR_CON_DISABLE;
  settings.uiTargetDqLayer = 255;
  if ((*decoder)->Initialize(decoder, &settings) != 0) {
    WelsDestroyDecoder(decoder);
    return NULL;
  }
  return decoder;
}
static inline void sora_h264_decoder_close(ISVCDecoder *decoder) {
  (*decoder)->Uninitialize(decoder);
  WelsDestroyDecoder(decoder);
}
typedef struct {
  const uint8_t *y, *u, *v;
  int stride_y, stride_uv, width, height;
} sora_h264_view;
/* One access unit with start codes. 1: a picture is in `view` until the next call; 0: none; negative: an error. */
static inline int sora_h264_decode(ISVCDecoder *decoder, const uint8_t *bytes, int size, sora_h264_view *view) {
  unsigned char *planes[3] = {NULL, NULL, NULL};
  SBufferInfo info;
  memset(&info, 0, sizeof info);
  DECODING_STATE state = (*decoder)->DecodeFrameNoDelay(decoder, bytes, size, planes, &info);
  if (state != dsErrorFree) return -(int)state;
  if (info.iBufferStatus != 1 || !planes[0] || !planes[1] || !planes[2]) return 0;
  view->y = planes[0];
  view->u = planes[1];
  view->v = planes[2];
  view->stride_y = info.UsrData.sSystemBuffer.iStride[0];
  view->stride_uv = info.UsrData.sSystemBuffer.iStride[1];
  view->width = info.UsrData.sSystemBuffer.iWidth;
  view->height = info.UsrData.sSystemBuffer.iHeight;
  return 1;
}
#endif
