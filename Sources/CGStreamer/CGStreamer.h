/* GStreamer for Swift: what macros and varargs hide from it. */
#ifndef SORA_CGSTREAMER_H
#define SORA_CGSTREAMER_H
#include <gst/gst.h>
#include <gst/app/gstappsrc.h>
#include <gst/app/gstappsink.h>
#include <gst/video/video.h>
#include <gst/audio/audio.h>

/* Pipelines from a description; NULL and *error on any fault, never a partial pipeline. */
static inline GstElement *sora_gst_parse(const char *description, GError **error) {
  GError *problem = NULL;
  GstElement *element =
      gst_parse_launch_full(description, NULL, GST_PARSE_FLAG_FATAL_ERRORS, &problem);
  if (problem) {
    if (element) gst_object_unref(element);
    if (error) *error = problem; else g_error_free(problem);
    return NULL;
  }
  return element;
}

static inline GstElement *sora_gst_bin(const char *description, GError **error) {
  GError *problem = NULL;
  GstElement *element = gst_parse_bin_from_description_full(description, TRUE, NULL, GST_PARSE_FLAG_FATAL_ERRORS, &problem);
  if (problem) {
    if (element) gst_object_unref(element);
    if (error) *error = problem; else g_error_free(problem);
    return NULL;
  }
  return element;
}

static inline void sora_gst_unref(void *object) { gst_object_unref(object); }
static inline void *sora_gst_ref(void *object) { return gst_object_ref(object); }
static inline gboolean sora_gst_bin_add(GstElement *bin, GstElement *element) { return gst_bin_add(GST_BIN(bin), element); }
static inline GstElement *sora_gst_child(GstElement *bin, const char *name) { return gst_bin_get_by_name(GST_BIN(bin), name); }
static inline GstElement *sora_gst_pipeline_new(void) { return gst_pipeline_new(NULL); }

/* Times of all our pipelines are CLOCK_MONOTONIC, whatever clock a device brings along. */
static inline void sora_gst_use_system_clock(GstElement *pipeline) {
  if (!GST_IS_PIPELINE(pipeline)) return;
  GstClock *clock = gst_system_clock_obtain();
  gst_pipeline_use_clock(GST_PIPELINE(pipeline), clock);
  gst_object_unref(clock);
}

/* Any property, from text. */
static inline void sora_gst_set(void *object, const char *name, const char *value) {
  gst_util_set_object_arg(G_OBJECT(object), name, value);
}
static inline gboolean sora_gst_has_property(void *object, const char *name) {
  return g_object_class_find_property(G_OBJECT_GET_CLASS(object), name) != NULL;
}

typedef void (*sora_gst_pad_handler)(GstElement *element, GstPad *pad, void *context);
static inline gulong sora_gst_on_pad_added(GstElement *element, sora_gst_pad_handler handler, void *context) {
  return g_signal_connect(element, "pad-added", G_CALLBACK(handler), context);
}
static inline void sora_gst_disconnect(void *object, gulong handler) { g_signal_handler_disconnect(object, handler); }

/* Calls `handler` on the streaming thread for each buffer; `destroy` frees `context` with the element. */
typedef GstFlowReturn (*sora_gst_sample_handler)(GstAppSink *sink, void *context);
static inline void sora_gst_on_sample(GstElement *sink, sora_gst_sample_handler handler, void *context,
                                      GDestroyNotify destroy) {
  GstAppSinkCallbacks callbacks = {0};
  callbacks.new_sample = (GstFlowReturn (*)(GstAppSink *, gpointer))handler;
  gst_app_sink_set_callbacks(GST_APP_SINK(sink), &callbacks, context, destroy);
}

/* Time of a sample on the pipeline's clock in nanoseconds; GST_CLOCK_TIME_NONE if it has none. */
static inline guint64 sora_gst_sample_time(GstElement *sink, GstSample *sample) {
  GstBuffer *buffer = gst_sample_get_buffer(sample);
  GstSegment *segment = gst_sample_get_segment(sample);
  if (!buffer || !segment || segment->format != GST_FORMAT_TIME || !GST_BUFFER_PTS_IS_VALID(buffer))
    return GST_CLOCK_TIME_NONE;
  guint64 running = gst_segment_to_running_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
  GstClockTime base = gst_element_get_base_time(sink);
  if (!GST_CLOCK_TIME_IS_VALID(running) || !GST_CLOCK_TIME_IS_VALID(base)) return GST_CLOCK_TIME_NONE;
  return base + running;
}

