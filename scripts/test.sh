#!/usr/bin/env bash
# Runs the tests. usage: scripts/test.sh all|fast|interop|no-media|deep
# Each test target runs in a process of its own, so that what it does in real time does not wait for
# the others' computing. Ends with one line "N passed, N failed, N skipped" over everything that ran.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-all}
passed=0 failed=0 skipped=0
factor=1 # how much slower than usual; see Tests/TestSupport/RealTime.swift
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# run NAME SWIFT-TEST…: runs tests, shows their failures, adds up the totals of the testing library's own report: what is
# printed may lose lines between the processes.
run() {
    local name=$1 log="$logs/$1.log" results="$logs/$1.xml" status=0 begin=$SECONDS
    shift
    # A target that hangs fails; the slowest takes a quarter of this.
    timeout --kill-after=10 $((900 * factor)) "$@" --disable-xctest --xunit-output "$results" >"$log" 2>&1 || status=$?
    local total=0 bad=0 skip=0
    if [[ -s $results ]]; then
        total=$(grep -c '<testcase ' "$results" || true)
        skip=$(grep -c '<skipped' "$results" || true)
        bad=$(awk '/<testcase /{seen=0} /<failure/{if(!seen)n++; seen=1} END{print n+0}' "$results")
    else
        status=1
    fi
    grep -E '^✘ Test .*(recorded an issue|failed after)|(^|: )error: |Fatal error|ERROR: .*Sanitizer|WARNING: .*Sanitizer|SUMMARY: ' \
        "$log" | cut -c1-400 | head -40 || true
    if ((status)) && ((bad == 0)); then
        # It ended before it could say what failed, or a sanitizer spoke.
        tail -30 "$log" | cut -c1-400
        bad=1 total=$((total + 1))
    fi
    local ok=$((total - bad - skip))
    echo "== $name: $ok passed, $bad failed, $skip skipped in $((SECONDS - begin)) s" >&2
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
}

build() {
    local log="$logs/build.log" begin=$SECONDS
    swift build "$@" >"$log" 2>&1 || { grep -E 'error:' "$log" | sort -u | head -40; tail -20 "$log"; exit 1; }
    grep -E 'warning:' "$log" | grep -vE 'prohibited flag|Cannot export local symbol' | sort -u | head -20 || true
    echo "== build $*: $((SECONDS - begin)) s" >&2
}

# One test at a time: targets whose tests drive sockets, devices or programs in real time, and those that count living
# objects (`.leavesNoObjects`).
serial=" ExamplesTests LocalSoraTests SoraCLITests SoraClientTests SoraDevicesTests SoraDiagnosticsTests SoraLoadTests
SoraPeerTests SoraTests "

# What the thread sanitizer examines: targets in which our own threads, loops and tasks meet. The others are machines
# without threads, programs of their own, or GStreamer's threads, whose locks it does not see.
concurrent=" LocalSoraTests SoraClientTests SoraLoadTests SoraLockingTests SoraMediaTests SoraNetworkTests SoraPeerTests
SoraTests "

unit() {
    local target folder
    for folder in Tests/*Tests; do
        target=$(basename "$folder")
        [[ $target == InteropTests ]] && continue
        [[ ${SORA_SANITIZER:-} == thread && ${concurrent//$'\n'/ } != *" $target "* ]] && continue
        local options=()
        [[ ${serial//$'\n'/ } == *" $target "* ]] && options+=(--no-parallel)
        run "$target$suffix" swift test --skip-build "$@" ${options[@]+"${options[@]}"} --filter "^$target\\."
    done
}
suffix=""

interop() {
    # Real peers share two cores and one namespace: one test at a time.
    run interop scripts/in-netns.sh env SORA_INTEROP=1 swift test --skip-build --no-parallel --filter '^InteropTests\.'
}
no_media() {
    build --build-tests --disable-default-traits --scratch-path .build-no-media
    suffix=" without Media"
    unit --disable-default-traits --scratch-path .build-no-media
    suffix=""
}

case $what in
fast)
    build --build-tests
    unit
    ;;
interop)
    build --build-tests
    interop
    ;;
no-media) no_media ;;
all)
    build --build-tests
    unit
    interop
    no_media
    ;;
deep)
    # The address sanitizer, with the leak sanitizer, over all unit tests; the thread sanitizer over the concurrent ones.
    export TSAN_OPTIONS="suppressions=$PWD/Tests/thread-sanitizer.supp"
    for sanitizer in address thread; do
        factor=$([[ $sanitizer == address ]] && echo 4 || echo 8)
        export SORA_SANITIZER=$sanitizer SORA_TIME_FACTOR=$factor
        export LSAN_OPTIONS="suppressions=$PWD/Tests/leak-sanitizer.supp:print_suppressions=0"
        build --build-tests --sanitize="$sanitizer" --scratch-path ".build-$sanitizer"
        suffix=" ($sanitizer)"
        unit --sanitize="$sanitizer" --scratch-path ".build-$sanitizer"
    done
    ;;
*)
    echo "usage: scripts/test.sh all|fast|interop|no-media|deep" >&2
    exit 2
    ;;
esac

echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
