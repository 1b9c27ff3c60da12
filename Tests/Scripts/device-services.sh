#!/usr/bin/env bash
# Device services for tests: a D-Bus, PipeWire with WirePlumber and its PulseAudio interface, null sinks, and an X server
# without a screen. Everything ends when standard input does, that is with the process that holds its other end.
# usage: device-services.sh DIRECTORY      Prints NAME=VALUE for the environment, then "ready".
set -u
dir=$1
mkdir -p "$dir/run"
chmod 700 "$dir/run"
export XDG_RUNTIME_DIR="$dir/run" XDG_CONFIG_HOME="$dir/config" XDG_STATE_HOME="$dir/state"
children=()
start() { "$@" </dev/null >"$dir/$(basename "$1").log" 2>&1 & children+=($!); }
# SIGKILL: the threads of a test process block signals, and children inherit that.
stop() { kill -KILL "${children[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$dir"; }
trap stop EXIT
waitfor() { for _ in $(seq 100); do [ -e "$1" ] && return 0; sleep 0.1; done; echo "missing $1" >&2; return 1; }

start dbus-daemon --session --nofork --nopidfile --address="unix:path=$dir/run/bus"
waitfor "$dir/run/bus" || exit 1
export DBUS_SESSION_BUS_ADDRESS="unix:path=$dir/run/bus"
start pipewire
waitfor "$dir/run/pipewire-0" || exit 1
start wireplumber
start pipewire-pulse
waitfor "$dir/run/pulse/native" || exit 1
export PULSE_SERVER="unix:$dir/run/pulse/native"
# The session manager links streams only once its scripts are loaded.
for _ in $(seq 100); do wpctl status 2>/dev/null | grep -q WirePlumber && break; sleep 0.1; done
for _ in $(seq 100); do pactl info >/dev/null 2>&1 && break; sleep 0.1; done
pactl >/dev/null load-module module-null-sink sink_name=spk1 sink_properties=device.description=Speaker1
pactl >/dev/null load-module module-null-sink sink_name=micfeed
pactl >/dev/null load-module module-remap-source master=micfeed.monitor source_name=mic1 source_properties=device.description=Mic1
for _ in $(seq 100); do
    pactl list short sources | grep -q mic1 && pactl list short sinks | grep -q spk1 && break
    sleep 0.1
done
pactl set-default-sink spk1
pactl set-default-source mic1
start Xvfb -displayfd 3 -screen 0 640x480x24 -nolisten tcp 3>"$dir/display"
for _ in $(seq 100); do [ -s "$dir/display" ] && break; sleep 0.1; done

echo "XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR"
echo "PULSE_SERVER=$PULSE_SERVER"
echo "DBUS_SESSION_BUS_ADDRESS=$DBUS_SESSION_BUS_ADDRESS"
echo "DISPLAY=:$(cat "$dir/display")"
echo ready
exec >/dev/null
cat >/dev/null