/* An I420 picture inside a sample. */
typedef struct {
  const guint8 *y, *u, *v;
  int stride_y, stride_u, stride_v, width, height;
  GstVideoFrame frame;
} sora_gst_picture;
static inline gboolean sora_gst_map_picture(GstSample *sample, sora_gst_picture *picture) {
  GstVideoInfo info;
  GstCaps *caps = gst_sample_get_caps(sample);
  GstBuffer *buffer = gst_sample_get_buffer(sample);
  if (!caps || !buffer || !gst_video_info_from_caps(&info, caps)) return FALSE;
  if (GST_VIDEO_INFO_FORMAT(&info) != GST_VIDEO_FORMAT_I420) return FALSE;
  if (!gst_video_frame_map(&picture->frame, &info, buffer, GST_MAP_READ)) return FALSE;
  picture->y = (const guint8 *)GST_VIDEO_FRAME_PLANE_DATA(&picture->frame, 0);
  picture->u = (const guint8 *)GST_VIDEO_FRAME_PLANE_DATA(&picture->frame, 1);
  picture->v = (const guint8 *)GST_VIDEO_FRAME_PLANE_DATA(&picture->frame, 2);
  picture->stride_y = GST_VIDEO_FRAME_PLANE_STRIDE(&picture->frame, 0);
  picture->stride_u = GST_VIDEO_FRAME_PLANE_STRIDE(&picture->frame, 1);
  picture->stride_v = GST_VIDEO_FRAME_PLANE_STRIDE(&picture->frame, 2);
  picture->width = GST_VIDEO_FRAME_WIDTH(&picture->frame);
  picture->height = GST_VIDEO_FRAME_HEIGHT(&picture->frame);
  return TRUE;
}
static inline void sora_gst_unmap_picture(sora_gst_picture *picture) { gst_video_frame_unmap(&picture->frame); }

/* Interleaved 16-bit sound inside a sample. */
static inline gboolean sora_gst_sound_format(GstSample *sample, int *rate, int *channels) {
  GstAudioInfo info;
  GstCaps *caps = gst_sample_get_caps(sample);
  if (!caps || !gst_audio_info_from_caps(&info, caps) || GST_AUDIO_INFO_FORMAT(&info) != GST_AUDIO_FORMAT_S16LE)
    return FALSE;
  *rate = GST_AUDIO_INFO_RATE(&info);
  *channels = GST_AUDIO_INFO_CHANNELS(&info);
  return TRUE;
}

static inline void sora_gst_sample_unref(GstSample *sample) { gst_sample_unref(sample); }
static inline void sora_gst_message_unref(GstMessage *message) { gst_message_unref(message); }
static inline void sora_gst_caps_unref(GstCaps *caps) { gst_caps_unref(caps); }

/* Kinds of message that we look at; enums with the top bit set do not compare equal in Swift. */
typedef enum {
  SORA_GST_OTHER, SORA_GST_ERROR, SORA_GST_END, SORA_GST_READY, SORA_GST_WAKE,
  SORA_GST_DEVICE_ADDED, SORA_GST_DEVICE_REMOVED, SORA_GST_DEVICE_CHANGED
} sora_gst_message_kind;
static inline sora_gst_message_kind sora_gst_kind(GstMessage *message) {
  switch (GST_MESSAGE_TYPE(message)) {
  case GST_MESSAGE_ERROR: return SORA_GST_ERROR;
  case GST_MESSAGE_EOS: return SORA_GST_END;
  case GST_MESSAGE_ASYNC_DONE: return SORA_GST_READY;
  case GST_MESSAGE_APPLICATION: return SORA_GST_WAKE;
  case GST_MESSAGE_DEVICE_ADDED: return SORA_GST_DEVICE_ADDED;
  case GST_MESSAGE_DEVICE_REMOVED: return SORA_GST_DEVICE_REMOVED;
  case GST_MESSAGE_DEVICE_CHANGED: return SORA_GST_DEVICE_CHANGED;
  default: return SORA_GST_OTHER;
  }
}
/* The error's text; free with g_free. */
static inline char *sora_gst_error_text(GstMessage *message) {
  GError *error = NULL;
  gst_message_parse_error(message, &error, NULL);
  char *text = g_strdup(error && error->message ? error->message : "unknown error");
  if (error) g_error_free(error);
  return text;
}
static inline void sora_gst_wake(GstBus *bus) {
  gst_bus_post(bus, gst_message_new_application(NULL, gst_structure_new_empty("wake")));
}

