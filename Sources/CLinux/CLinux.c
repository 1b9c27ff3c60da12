#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SOL_UDP
#define SOL_UDP 17
#endif

enum { BATCH = 64, PIECES = 1024, EVENTS = 256 };

static int32_t result(int value) { return value < 0 ? -errno : value; }

// ---- Addresses ----

static socklen_t to_system(const struct clinux_address *address, struct sockaddr_storage *storage) {
    memset(storage, 0, sizeof *storage);
    if (address->family == 4) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)storage;
        v4->sin_family = AF_INET;
        v4->sin_port = htons(address->port);
        v4->sin_addr.s_addr = htonl(address->v4);
        return sizeof *v4;
    }
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)storage;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(address->port);
    v6->sin6_scope_id = address->scope;
    for (int i = 0; i < 8; i++) {
        v6->sin6_addr.s6_addr[i] = (uint8_t)(address->high >> (56 - 8 * i));
        v6->sin6_addr.s6_addr[8 + i] = (uint8_t)(address->low >> (56 - 8 * i));
    }
    return sizeof *v6;
}

static void from_system(const struct sockaddr *system, struct clinux_address *address) {
    memset(address, 0, sizeof *address);
    if (!system) return;
    if (system->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)system;
        address->family = 4;
        address->v4 = ntohl(v4->sin_addr.s_addr);
        address->port = ntohs(v4->sin_port);
    } else if (system->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)system;
        address->family = 6;
        address->port = ntohs(v6->sin6_port);
        address->scope = v6->sin6_scope_id;
        for (int i = 0; i < 8; i++) {
            address->high = address->high << 8 | v6->sin6_addr.s6_addr[i];
            address->low = address->low << 8 | v6->sin6_addr.s6_addr[8 + i];
        }
    }
}

static int system_family(uint32_t family) { return family == 6 ? AF_INET6 : AF_INET; }

// ---- Threads and time ----

int32_t clinux_gettid(void) { return (int32_t)syscall(SYS_gettid); }

void clinux_set_thread_name(const char *name) {
    char kept[16];
    strncpy(kept, name, sizeof kept - 1);
    kept[sizeof kept - 1] = 0;
    pthread_setname_np(pthread_self(), kept);
}

int64_t clinux_monotonic_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static _Thread_local const void *current_loop;
void clinux_set_current_loop(const void *loop) { current_loop = loop; }
const void *clinux_current_loop(void) { return current_loop; }

int32_t clinux_pin_to_cpu(int32_t cpu) {
    if (cpu < 0 || cpu >= CPU_SETSIZE) return -EINVAL;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return result(sched_setaffinity(0, sizeof set, &set));
}

int32_t clinux_cpu_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) < 0) return 1;
    return CPU_COUNT(&set);
}

int64_t clinux_raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return -errno;
    if (limit.rlim_cur < limit.rlim_max) {
        rlim_t before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0) return (int64_t)before;
    }
    return (int64_t)limit.rlim_cur;
}

// ---- epoll and eventfd ----

static uint32_t to_epoll(uint32_t events) {
    return (events & CLINUX_READABLE ? (uint32_t)EPOLLIN : 0) | (events & CLINUX_WRITABLE ? (uint32_t)EPOLLOUT : 0)
        | (events & CLINUX_READ_HANGUP ? (uint32_t)EPOLLRDHUP : 0);
}

int32_t clinux_epoll_create(void) { return result(epoll_create1(EPOLL_CLOEXEC)); }

static int32_t control(int32_t epoll, int operation, int32_t fd, uint32_t events, uint64_t data) {
    struct epoll_event event = {.events = to_epoll(events), .data.u64 = data};
    return result(epoll_ctl(epoll, operation, fd, &event));
}
int32_t clinux_epoll_add(int32_t epoll, int32_t fd, uint32_t events, uint64_t data) {
    return control(epoll, EPOLL_CTL_ADD, fd, events, data);
}
int32_t clinux_epoll_modify(int32_t epoll, int32_t fd, uint32_t events, uint64_t data) {
    return control(epoll, EPOLL_CTL_MOD, fd, events, data);
}
int32_t clinux_epoll_remove(int32_t epoll, int32_t fd) { return control(epoll, EPOLL_CTL_DEL, fd, 0, 0); }

