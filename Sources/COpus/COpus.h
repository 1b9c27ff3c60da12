/* opus for Swift: controls are variadic in C. */
#ifndef SORA_COPUS_H
#define SORA_COPUS_H
#include <opus.h>

static inline int sora_opus_encoder_set(OpusEncoder *encoder, int request, opus_int32 value) {
  return opus_encoder_ctl(encoder, request, value);
}
static inline int sora_opus_encoder_is_silent(OpusEncoder *encoder) {
  opus_int32 value = 0;
  return opus_encoder_ctl(encoder, OPUS_GET_IN_DTX(&value)) == OPUS_OK && value;
}
static inline int sora_opus_encoder_lookahead(OpusEncoder *encoder) {
  opus_int32 value = 0;
  return opus_encoder_ctl(encoder, OPUS_GET_LOOKAHEAD(&value)) == OPUS_OK ? value : 0;
}
static inline int sora_opus_encoder_reset(OpusEncoder *encoder) {
  return opus_encoder_ctl(encoder, OPUS_RESET_STATE);
}
static inline int sora_opus_decoder_reset(OpusDecoder *decoder) {
  return opus_decoder_ctl(decoder, OPUS_RESET_STATE);
}
enum {
  SORA_OPUS_BITRATE = OPUS_SET_BITRATE_REQUEST,
  SORA_OPUS_FEC = OPUS_SET_INBAND_FEC_REQUEST,
  SORA_OPUS_LOSS = OPUS_SET_PACKET_LOSS_PERC_REQUEST,
  SORA_OPUS_DTX = OPUS_SET_DTX_REQUEST,
  SORA_OPUS_COMPLEXITY = OPUS_SET_COMPLEXITY_REQUEST,
};
#endif
