/* A clock for OpenSSL's DTLS timers that tests can set.

   OpenSSL reads `gettimeofday`. Linked into a test program, this target takes that function's place:
   on a thread where a test has set a time, exactly that time is returned; elsewhere the real one. */
#ifndef CDTLSTESTCLOCK_H
#define CDTLSTESTCLOCK_H

#include <stdint.h>

/* Sets this thread's time, in nanoseconds since an origin that is the same on all threads. */
void dtls_test_clock_set(int64_t nanoseconds);

/* Gives this thread the real time back. */
void dtls_test_clock_reset(void);

/* Bytes that the process has allocated from the heap and not freed, for leak tests. */
uint64_t dtls_test_heap_bytes_in_use(void);

#endif
