#!/usr/bin/env bash
# The main job on real media: a local server, a publisher and a watcher in processes of their own.
# usage: scripts/demo.sh [--input FILE] [--seconds N]
set -euo pipefail
cd "$(dirname "$0")/.."
input="" seconds=12
while (($#)); do
    case $1 in
    --input) input=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    *) echo "demo: unknown word '$1'" >&2; exit 64 ;;
    esac
done
if [[ -z $input ]]; then
    input=$(dpkg -L forensics-samples-files 2>/dev/null | grep -m1 '/movie-hello\.mp4$' || true)
fi
[[ -n $input && -r $input ]] || { echo "demo: cannot read '${input:-movie-hello.mp4}'; name a media file with --input" >&2; exit 66; }

echo "demo: building (release)…" >&2
swift build -c release --product sora 2>&1 | grep -E 'error|Compiling|Build of' | tail -3 >&2
sora=$(swift build -c release --show-bin-path)/sora
exec "$sora" demo --input "$input" --seconds "$seconds" --output demo
