#define _GNU_SOURCE
#include "CLiveObjects.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The Swift runtime's functions, as compiled code calls them. Their calling convention is C's (or, for
   swift_allocObject, agrees with it in what it uses). */
typedef void *(*alloc_object)(const void *metadata, size_t size, size_t alignment_mask);
typedef void (*dealloc_instance)(void *object, size_t size, size_t alignment_mask);
typedef void (*dealloc_partial)(void *object, const void *metadata, size_t size, size_t alignment_mask);

typedef struct {
    const char *data;
    uintptr_t length;
} type_name;
extern type_name swift_getTypeName(const void *metadata, bool qualified);

/* ---- Classes: decided once, found without a lock ---- */

#define CLASS_SLOTS 65536 /* a power of two, far more than a program has classes */
typedef struct {
    _Atomic(const void *) metadata;
    atomic_int verdict; /* 0 not decided yet, 1 counted, 2 not counted */
    type_name name;
} class_slot;
static class_slot classes[CLASS_SLOTS];

#define MAXIMUM_PREFIXES 64
static const char *prefixes[MAXIMUM_PREFIXES];
static size_t prefix_count;

static size_t spread(const void *pointer) {
    uint64_t value = (uint64_t)(uintptr_t)pointer;
    value ^= value >> 33;
    value *= 0xff51afd7ed558ccdULL;
    value ^= value >> 33;
    return (size_t)value;
}

/* The slot of a class; null when the table is full or, if not `adds`, the class was never seen. */
static class_slot *slot_of(const void *metadata, bool adds) {
    size_t index = spread(metadata) & (CLASS_SLOTS - 1);
    for (int step = 0; step < CLASS_SLOTS; step++) {
        class_slot *slot = &classes[(index + step) & (CLASS_SLOTS - 1)];
        const void *known = atomic_load_explicit(&slot->metadata, memory_order_acquire);
        if (known == metadata) return slot;
        if (known != NULL) continue;
        if (!adds) return NULL;
        if (atomic_compare_exchange_strong(&slot->metadata, &known, metadata) || known == metadata) return slot;
    }
    return NULL;
}

/* Metadata kinds below this that are not zero belong to other things: boxes, closures, tasks. */
#define LAST_KIND 0x7ff

static bool counts(const void *metadata) {
    uintptr_t kind = *(const uintptr_t *)metadata;
    if (kind != 0 && kind <= LAST_KIND) return false;
    class_slot *slot = slot_of(metadata, true);
    if (slot == NULL) return false;
    int verdict = atomic_load_explicit(&slot->verdict, memory_order_acquire);
    if (verdict == 0) {
        /* Two threads may both decide: they decide the same. */
        type_name name = swift_getTypeName(metadata, true);
        verdict = 2;
        for (size_t index = 0; index < prefix_count; index++) {
            size_t length = strlen(prefixes[index]);
            if (name.length > length && memcmp(name.data, prefixes[index], length) == 0) verdict = 1;
        }
        atomic_store_explicit(&slot->verdict, verdict, memory_order_release);
    }
    return verdict == 1;
}

/* ---- Objects ---- */

