#!/usr/bin/env bash
# Installs what is missing on Debian 12. usage: scripts/setup.sh build|demo|test|bench
#   build  the C libraries that the package links
#   demo   build, and the media plugins and the clip that `make demo` plays
#   test   demo, and the peers that the tests drive (Chromium, coturn, a Python environment)
#   bench  test, and what `make bench` compares with (Janus)
# Says what it will do before it does it. Works as root, else through sudo.
set -euo pipefail
cd "$(dirname "$0")/.."
level=${1:-build}

build=(pkg-config libssl-dev zlib1g-dev libsrtp2-dev libvpx-dev libaom-dev libdav1d-dev libopenh264-dev
    libopus-dev libyuv-dev libsdl2-dev libpulse-dev
    libgstreamer1.0-dev libgstreamer-plugins-base1.0-dev)
demo=(gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-libav
    forensics-samples-files)
# What the device tests start for themselves: PipeWire, its PulseAudio interface, an X server without a screen.
devices=(dbus-daemon pipewire pipewire-bin pipewire-pulse wireplumber gstreamer1.0-pipewire pulseaudio-utils xvfb)
test=("${devices[@]}" iproute2 chromium coturn tinyproxy ffmpeg python3 python3-venv procps openssl)
bench=(janus)

packages=("${build[@]}")
[[ $level != build ]] && packages+=("${demo[@]}")
[[ $level == test || $level == bench ]] && packages+=("${test[@]}")
[[ $level == bench ]] && packages+=("${bench[@]}")

missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if ((${#missing[@]})); then
    echo "setup: apt-get install ${missing[*]}" >&2
    as_root=()
    if [[ $(id -u) != 0 ]]; then
        command -v sudo >/dev/null || { echo "setup: not root and no sudo; install these packages first" >&2; exit 1; }
        as_root=(sudo)
    fi
    log=$(mktemp)
    "${as_root[@]}" apt-get update -qq >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${missing[@]}" >"$log" 2>&1 || { tail -30 "$log" >&2; exit 1; }
    rm -f "$log"
fi

if [[ $level == test || $level == bench ]]; then
    # The Python peers live in an environment of their own, outside the build folder so that `swift package clean` keeps it.
    if ! .venv/bin/python -c 'import sora_sdk, websockets, numpy, playwright, aiortc' 2>/dev/null; then
        echo "setup: creating .venv with the Python test peers" >&2
        python3 -m venv .venv
        .venv/bin/pip install -q --disable-pip-version-check -r Tests/Interop/requirements.txt
    fi
fi