int32_t clinux_epoll_wait(int32_t epoll, struct clinux_event *events, int32_t capacity, int64_t timeout_ns) {
    static _Thread_local int without_pwait2;
    struct epoll_event system[EVENTS];
    if (capacity > EVENTS) capacity = EVENTS;
    int count = -1;
    if (timeout_ns == 0 || timeout_ns < 0 || without_pwait2) {
        int milliseconds = timeout_ns < 0 ? -1
            : timeout_ns > 2000000000LL * 1000000 ? 2000000000
            : (int)((timeout_ns + 999999) / 1000000);
        count = epoll_wait(epoll, system, capacity, milliseconds);
    } else {
        struct timespec timeout = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
        count = epoll_pwait2(epoll, system, capacity, &timeout, NULL);
        if (count < 0 && errno == ENOSYS) {
            without_pwait2 = 1;
            return clinux_epoll_wait(epoll, events, capacity, timeout_ns);
        }
    }
    if (count < 0) return errno == EINTR ? 0 : -errno;
    for (int i = 0; i < count; i++) {
        uint32_t bits = system[i].events;
        events[i].data = system[i].data.u64;
        events[i].events = (bits & EPOLLIN ? CLINUX_READABLE : 0) | (bits & EPOLLOUT ? CLINUX_WRITABLE : 0)
            | (bits & EPOLLHUP ? CLINUX_HANGUP : 0) | (bits & EPOLLERR ? CLINUX_ERROR : 0)
            | (bits & EPOLLRDHUP ? CLINUX_READ_HANGUP : 0);
    }
    return count;
}

int32_t clinux_eventfd(void) { return result(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

int32_t clinux_eventfd_signal(int32_t fd) {
    uint64_t one = 1;
    return write(fd, &one, sizeof one) < 0 ? -errno : 0;
}

int32_t clinux_eventfd_drain(int32_t fd) {
    uint64_t value;
    return read(fd, &value, sizeof value) < 0 ? -errno : 0;
}

int32_t clinux_close(int32_t fd) { return result(close(fd)); }

// ---- UDP ----

static int32_t close_with_error(int fd) {
    int error = errno;
    close(fd);
    return -error;
}

int32_t clinux_udp_open(const struct clinux_address *address, int32_t reuse_port) {
    int fd = socket(system_family(address->family), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    int on = 1;
    if (address->family == 6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (reuse_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) < 0) return close_with_error(fd);
    struct sockaddr_storage storage;
    socklen_t length = to_system(address, &storage);
    if (bind(fd, (struct sockaddr *)&storage, length) < 0) return close_with_error(fd);
    return fd;
}

int32_t clinux_set_buffers(int32_t fd, int32_t receive, int32_t send, int32_t *granted_receive, int32_t *granted_send) {
    if (receive > 0) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive, sizeof receive);
    if (send > 0) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send, sizeof send);
    socklen_t size = sizeof(int);
    if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, granted_receive, &size) < 0) return -errno;
    size = sizeof(int);
    return result(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, granted_send, &size));
}

int32_t clinux_local_address(int32_t fd, struct clinux_address *address) {
    struct sockaddr_storage storage;
    socklen_t length = sizeof storage;
    if (getsockname(fd, (struct sockaddr *)&storage, &length) < 0) return -errno;
    from_system((struct sockaddr *)&storage, address);
    return 0;
}

int32_t clinux_remote_address(int32_t fd, struct clinux_address *address) {
    struct sockaddr_storage storage;
    socklen_t length = sizeof storage;
    if (getpeername(fd, (struct sockaddr *)&storage, &length) < 0) return -errno;
    from_system((struct sockaddr *)&storage, address);
    return 0;
}

int32_t clinux_udp_enable_gro(int32_t fd) {
    int on = 1;
    return result(setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof on));
}

int32_t clinux_udp_receive(
    int32_t fd, uint8_t *slab, size_t slot, struct clinux_received *received, int32_t capacity) {
    struct mmsghdr messages[BATCH];
    struct iovec pieces[BATCH];
    struct sockaddr_storage from[BATCH];
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } controls[BATCH];
    if (capacity > BATCH) capacity = BATCH;
    for (int i = 0; i < capacity; i++) {
        pieces[i] = (struct iovec){.iov_base = slab + (size_t)i * slot, .iov_len = slot};
        memset(&messages[i], 0, sizeof messages[i]);
        messages[i].msg_hdr.msg_iov = &pieces[i];
        messages[i].msg_hdr.msg_iovlen = 1;
        messages[i].msg_hdr.msg_name = &from[i];
        messages[i].msg_hdr.msg_namelen = sizeof from[i];
        messages[i].msg_hdr.msg_control = &controls[i];
        messages[i].msg_hdr.msg_controllen = sizeof controls[i];
    }
    int count = recvmmsg(fd, messages, (unsigned)capacity, MSG_DONTWAIT, NULL);
    if (count < 0) return -errno;
    for (int i = 0; i < count; i++) {
        struct msghdr *header = &messages[i].msg_hdr;
        from_system(header->msg_namelen ? header->msg_name : NULL, &received[i].from);
        received[i].length = messages[i].msg_len;
        received[i].truncated = (header->msg_flags & MSG_TRUNC) != 0;
        received[i].segment = 0;
        for (struct cmsghdr *control = CMSG_FIRSTHDR(header); control; control = CMSG_NXTHDR(header, control)) {
            if (control->cmsg_level == SOL_UDP && control->cmsg_type == UDP_GRO) {
                int size;
                memcpy(&size, CMSG_DATA(control), sizeof size);
                received[i].segment = size > 0 ? (uint32_t)size : 0;
            }
        }
    }
    return count;
}