#define SHARDS 64
typedef struct {
    pthread_mutex_t lock;
    void **objects; /* open addressing, linear, no tombstones */
    const void **metadata;
    size_t capacity, count;
} shard;
static shard shards[SHARDS] = {[0 ... SHARDS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static atomic_bool is_on;
static atomic_size_t alive;
static atomic_uint_fast64_t made;
static pthread_mutex_t waiting_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t fewer = PTHREAD_COND_INITIALIZER;
static atomic_size_t waited_for; /* limit + 1 of the one who waits, else zero */

static shard *shard_of(const void *object) { return &shards[spread(object) >> 7 & (SHARDS - 1)]; }

static void place(shard *shard, void *object, const void *metadata) {
    size_t index = spread(object) & (shard->capacity - 1);
    while (shard->objects[index] != NULL) index = (index + 1) & (shard->capacity - 1);
    shard->objects[index] = object;
    shard->metadata[index] = metadata;
}

static void remember(void *object, const void *metadata) {
    shard *shard = shard_of(object);
    pthread_mutex_lock(&shard->lock);
    if (shard->count * 2 >= shard->capacity) {
        void **objects = shard->objects;
        const void **metadatas = shard->metadata;
        size_t capacity = shard->capacity;
        shard->capacity = capacity == 0 ? 64 : capacity * 2;
        shard->objects = calloc(shard->capacity, sizeof *shard->objects);
        shard->metadata = calloc(shard->capacity, sizeof *shard->metadata);
        if (shard->objects == NULL || shard->metadata == NULL) abort();
        for (size_t index = 0; index < capacity; index++)
            if (objects[index] != NULL) place(shard, objects[index], metadatas[index]);
        free(objects);
        free(metadatas);
    }
    place(shard, object, metadata);
    shard->count++;
    pthread_mutex_unlock(&shard->lock);
    atomic_fetch_add(&alive, 1);
    atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
}

static void forget(void *object) {
    shard *shard = shard_of(object);
    bool found = false;
    pthread_mutex_lock(&shard->lock);
    if (shard->count > 0) {
        size_t mask = shard->capacity - 1, index = spread(object) & mask;
        while (shard->objects[index] != NULL && shard->objects[index] != object) index = (index + 1) & mask;
        if (shard->objects[index] == object) {
            found = true;
            shard->count--;
            /* Close the gap: move back what would not be found any more. */
            size_t gap = index;
            for (size_t next = (gap + 1) & mask; shard->objects[next] != NULL; next = (next + 1) & mask) {
                size_t home = spread(shard->objects[next]) & mask;
                if (((next - home) & mask) >= ((next - gap) & mask)) {
                    shard->objects[gap] = shard->objects[next];
                    shard->metadata[gap] = shard->metadata[next];
                    gap = next;
                }
            }
            shard->objects[gap] = NULL;
        }
    }
    pthread_mutex_unlock(&shard->lock);
    if (!found) return;
    size_t left = atomic_fetch_sub(&alive, 1) - 1;
    if (left < atomic_load(&waited_for)) {
        pthread_mutex_lock(&waiting_lock);
        pthread_cond_broadcast(&fewer);
        pthread_mutex_unlock(&waiting_lock);
    }
}

void live_objects_start(const char *const *chosen, size_t count) {
    live_objects_stop();
    if (prefix_count == 0)
        for (size_t index = 0; index < count && index < MAXIMUM_PREFIXES; index++)
            prefixes[prefix_count++] = strdup(chosen[index]);
    for (int index = 0; index < SHARDS; index++) {
        shard *shard = &shards[index];
        pthread_mutex_lock(&shard->lock);
        free(shard->objects);
        free(shard->metadata);
        shard->objects = NULL;
        shard->metadata = NULL;
        atomic_fetch_sub(&alive, shard->count);
        shard->capacity = shard->count = 0;
        pthread_mutex_unlock(&shard->lock);
    }
    atomic_store(&made, 0);
    atomic_store(&is_on, true);
}

void live_objects_stop(void) { atomic_store(&is_on, false); }

uint64_t live_objects_made(void) { return atomic_load(&made); }

size_t live_objects_alive(void) { return atomic_load(&alive); }

bool live_objects_wait(size_t limit, double seconds) {
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += (time_t)seconds;
    deadline.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_nsec -= 1000000000;
        deadline.tv_sec++;
    }
    int status = 0;
    pthread_mutex_lock(&waiting_lock);
    atomic_store(&waited_for, limit + 1);
    while (atomic_load(&alive) > limit && status != ETIMEDOUT)
        status = pthread_cond_clockwait(&fewer, &waiting_lock, CLOCK_MONOTONIC, &deadline);
    atomic_store(&waited_for, 0);
    pthread_mutex_unlock(&waiting_lock);
    return atomic_load(&alive) <= limit;
}

void live_objects_each(void (*each)(const char *, size_t, size_t, void *), void *context) {
    for (int class = 0; class < CLASS_SLOTS; class++) {
        const void *metadata = atomic_load(&classes[class].metadata);
        if (metadata == NULL || atomic_load(&classes[class].verdict) != 1) continue;
        size_t count = 0;
        for (int index = 0; index < SHARDS; index++) {
            shard *shard = &shards[index];
            pthread_mutex_lock(&shard->lock);
            for (size_t slot = 0; slot < shard->capacity; slot++)
                if (shard->objects[slot] != NULL && shard->metadata[slot] == metadata) count++;
            pthread_mutex_unlock(&shard->lock);
        }
        if (count == 0) continue;
        type_name name = swift_getTypeName(metadata, true);
        each(name.data, name.length, count, context);
    }
}

/* ---- In the place of the runtime's functions ---- */

/* The definition after ours in the order of symbols: the runtime's. */
#define NEXT(type, name)                                                                   \
    static _Atomic(type) known;                                                            \
    type next = atomic_load_explicit(&known, memory_order_relaxed);                        \
    if (next == NULL) {                                                                    \
        next = (type)dlsym(RTLD_NEXT, #name);                                              \
        atomic_store_explicit(&known, next, memory_order_relaxed);                         \
    }

void *swift_allocObject(const void *metadata, size_t size, size_t alignment_mask) {
    NEXT(alloc_object, swift_allocObject)
    void *object = next(metadata, size, alignment_mask);
    if (atomic_load_explicit(&is_on, memory_order_relaxed) && counts(metadata)) remember(object, metadata);
    return object;
}

/* An object that is being freed may have been made before the start; also after the stop those that are known are
   forgotten when they go. */
static void frees(void *object, const void *metadata) {
    if (atomic_load_explicit(&alive, memory_order_relaxed) == 0) return;
    class_slot *slot = slot_of(metadata, false);
    if (slot != NULL && atomic_load_explicit(&slot->verdict, memory_order_acquire) == 1) forget(object);
}

void swift_deallocClassInstance(void *object, size_t size, size_t alignment_mask) {
    NEXT(dealloc_instance, swift_deallocClassInstance)
    frees(object, *(const void **)object);
    next(object, size, alignment_mask);
}

/* An initializer failed before everything was set. */
void swift_deallocPartialClassInstance(void *object, const void *metadata, size_t size, size_t alignment_mask) {
    NEXT(dealloc_partial, swift_deallocPartialClassInstance)
    frees(object, *(const void **)object);
    next(object, metadata, size, alignment_mask);
}
