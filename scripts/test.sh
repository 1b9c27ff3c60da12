#!/usr/bin/env bash
# Runs the tests. usage: scripts/test.sh all|fast|interop|no-media|deep
# Ends with one line "N passed, N failed, N skipped" over everything that ran.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-all}
passed=0 failed=0 skipped=0
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# run NAME COMMAND…: runs a test command, shows its failures and closing line, adds up its totals.
run() {
    local name=$1 log="$logs/$1.log" status=0
    shift
    echo "== $name: $*" >&2
    "$@" >"$log" 2>&1 || status=$?
    local ok bad skip
    ok=$(grep -cE '^✔ Test .* passed after|^✔ Test .*with .* passed after' "$log" || true)
    bad=$(grep -cE '^✘ Test [^r].* failed after|^✘ Test .*with .* failed after' "$log" || true)
    skip=$(grep -cE '^➜ Test .* skipped' "$log" || true)
    grep -E '^✘|error:|Fatal error|^➜ Test .* skipped' "$log" | head -60 || true
    grep -E 'Test run with' "$log" | tail -1 || true
    if ((status)) && ((bad == 0)); then
        tail -40 "$log"
        bad=1
    fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
}

build() {
    echo "== build $*" >&2
    local log="$logs/build.log"
    swift build "$@" >"$log" 2>&1 || { grep -E 'error|warning' "$log" | head -40; tail -20 "$log"; exit 1; }
    grep -E 'warning:' "$log" | grep -v 'prohibited flag' | sort -u | head -20 || true
}

unit() { run unit swift test --skip-build --skip InteropTests; }
interop() {
    # Real peers share two cores and one namespace: one test at a time.
    run interop scripts/in-netns.sh env SORA_INTEROP=1 swift test --skip-build --no-parallel --filter InteropTests
}
no_media() {
    build --build-tests --disable-default-traits --scratch-path .build-no-media
    run no-media swift test --skip-build --disable-default-traits --scratch-path .build-no-media \
        --skip InteropTests
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
    for sanitizer in address thread; do
        build --build-tests --sanitize="$sanitizer" --scratch-path ".build-$sanitizer"
        # Reports of a contended Synchronization.Mutex are false (see the file).
        TSAN_OPTIONS="suppressions=$PWD/Tests/thread-sanitizer.supp" SORA_DEEP=1 run "$sanitizer" swift test --skip-build --sanitize="$sanitizer" \
            --scratch-path ".build-$sanitizer" --skip InteropTests
    done
    ;;
*)
    echo "usage: scripts/test.sh all|fast|interop|no-media|deep" >&2
    exit 2
    ;;
esac

echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