int32_t clinux_udp_send(
    int32_t fd, const uint8_t *slab, const struct clinux_piece *pieces, const struct clinux_outgoing *messages,
    int32_t count) {
    struct mmsghdr system[BATCH];
    struct iovec vectors[PIECES];
    struct sockaddr_storage to[BATCH];
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
    } controls[BATCH];
    size_t used = 0;
    if (count > BATCH) count = BATCH;
    for (int i = 0; i < count; i++) {
        const struct clinux_outgoing *message = &messages[i];
        if (used + message->piece_count > PIECES) {
            count = i;
            break;
        }
        struct msghdr *header = &system[i].msg_hdr;
        memset(&system[i], 0, sizeof system[i]);
        header->msg_iov = &vectors[used];
        header->msg_iovlen = message->piece_count;
        for (uint32_t k = 0; k < message->piece_count; k++) {
            const struct clinux_piece *piece = &pieces[message->first_piece + k];
            vectors[used++] = (struct iovec){.iov_base = (void *)(slab + piece->offset), .iov_len = piece->length};
        }
        header->msg_namelen = to_system(&message->to, &to[i]);
        header->msg_name = &to[i];
        if (message->segment) {
            memset(&controls[i], 0, sizeof controls[i]);
            header->msg_control = &controls[i];
            header->msg_controllen = sizeof controls[i];
            struct cmsghdr *control = CMSG_FIRSTHDR(header);
            control->cmsg_level = SOL_UDP;
            control->cmsg_type = UDP_SEGMENT;
            control->cmsg_len = CMSG_LEN(sizeof(uint16_t));
            uint16_t size = (uint16_t)message->segment;
            memcpy(CMSG_DATA(control), &size, sizeof size);
        }
    }
    if (count == 0) return -EINVAL;
    return result(sendmmsg(fd, system, (unsigned)count, MSG_DONTWAIT | MSG_NOSIGNAL));
}

// ---- TCP ----

int32_t clinux_tcp_open(int32_t family) {
    return result(socket(system_family((uint32_t)family), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int32_t clinux_connect(int32_t fd, const struct clinux_address *address) {
    struct sockaddr_storage storage;
    socklen_t length = to_system(address, &storage);
    return result(connect(fd, (struct sockaddr *)&storage, length));
}

int32_t clinux_tcp_listen(const struct clinux_address *address, int32_t backlog, int32_t reuse_port) {
    int fd = clinux_tcp_open((int32_t)address->family);
    if (fd < 0) return fd;
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->family == 6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (reuse_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) < 0) return close_with_error(fd);
    struct sockaddr_storage storage;
    socklen_t length = to_system(address, &storage);
    if (bind(fd, (struct sockaddr *)&storage, length) < 0) return close_with_error(fd);
    if (listen(fd, backlog) < 0) return close_with_error(fd);
    return fd;
}

int32_t clinux_accept(int32_t fd, struct clinux_address *from) {
    struct sockaddr_storage storage;
    socklen_t length = sizeof storage;
    int accepted = accept4(fd, (struct sockaddr *)&storage, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted < 0) return -errno;
    from_system((struct sockaddr *)&storage, from);
    return accepted;
}

int32_t clinux_socket_error(int32_t fd) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) return errno;
    return error;
}

int32_t clinux_set_nodelay(int32_t fd) {
    int on = 1;
    return result(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
}

int32_t clinux_set_keepalive(int32_t fd, int32_t idle_seconds, int32_t interval_seconds, int32_t probes) {
    int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) < 0
        || setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds) < 0
        || setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof interval_seconds) < 0)
        return -errno;
    return result(setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes));
}

