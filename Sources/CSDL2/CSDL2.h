/* SDL2 for Swift: what unions and macros hide from it. */
#ifndef SORA_CSDL2_H
#define SORA_CSDL2_H
#define SDL_MAIN_HANDLED
#include <SDL.h>

static inline int sora_sdl_start(void) {
  SDL_SetMainReady();
  /* The application's signals and screen saver are its own. */
  SDL_SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1");
  SDL_SetHint(SDL_HINT_VIDEO_ALLOW_SCREENSAVER, "1");
  SDL_SetHint(SDL_HINT_VIDEO_X11_NET_WM_BYPASS_COMPOSITOR, "0");
  SDL_SetHint(SDL_HINT_RENDER_SCALE_QUALITY, "linear");
  return SDL_InitSubSystem(SDL_INIT_VIDEO);
}
static inline void sora_sdl_stop(void) { SDL_QuitSubSystem(SDL_INIT_VIDEO); }

typedef enum {
  SORA_SDL_OTHER, SORA_SDL_WAKE, SORA_SDL_CLOSE, SORA_SDL_RESIZED, SORA_SDL_SHOWN, SORA_SDL_HIDDEN, SORA_SDL_EXPOSED
} sora_sdl_kind;

static inline void sora_sdl_wake(void) {
  SDL_Event event;
  SDL_zero(event);
  event.type = SDL_USEREVENT;
  SDL_PushEvent(&event);
}

/* Waits for an event, at most `milliseconds`; false if none came. `window` is its window's number, `a` and `b` its size. */
static inline int sora_sdl_wait(int milliseconds, sora_sdl_kind *kind, Uint32 *window, int *a, int *b) {
  SDL_Event event;
  if (!SDL_WaitEventTimeout(&event, milliseconds)) return 0;
  *kind = SORA_SDL_OTHER;
  *window = 0;
  if (event.type == SDL_USEREVENT) *kind = SORA_SDL_WAKE;
  if (event.type == SDL_WINDOWEVENT) {
    *window = event.window.windowID;
    *a = event.window.data1;
    *b = event.window.data2;
    switch (event.window.event) {
    case SDL_WINDOWEVENT_CLOSE: *kind = SORA_SDL_CLOSE; break;
    case SDL_WINDOWEVENT_SIZE_CHANGED: *kind = SORA_SDL_RESIZED; break;
    case SDL_WINDOWEVENT_SHOWN:
    case SDL_WINDOWEVENT_RESTORED: *kind = SORA_SDL_SHOWN; break;
    case SDL_WINDOWEVENT_HIDDEN:
    case SDL_WINDOWEVENT_MINIMIZED: *kind = SORA_SDL_HIDDEN; break;
    case SDL_WINDOWEVENT_EXPOSED: *kind = SORA_SDL_EXPOSED; break;
    default: break;
    }
  }
  return 1;
}

static inline SDL_Window *sora_sdl_window(const char *title, int x, int y, int width, int height, int bordered) {
  Uint32 flags = SDL_WINDOW_RESIZABLE | (bordered ? 0 : SDL_WINDOW_BORDERLESS);
  return SDL_CreateWindow(title, x < 0 ? SDL_WINDOWPOS_UNDEFINED : x, y < 0 ? SDL_WINDOWPOS_UNDEFINED : y, width,
                          height, flags);
}
/* Hardware if there is some, else software. */
static inline SDL_Renderer *sora_sdl_renderer(SDL_Window *window) {
  SDL_Renderer *renderer = SDL_CreateRenderer(window, -1, 0);
  return renderer ? renderer : SDL_CreateRenderer(window, -1, SDL_RENDERER_SOFTWARE);
}
static inline SDL_Texture *sora_sdl_texture(SDL_Renderer *renderer, int width, int height) {
  return SDL_CreateTexture(renderer, SDL_PIXELFORMAT_IYUV, SDL_TEXTUREACCESS_STREAMING, width, height);
}
static inline int sora_sdl_draw(SDL_Renderer *renderer, SDL_Texture *texture, float x, float y, float width,
                                float height, double degrees, int mirrored) {
  SDL_FRect target = {x, y, width, height};
  return SDL_RenderCopyExF(renderer, texture, NULL, &target, degrees, NULL,
                           mirrored ? SDL_FLIP_HORIZONTAL : SDL_FLIP_NONE);
}
#endif
