#!/usr/bin/env bash
# Runs a command in a network namespace of its own with loopback and one veth interface (10.99.0.1):
# libwebrtc gathers no candidates on a machine that has only loopback, and no packet can leave the
# machine this way. The namespace goes away with the command.   usage: scripts/in-netns.sh COMMAND…
set -euo pipefail
as_root=()
[[ $(id -u) == 0 ]] || as_root=(sudo -E)
exec "${as_root[@]}" unshare -n bash -c '
    set -e
    ip link set lo up
    ip link add sora0 type veth peer name sora1
    ip addr add 10.99.0.1/24 dev sora0
    ip link set sora0 up
    ip link set sora1 up
    ip route add default via 10.99.0.2 dev sora0   # leads nowhere; Chromium enumerates only with a default route
    exec "$@"' in-netns "$@"