int32_t clinux_set_user_timeout(int32_t fd, int32_t milliseconds) {
    unsigned value = (unsigned)milliseconds;
    return result(setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, sizeof value));
}

int64_t clinux_send(int32_t fd, const uint8_t *bytes, size_t count) {
    ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? -errno : sent;
}

int64_t clinux_receive(int32_t fd, uint8_t *bytes, size_t count) {
    ssize_t received = recv(fd, bytes, count, MSG_DONTWAIT);
    return received < 0 ? -errno : received;
}

int32_t clinux_shutdown_write(int32_t fd) { return result(shutdown(fd, SHUT_WR)); }

int32_t clinux_set_abortive(int32_t fd) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    return result(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
}

// ---- Names and interfaces ----

int32_t clinux_resolve(const char *name, struct clinux_address *addresses, int32_t capacity, int32_t *failure) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *list = NULL;
    int code = getaddrinfo(name, NULL, &hints, &list);
    if (code == EAI_NONAME || code == EAI_ADDRFAMILY || code == EAI_NODATA) {
        // AI_ADDRCONFIG leaves nothing for "localhost" on a machine with loopback alone.
        hints.ai_flags = 0;
        code = getaddrinfo(name, NULL, &hints, &list);
    }
    *failure = code;
    if (code != 0) return 0;
    int32_t count = 0;
    for (struct addrinfo *entry = list; entry && count < capacity; entry = entry->ai_next) {
        if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
        from_system(entry->ai_addr, &addresses[count++]);
    }
    freeaddrinfo(list);
    return count;
}

const char *clinux_resolve_error(int32_t failure) { return gai_strerror(failure); }

static uint32_t prefix_length(const struct sockaddr *mask) {
    struct clinux_address bits;
    from_system(mask, &bits);
    if (bits.family == 4) return (uint32_t)__builtin_popcount(bits.v4);
    if (bits.family == 6) return (uint32_t)(__builtin_popcountll(bits.high) + __builtin_popcountll(bits.low));
    return 0;
}

int32_t clinux_interfaces(struct clinux_interface *interfaces, int32_t capacity) {
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) < 0) return -errno;
    int32_t count = 0;
    for (struct ifaddrs *entry = list; entry; entry = entry->ifa_next) {
        if (!entry->ifa_addr) continue;
        int family = entry->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6) continue;
        if (count < capacity) {
            struct clinux_interface *out = &interfaces[count];
            memset(out, 0, sizeof *out);
            strncpy(out->name, entry->ifa_name, sizeof out->name - 1);
            out->index = if_nametoindex(entry->ifa_name);
            out->flags = (entry->ifa_flags & IFF_UP ? CLINUX_INTERFACE_UP : 0)
                | (entry->ifa_flags & IFF_RUNNING ? CLINUX_INTERFACE_RUNNING : 0)
                | (entry->ifa_flags & IFF_LOOPBACK ? CLINUX_INTERFACE_LOOPBACK : 0)
                | (entry->ifa_flags & IFF_POINTOPOINT ? CLINUX_INTERFACE_POINT_TO_POINT : 0)
                | (entry->ifa_flags & IFF_MULTICAST ? CLINUX_INTERFACE_MULTICAST : 0);
            from_system(entry->ifa_addr, &out->address);
            out->prefix_length = prefix_length(entry->ifa_netmask);
        }
        count++;
    }
    freeifaddrs(list);
    return count;
}

int32_t clinux_netlink_open(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0) return -errno;
    struct sockaddr_nl address = {
        .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) return close_with_error(fd);
    return fd;
}

int32_t clinux_netlink_drain(int32_t fd) {
    union {
        struct nlmsghdr header;
        char bytes[16384];
    } buffer;
    int32_t relevant = 0;
    for (int round = 0; round < 64; round++) {
        ssize_t length = recv(fd, &buffer, sizeof buffer, MSG_DONTWAIT);
        if (length < 0) {
            if (errno == ENOBUFS) {  // reports were lost: something changed
                relevant++;
                continue;
            }
            if (errno == EINTR) continue;
            return errno == EAGAIN || errno == EWOULDBLOCK ? relevant : -errno;
        }
        int left = (int)length;
        for (struct nlmsghdr *message = &buffer.header; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
            switch (message->nlmsg_type) {
                case RTM_NEWLINK: case RTM_DELLINK: case RTM_NEWADDR: case RTM_DELADDR: relevant++;
            }
        }
    }
    return relevant;
}
