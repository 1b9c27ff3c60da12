// Linux system calls that Swift's Glibc module does not import, behind plain structs of our own.
//
// Nothing of glibc is visible here (no _GNU_SOURCE, no system structs), so this header can be imported
// beside Glibc and Foundation in every build form. All functions return a non-negative result, or minus
// errno. None keeps a pointer after it returned.
#ifndef SORA_CLINUX_H
#define SORA_CLINUX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- Addresses ----

/// An address and a port. `family` is 4, 6, or 0 for none; IPv4 is in `v4` (host order), IPv6 in `high`
/// and `low` (most significant first).
struct clinux_address {
    uint32_t family;
    uint32_t v4;
    uint64_t high;
    uint64_t low;
    uint32_t scope;
    uint16_t port;
};

// ---- Threads and time ----

int32_t clinux_gettid(void);
/// Names the calling thread (at most 15 bytes are kept).
void clinux_set_thread_name(const char *name);
/// Nanoseconds of CLOCK_MONOTONIC.
int64_t clinux_monotonic_ns(void);
/// One pointer of the calling thread: which event loop it is running, if any.
void clinux_set_current_loop(const void *loop);
const void *clinux_current_loop(void);
/// The calling thread's CPU set becomes this one CPU.
int32_t clinux_pin_to_cpu(int32_t cpu);
int32_t clinux_cpu_count(void);
/// How many file descriptors this process may open: raises the soft limit to the hard one first.
int64_t clinux_raise_descriptor_limit(void);

// ---- epoll and eventfd ----

enum {
    CLINUX_READABLE = 1,
    CLINUX_WRITABLE = 2,
    CLINUX_HANGUP = 4,
    CLINUX_ERROR = 8,
    CLINUX_READ_HANGUP = 16,
};
struct clinux_event {
    uint64_t data;
    uint32_t events;
};

int32_t clinux_epoll_create(void);
int32_t clinux_epoll_add(int32_t epoll, int32_t fd, uint32_t events, uint64_t data);
int32_t clinux_epoll_modify(int32_t epoll, int32_t fd, uint32_t events, uint64_t data);
int32_t clinux_epoll_remove(int32_t epoll, int32_t fd);
/// Waits at most `timeout_ns` (negative: without end). At most 256 events. An interrupting signal yields 0.
int32_t clinux_epoll_wait(int32_t epoll, struct clinux_event *events, int32_t capacity, int64_t timeout_ns);
int32_t clinux_eventfd(void);
int32_t clinux_eventfd_signal(int32_t fd);
int32_t clinux_eventfd_drain(int32_t fd);
int32_t clinux_close(int32_t fd);

// ---- UDP ----

/// A non-blocking socket bound to `address`. With `reuse_port`, several sockets may share the port.
int32_t clinux_udp_open(const struct clinux_address *address, int32_t reuse_port);
/// Sets SO_RCVBUF and SO_SNDBUF (0 leaves one alone), and answers what the kernel granted.
int32_t clinux_set_buffers(int32_t fd, int32_t receive, int32_t send, int32_t *granted_receive, int32_t *granted_send);
int32_t clinux_local_address(int32_t fd, struct clinux_address *address);
int32_t clinux_remote_address(int32_t fd, struct clinux_address *address);
/// Lets the kernel hand several equal-sized datagrams of one sender over in one buffer.
int32_t clinux_udp_enable_gro(int32_t fd);

struct clinux_received {
    struct clinux_address from;
    uint32_t length;
    /// Size of each datagram inside `length` bytes (the last may be shorter); 0: one datagram.
    uint32_t segment;
    /// The datagram did not fit the slot.
    uint32_t truncated;
};
/// Reads up to `capacity` (at most 64) buffers, the i-th at slab + i * slot. Returns how many, -EAGAIN for none.
int32_t clinux_udp_receive(
    int32_t fd, uint8_t *slab, size_t slot, struct clinux_received *received, int32_t capacity);

struct clinux_outgoing {
    struct clinux_address to;
    /// Index of its first piece and how many there are. Without `segment` the pieces are one datagram.
    uint32_t first_piece;
    uint32_t piece_count;
    /// Not 0: the bytes are cut into datagrams of this size (UDP_SEGMENT).
    uint32_t segment;
};
struct clinux_piece {
    uint32_t offset;
    uint32_t length;
};
/// Sends up to `count` (at most 64, with at most 1024 pieces in all) messages whose bytes lie in `slab`. Returns how many were sent.
int32_t clinux_udp_send(
    int32_t fd, const uint8_t *slab, const struct clinux_piece *pieces, const struct clinux_outgoing *messages,
    int32_t count);

// ---- TCP ----

int32_t clinux_tcp_open(int32_t family);
/// 0: connected; -EINPROGRESS: wait until writable, then ask clinux_socket_error.
int32_t clinux_connect(int32_t fd, const struct clinux_address *address);
/// Opens, binds and listens.
int32_t clinux_tcp_listen(const struct clinux_address *address, int32_t backlog, int32_t reuse_port);
int32_t clinux_accept(int32_t fd, struct clinux_address *from);
/// Takes and clears SO_ERROR: 0 or a positive errno.
int32_t clinux_socket_error(int32_t fd);
int32_t clinux_set_nodelay(int32_t fd);
int32_t clinux_set_keepalive(int32_t fd, int32_t idle_seconds, int32_t interval_seconds, int32_t probes);
int32_t clinux_set_user_timeout(int32_t fd, int32_t milliseconds);
int64_t clinux_send(int32_t fd, const uint8_t *bytes, size_t count);
int64_t clinux_receive(int32_t fd, uint8_t *bytes, size_t count);
int32_t clinux_shutdown_write(int32_t fd);
/// Makes the coming close send a reset.
int32_t clinux_set_abortive(int32_t fd);

// ---- Names and interfaces ----

/// getaddrinfo, both families. Returns how many addresses were written; on failure 0 with the EAI_ code in
/// `*failure`. Blocks.
int32_t clinux_resolve(const char *name, struct clinux_address *addresses, int32_t capacity, int32_t *failure);
/// Text of an EAI_ code; static storage.
const char *clinux_resolve_error(int32_t failure);

enum {
    CLINUX_INTERFACE_UP = 1,
    CLINUX_INTERFACE_RUNNING = 2,
    CLINUX_INTERFACE_LOOPBACK = 4,
    CLINUX_INTERFACE_POINT_TO_POINT = 8,
    CLINUX_INTERFACE_MULTICAST = 16,
};
struct clinux_interface {
    char name[16];
    uint32_t index;
    uint32_t flags;
    struct clinux_address address;
    uint32_t prefix_length;
};
/// The addresses of all interfaces. Returns how many there are; writes at most `capacity`.
int32_t clinux_interfaces(struct clinux_interface *interfaces, int32_t capacity);
/// A netlink socket that reports changes of links and addresses.
int32_t clinux_netlink_open(void);
/// Reads all waiting reports. Returns how many concerned a link or an address.
int32_t clinux_netlink_drain(int32_t fd);

#ifdef __cplusplus
}
#endif
#endif
