/* In builds for a sanitizer no library is unloaded, so that its reports can name what a plug-in did. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
int dlclose(void *handle) {
    (void)handle;
    return 0;
}
#endif
#endif
