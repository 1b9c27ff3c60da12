#!/usr/bin/env bash
# Builds the documentation of the module Sora; a warning is an error. Nothing is fetched.
# usage: scripts/docs.sh [--products DIR] [--output DIR]
#   --products  a folder with the built module; without it, it is built
#   --output    where the documentation goes; .build/docs
# To read it: python3 -m http.server -d .build/docs, then http://127.0.0.1:8000/documentation/sora
set -euo pipefail
cd "$(dirname "$0")/.."
products='' output=.build/docs
while (($#)); do
    case $1 in
    --products) products=$2 ;;
    --output) output=$2 ;;
    *)
        echo "usage: scripts/docs.sh [--products DIR] [--output DIR]" >&2
        exit 2
        ;;
    esac
    shift 2
done
if [[ -z $products ]]; then
    swift build --target Sora >&2
    products=$(swift build --show-bin-path)
fi

# The C modules that Sora's own modules are built on: our module maps and what pkg-config says of the libraries.
clang=()
for map in Sources/*/module.modulemap Sources/*/include/module.modulemap "$products"/*/module.modulemap; do
    [[ -f $map ]] && clang+=(-Xcc "-fmodule-map-file=$map")
done
for include in Sources/*/include; do [[ -d $include ]] && clang+=(-Xcc "-I$include"); done
for library in openssl opus vpx gstreamer-video-1.0 gstreamer-app-1.0 sdl2 libpulse; do
    for flag in $(pkg-config --cflags-only-I "$library" 2>/dev/null || true); do clang+=(-Xcc "$flag"); done
done

symbols=$(mktemp -d)
trap 'rm -rf "$symbols"' EXIT
swift symbolgraph-extract -module-name Sora -I "$products/Modules" -target "$(uname -m)-unknown-linux-gnu" \
    -output-dir "$symbols" -minimum-access-level public -skip-synthesized-members -skip-inherited-docs "${clang[@]}"
docc convert Sources/Sora/Sora.docc --additional-symbol-graph-dir "$symbols" --output-path "$output" \
    --fallback-display-name Sora --fallback-bundle-identifier sora-swift.Sora --warnings-as-errors
