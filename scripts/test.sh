#!/usr/bin/env bash
# Runs the tests. usage: scripts/test.sh all|fast|interop|no-media|deep
# Each test target runs in a process of its own, so that what it does in real time does not wait for
# the others' computing. Ends with one line "N passed, N failed, N skipped" over everything that ran.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-all}
passed=0 failed=0 skipped=0
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# run NAME COMMAND…: runs a test command, shows its failures and closing line, adds up its totals.
run() {
    local name=$1 log="$logs/$1.log" status=0 begin=$SECONDS
    shift
    "$@" >"$log" 2>&1 || status=$?
    local total bad skip
    # The closing line has the number: single lines get lost between what the tests themselves print.
    total=$(sed -nE 's/^. Test run with ([0-9]+) tests? .*/\1/p' "$log" | tail -1)
    bad=$(grep -E '^✘ Test .* failed after' "$log" | grep -vc '^✘ Test run with ' || true)
    skip=$(grep -cE '^➜ Test .* skipped' "$log" || true)
    grep -E '^✘ Test .*(recorded an issue|failed after)|(^|: )error: |Fatal error' "$log" | cut -c1-400 | head -40 || true
    if ((status)) && ((bad == 0)); then
        # It ended before it could say what failed.
        tail -30 "$log" | cut -c1-400
        bad=1
    fi
    local ok=$((${total:-$bad} - bad))
    echo "== $name: $ok passed, $bad failed, $skip skipped in $((SECONDS - begin)) s" >&2
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
}

build() {
    local log="$logs/build.log" begin=$SECONDS
    swift build "$@" >"$log" 2>&1 || { grep -E 'error:' "$log" | sort -u | head -40; tail -20 "$log"; exit 1; }
    grep -E 'warning:' "$log" | grep -v 'prohibited flag' | sort -u | head -20 || true
    echo "== build $*: $((SECONDS - begin)) s" >&2
}

# Targets whose tests drive sockets, devices or programs in real time: one test at a time.
serial=" ExamplesTests LocalSoraTests SoraCLITests SoraDevicesTests SoraDiagnosticsTests SoraTests "

unit() {
    local target folder
    for folder in Tests/*Tests; do
        target=$(basename "$folder")
        [[ $target == InteropTests ]] && continue
        local options=()
        [[ $serial == *" $target "* ]] && options+=(--no-parallel)
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
    for sanitizer in address thread; do
        build --build-tests --sanitize="$sanitizer" --scratch-path ".build-$sanitizer"
        suffix=" ($sanitizer)"
        # Reports of a contended Synchronization.Mutex are false (see the file).
        export TSAN_OPTIONS="suppressions=$PWD/Tests/thread-sanitizer.supp" SORA_DEEP=1
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
