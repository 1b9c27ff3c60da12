/* Which objects of chosen Swift modules are alive.

   Linked into a test program, this target takes the place of the Swift runtime's functions that make and free
   objects, and passes each call on. Between `live_objects_start` and `live_objects_stop` it remembers each object of
   a class or actor whose module is chosen, from the moment it is made until its memory is given back. */
#ifndef CLIVEOBJECTS_H
#define CLIVEOBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Forgets everything and starts to remember. Classes count whose qualified name begins with one of `prefixes`, such
   as "SoraPeer."; all calls must choose the same. */
void live_objects_start(const char *const *prefixes, size_t count);

/* Stops to remember; what is known stays for `live_objects_each`. */
void live_objects_stop(void);

/* How many objects were made since the start: zero means that the functions are not in place. */
uint64_t live_objects_made(void);

/* How many of them are alive. */
size_t live_objects_alive(void);

/* Waits until at most `limit` are alive, without asking again and again; false when the time is over. */
bool live_objects_wait(size_t limit, double seconds);

/* Calls `each` for every class with living objects: its name and their number. */
void live_objects_each(void (*each)(const char *name, size_t length, size_t count, void *context), void *context);

#endif
