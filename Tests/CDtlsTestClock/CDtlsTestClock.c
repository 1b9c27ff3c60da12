#include "CDtlsTestClock.h"

#include <malloc.h>
#include <sys/time.h>
#include <time.h>

/* Where the set times start: OpenSSL takes zero for "no timer". */
#define ORIGIN_SECONDS 1700000000

static _Thread_local int is_set;
static _Thread_local int64_t set_nanoseconds;

void dtls_test_clock_set(int64_t nanoseconds) {
    is_set = 1;
    set_nanoseconds = nanoseconds;
}

void dtls_test_clock_reset(void) { is_set = 0; }

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    if (is_set) {
        int64_t microseconds = set_nanoseconds / 1000;
        now->tv_sec = ORIGIN_SECONDS + microseconds / 1000000;
        now->tv_usec = microseconds % 1000000;
        return 0;
    }
    struct timespec real;
    if (clock_gettime(CLOCK_REALTIME, &real) != 0) return -1;
    now->tv_sec = real.tv_sec;
    now->tv_usec = real.tv_nsec / 1000;
    return 0;
}

uint64_t dtls_test_heap_bytes_in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}