/* Sound for an appsrc: copies the bytes, stamps them. */
static inline GstFlowReturn sora_gst_push(GstElement *source, const void *bytes, gsize size, guint64 pts,
                                          guint64 duration) {
  GstBuffer *buffer = gst_buffer_new_allocate(NULL, size, NULL);
  if (!buffer) return GST_FLOW_ERROR;
  gst_buffer_fill(buffer, 0, bytes, size);
  GST_BUFFER_PTS(buffer) = pts;
  GST_BUFFER_DURATION(buffer) = duration;
  return gst_app_src_push_buffer(GST_APP_SRC(source), buffer);
}
static inline guint64 sora_gst_queued_bytes(GstElement *source) {
  return gst_app_src_get_current_level_bytes(GST_APP_SRC(source));
}
static inline void sora_gst_end_stream(GstElement *source) { gst_app_src_end_of_stream(GST_APP_SRC(source)); }

static inline gboolean sora_gst_seek_to_start(GstElement *pipeline) {
  return gst_element_seek_simple(pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_KEY_UNIT, 0);
}
static inline guint64 sora_gst_none(void) { return GST_CLOCK_TIME_NONE; }

/* Deepest text property of a device, or NULL; free with g_free. */
static inline char *sora_gst_device_property(GstDevice *device, const char *name) {
  GstStructure *properties = gst_device_get_properties(device);
  if (!properties) return NULL;
  char *text = NULL;
  const GValue *value = gst_structure_get_value(properties, name);
  if (value) text = G_VALUE_HOLDS_STRING(value) ? g_value_dup_string(value) : gst_value_serialize(value);
  gst_structure_free(properties);
  return text;
}

/* ---- devices ---- */

static inline GstDeviceMonitor *sora_gst_monitor_new(void) { return gst_device_monitor_new(); }
/* Who reports the device: GstPulseDevice, GstPipeWireDevice, GstV4l2Device... */
static inline const char *sora_gst_type_name(void *object) { return G_OBJECT_TYPE_NAME(object); }
/* Visits each frame rate or range of rates in a caps structure. */
typedef void (*sora_gst_rate_visitor)(double low, double high, void *context);
static inline double sora_gst_fraction(const GValue *value) {
  int denominator = gst_value_get_fraction_denominator(value);
  return denominator ? (double)gst_value_get_fraction_numerator(value) / denominator : 0;
}
static inline void sora_gst_visit_rates(const GstStructure *structure, sora_gst_rate_visitor visit, void *context) {
  const GValue *value = gst_structure_get_value(structure, "framerate");
  if (!value) return;
  if (GST_VALUE_HOLDS_FRACTION(value)) {
    double rate = sora_gst_fraction(value);
    visit(rate, rate, context);
  } else if (GST_VALUE_HOLDS_FRACTION_RANGE(value)) {
    visit(sora_gst_fraction(gst_value_get_fraction_range_min(value)),
          sora_gst_fraction(gst_value_get_fraction_range_max(value)), context);
  } else if (GST_VALUE_HOLDS_LIST(value)) {
    for (guint i = 0; i < gst_value_list_get_size(value); i++) {
      double rate = sora_gst_fraction(gst_value_list_get_value(value, i));
      visit(rate, rate, context);
    }
  }
}
#endif
