#!/usr/bin/env bash
# Measures this stack and others on the same machine in one run, and prints ratios.
# usage: scripts/bench.sh [seconds per throughput test, default 3] [seconds per test of a server under load, default 10]
# Each peer runs both ends on this machine: figures are sender and receiver together.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-3}
load_seconds=${2:-10}
python=${SORA_TEST_PYTHON:-$PWD/.venv/bin/python}
echo "bench: building (release)…" >&2
for product in sora SoraBenchmarks; do
    swift build -c release --product "$product" 2>&1 | grep -E 'error:|Build of' | tail -3 >&2
done
ours=$(swift build -c release --show-bin-path)/SoraBenchmarks
results=$(mktemp)
trap 'rm -f "$results"' EXIT

"$ours" layers first-picture | tee -a "$results"
# Our server and Janus, in processes of their own. Janus is skipped with a line when it is not installed.
scripts/in-netns.sh "$ours" "$load_seconds" forward all-to-all idle | tee -a "$results"
# Twice around the peers: a noisy minute then shows in both.
for round in 1 2; do
    scripts/in-netns.sh "$ours" "$seconds" | tee -a "$results"
    scripts/in-netns.sh "$python" Benchmarks/peers/aiortc_bench.py "$seconds" 2>/dev/null | tee -a "$results" || true
    if [[ -x /usr/bin/chromium ]] && "$python" -c 'import psutil' 2>/dev/null; then
        scripts/in-netns.sh "$python" Benchmarks/peers/chromium_bench.py "$seconds" 2>/dev/null | tee -a "$results" || true
    fi
done
"$python" Benchmarks/compare.py "$results"
