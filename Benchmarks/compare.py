"""Prints a table of ours against each peer from the JSON lines of scripts/bench.sh: medians and ratios."""

import collections
import json
import statistics
import sys

HIGHER, LOWER = "higher is better", "lower is better"
ROWS = [
    ("connect", {}, "p50_ms", LOWER),
    ("connect", {}, "cpu_ms_per_pair", LOWER),
    *[("throughput", {"unordered": u, "size": s}, "mbps", HIGHER)
      for u in (0, 1) for s in (1024, 16384, 65536, 262144)],
    ("rtt100", {}, "p50_us", LOWER),
    ("rtt100", {}, "p99_us", LOWER),
    ("rss", {}, "kib_per_pc", LOWER),
    *[(test, {"codec": c}, field, LOWER) for test in ("first-picture", "layer-switch")
      for c in ("VP8", "VP9", "H264") for field in ("p50_ms", "worst_ms")],
    ("forward", {}, "packets_per_second", HIGHER),
    ("forward", {}, "us_per_packet", LOWER),
    ("forward", {}, "packets_per_core_second", HIGHER),
    ("forward", {}, "loss_percent", LOWER),
    ("all-to-all", {}, "packets_per_second", HIGHER),
    ("all-to-all", {}, "us_per_packet", LOWER),
    ("all-to-all", {}, "loss_percent", LOWER),
    ("idle", {}, "resident_mb", LOWER),
    ("idle", {}, "cpu_percent", LOWER),
]
# Where what is measured is a server, ours goes by its name.
OURS = {"sora", "sora-server"}

values = collections.defaultdict(list)
anchors = []
for line in open(sys.argv[1]):
    try:
        record = json.loads(line)
    except ValueError:
        continue
    anchor = record.get("anchor")
    if anchor in OURS:
        anchor = "sora"
    if anchor and anchor not in anchors:
        anchors.append(anchor)
    for test, match, field, _ in ROWS:
        if record.get("test") == test and field in record and all(
            record.get(key, 0) == value for key, value in match.items()
        ):
            values[anchor, test, tuple(match.items()), field].append(float(record[field]))

peers = [a for a in anchors if a != "sora" and "/" not in a]
print(f"\n{'figure':44}{'sora':>10}" + "".join(f"{p[:18]:>20}{'ratio':>8}" for p in peers))
for test, match, field, sense in ROWS:
    key = (test, tuple(match.items()), field)
    ours = values.get(("sora", *key))
    if ours is None:
        continue
    ours = statistics.median(ours)
    name = test + " " + field
    if "codec" in match:
        name += " " + match["codec"]
    elif match:
        name += f" {'unordered' if match['unordered'] else 'ordered'} {match['size'] // 1024} KiB"
    row = f"{name:44}{ours:10.1f}"
    for peer in peers:
        theirs = values.get((peer, *key))
        if theirs:
            theirs = statistics.median(theirs)
            better, worse = (ours, theirs) if sense == HIGHER else (theirs, ours)
            # Nothing lost, for example, has no ratio.
            row += f"{theirs:20.1f}" + (f"{better / worse:8.1f}" if better and worse else f"{'–':>8}")
        else:
            row += f"{'–':>20}{'':8}"
    print(row)
print("ratio: how many times better ours is; medians of the rounds")
