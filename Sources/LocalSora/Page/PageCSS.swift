extension Page {
    /// The page's style sheet.
    // swift-format-ignore
    static let css = ##"""
:root {
  color-scheme: light dark;
  --back: light-dark(#eef3f9, #0b111c);
  --card: light-dark(#ffffff, #141c2b);
  --sunk: light-dark(#f3f6fb, #0f1623);
  --line: light-dark(#d7e0ec, #263146);
  /* Edges of controls: 3:1 against card and sunk. */
  --edge: light-dark(#7c8ba3, #62728e);
  --text: light-dark(#142033, #e6edf7);
  --soft: light-dark(#54627a, #93a2ba);
  --accent: light-dark(#2563eb, #60a5fa);
  --on-accent: light-dark(#ffffff, #081225);
  --good: light-dark(#15803d, #4ade80);
  --warn: light-dark(#b45309, #fbbf24);
  --bad: light-dark(#b91c1c, #f87171);
  --radius: 14px;
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
html, body { height: 100%; }
body { margin: 0; background: var(--back); color: var(--text); display: flex; flex-direction: column; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -999px; }
body:not([data-state="connected"]) .skip { display: none; }
.skip:focus { left: 12px; top: 12px; z-index: 9; background: var(--card); padding: 8px 12px; border-radius: 8px; }

header {
  display: flex; align-items: center; gap: 12px; padding: 10px 18px; background: var(--card);
  border-bottom: 1px solid var(--line);
}
h1 { font-size: 18px; margin: 0; letter-spacing: -.01em; white-space: nowrap; }
h2 { font-size: 16px; margin: 0; }
#status {
  margin: 0; display: flex; align-items: center; gap: 8px; color: var(--soft); min-width: 0; flex: 1;
  font-size: 14px;
}
#status-text { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.dot { width: 9px; height: 9px; border-radius: 50%; background: var(--soft); flex: none; }
[data-state="connecting"] .dot { background: var(--warn); animation: pulse 1s infinite alternate; }
[data-state="connected"] .dot { background: var(--good); }
[data-state="failed"] .dot { background: var(--bad); }
@keyframes pulse { to { opacity: .3; } }
#controls { display: flex; gap: 8px; }

button, input, select, textarea { font: inherit; color: inherit; }
button {
  border: 1px solid var(--edge); background: var(--card); border-radius: 10px; padding: 8px 14px; cursor: pointer;
  font-weight: 550; white-space: nowrap;
}
button:hover:not(:disabled) { border-color: var(--accent); }
button:disabled { opacity: .5; cursor: not-allowed; }
button.primary { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
button.danger { color: var(--bad); }
button[aria-pressed="true"] { background: var(--bad); border-color: var(--bad); color: var(--card); }

main {
  flex: 1; min-height: 0; display: grid; gap: 14px; padding: 14px;
  grid-template-columns: 300px minmax(0, 1fr) 390px;
}
body[data-state="connected"] main { grid-template-columns: minmax(0, 1fr) 390px; }
body[data-state="connected"] #join { display: none; }
#join, #inspector { background: var(--card); border: 1px solid var(--line); border-radius: var(--radius); }

#join { padding: 18px; display: flex; flex-direction: column; gap: 14px; overflow: auto; }
.field { display: flex; flex-direction: column; gap: 5px; min-width: 0; flex: none; }
.row .field { flex: 1; }
.field label, legend { font-size: 13px; color: var(--soft); font-weight: 550; padding: 0; }
input:not([type="radio"], [type="checkbox"]), select, textarea {
  width: 100%; min-width: 0; padding: 8px 10px; border-radius: 9px; border: 1px solid var(--edge);
  background: var(--sunk);
}
::placeholder { color: var(--soft); opacity: 1; }
textarea { font-family: ui-monospace, monospace; font-size: 13px; resize: vertical; }
.row { display: flex; gap: 10px; }
fieldset { border: 0; margin: 0; padding: 0; min-width: 0; }
.choices { display: flex; gap: 0; flex-wrap: wrap; }
.choices legend { margin-bottom: 5px; }
.choices label { flex: 1; position: relative; }
.choices input { position: absolute; opacity: 0; inset: 0; margin: 0; cursor: pointer; }
.choices span {
  display: block; text-align: center; padding: 7px 4px; font-size: 14px; border: 1px solid var(--edge);
  background: var(--sunk); margin-left: -1px;
}
.choices label:first-of-type span { border-radius: 9px 0 0 9px; margin-left: 0; }
.choices label:last-of-type span { border-radius: 0 9px 9px 0; }
.choices input:checked + span { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
.choices input:focus-visible + span { outline: 3px solid var(--accent); outline-offset: 2px; position: relative; }
.choices:disabled, .switch:has(:disabled) { opacity: .45; }
.switch { display: flex; align-items: center; justify-content: space-between; flex-direction: row-reverse; cursor: pointer; }
.switch input {
  appearance: none; width: 42px; height: 24px; border-radius: 12px; background: var(--edge); margin: 0;
  position: relative; cursor: pointer; transition: background .15s;
}
.switch input::after {
  content: ""; position: absolute; width: 17px; height: 17px; border-radius: 50%; background: #fff; top: 3.5px;
  left: 4px; transition: left .15s; box-shadow: 0 1px 2px #0004;
}
.switch input:checked { background: var(--accent); }
.switch input:checked::after { left: 21px; }
details { display: flex; flex-direction: column; }
summary { cursor: pointer; color: var(--soft); font-weight: 550; padding: 4px 0; border-radius: 6px; }
details .field { margin-top: 12px; }
.hint { color: var(--soft); font-size: 13px; margin: 0; }
#problem {
  margin: 0; padding: 9px 12px; border-radius: 9px; color: var(--bad); overflow-wrap: anywhere;
  background: color-mix(in srgb, var(--bad) 12%, transparent);
}
#join-button { padding: 11px; font-size: 16px; }

#stage { min-height: 0; min-width: 0; position: relative; overflow: auto; }
#stage:focus { outline: none; }
#stage { display: flex; flex-direction: column; gap: 10px; }
#people { display: flex; flex-wrap: wrap; gap: 6px; list-style: none; margin: 0; padding: 0; flex: none; font-size: 13px; }
#people:empty { display: none; }
#people li {
  background: var(--card); border: 1px solid var(--line); border-radius: 999px; padding: 2px 10px; max-width: 100%;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
}
#people small { color: var(--soft); font-size: 12px; }
#videos {
  flex: 1 0 auto; display: grid; gap: 12px; grid-template-columns: repeat(var(--columns, 1), var(--width, 100%));
  grid-auto-rows: max-content; align-content: center; justify-content: center;
}
#empty {
  position: absolute; inset: 0; display: flex; flex-direction: column; gap: 14px; align-items: center;
  justify-content: center; color: var(--soft); text-align: center; padding: 24px; pointer-events: none;
}
#empty img { opacity: .85; }
#videos:not(:empty) + #empty { display: none; }
.tile {
  position: relative; margin: 0; background: #05080f; border-radius: var(--radius); overflow: hidden;
  aspect-ratio: 16 / 9; border: 2px solid transparent; color: #fff;
}
.tile.focused { border-color: var(--accent); }
.tile video { width: 100%; height: 100%; object-fit: contain; display: block; }
.tile.mine video { transform: scaleX(-1); }
.tile.mine.plain video { transform: none; }
.tile .avatar {
  position: absolute; inset: 0; margin: auto; width: 84px; height: 84px; border-radius: 50%; display: grid;
  place-items: center; font-size: 30px; font-weight: 650; background: linear-gradient(135deg, #38bdf8, #6366f1);
}
.tile.has-picture .avatar { display: none; }
.tile figcaption {
  position: absolute; left: 0; right: 0; bottom: 0; padding: 22px 12px 9px; display: flex; gap: 8px;
  align-items: center; background: linear-gradient(transparent, #000b); font-size: 13px;
}
.tile { container-type: inline-size; }
@container (max-width: 280px) { .tile .figures { display: none; } .tile .avatar { width: 54px; height: 54px; font-size: 20px; } }
.tile .name { font-weight: 600; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.tile .figures { margin-left: auto; opacity: .85; white-space: nowrap; font-variant-numeric: tabular-nums; }
.tile select {
  position: absolute; top: 9px; right: 9px; width: auto; background: #000a; color: #fff; border: 1px solid #fff4;
  padding: 3px 6px; font-size: 13px;
}

#inspector { display: flex; flex-direction: column; min-height: 0; min-width: 0; overflow: hidden; }
[role="tablist"] { display: flex; border-bottom: 1px solid var(--line); padding: 0 6px; overflow-x: auto; flex: none; }
[role="tab"] {
  border: 0; background: none; border-radius: 0; padding: 12px 10px 10px; color: var(--soft); font-size: 14px;
  border-bottom: 3px solid transparent; display: flex; gap: 6px; align-items: center; flex: none;
}
[role="tab"]:focus-visible { outline-offset: -3px; }
[role="tab"][aria-selected="true"] { color: var(--text); border-bottom-color: var(--accent); }
[role="tab"] b:not(:empty) {
  background: var(--accent); color: var(--on-accent); border-radius: 9px; padding: 0 6px; font-size: 12px;
}
[role="tabpanel"] { flex: 1; min-height: 0; overflow: auto; padding: 12px; display: flex; flex-direction: column; gap: 10px; }
[role="tabpanel"]:focus-visible { outline-offset: -3px; }
#messages { list-style: none; margin: 0; padding: 0; flex: 1; overflow: auto; display: flex; flex-direction: column; gap: 8px; }
#messages:empty::before { content: "Nobody has said anything yet."; color: var(--soft); margin: auto; }
#messages li { background: var(--sunk); padding: 7px 11px; border-radius: 11px; max-width: 90%; align-self: flex-start; overflow-wrap: anywhere; }
#messages li.mine { align-self: flex-end; background: var(--accent); color: var(--on-accent); }
#messages small { display: block; color: var(--soft); font-size: 12px; }
#messages .mine small { color: inherit; }
#compose { display: flex; gap: 8px; }
.log { display: flex; flex-direction: column; gap: 4px; font-size: 13px; }
.log details { background: var(--sunk); border-radius: 8px; }
.log summary {
  padding: 5px 9px; display: flex; gap: 8px; list-style: none; font-weight: 500; color: var(--text);
  align-items: baseline;
}
.log summary::-webkit-details-marker { display: none; }
.log time { color: var(--soft); font-variant-numeric: tabular-nums; font-size: 12px; }
.log .way { font-weight: 700; width: 1em; }
.log .in { color: var(--good); }
.log .out { color: var(--accent); }
.log .over { margin-left: auto; color: var(--soft); font-size: 12px; }
.log pre {
  margin: 0; padding: 8px 10px; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 12px;
  border-top: 1px solid var(--line); max-height: 340px; overflow: auto;
}
dl { display: grid; grid-template-columns: auto 1fr; gap: 4px 14px; margin: 0; font-size: 13px; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 6px 0; }
th, td { text-align: right; padding: 4px 3px; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
th { color: var(--soft); font-weight: 550; }
td:first-child { max-width: 140px; white-space: normal; overflow-wrap: anywhere; }

@media (max-width: 1080px) {
  main, body[data-state="connected"] main { grid-template-columns: 290px minmax(0, 1fr); grid-template-rows: minmax(260px, 1fr) 320px; }
  #join { grid-row: 1 / 3; }
  body[data-state="connected"] main { grid-template-columns: minmax(0, 1fr); }
}
@media (max-width: 720px) {
  html, body { height: auto; min-height: 100%; }
  header { padding: 8px 12px; flex-wrap: wrap; position: sticky; top: 0; z-index: 5; }
  #controls { width: 100%; }
  #controls button { flex: 1; }
  main, body[data-state="connected"] main { display: flex; flex-direction: column; padding: 10px; gap: 10px; }
  body:not([data-state="connected"]) #stage { display: none; }
  #stage { overflow: visible; min-height: 180px; }
  #people { flex-wrap: nowrap; overflow-x: auto; }
  #people li { flex: none; }
  #inspector { min-height: 340px; max-height: 70vh; }
  input:not([type="radio"], [type="checkbox"]), select, textarea { font-size: 16px; }
}
@media (max-width: 360px) {
  [role="tab"] { padding: 12px 5px 10px; font-size: 13px; }
  .choices span { font-size: 13px; }
}
@media (forced-colors: active) {
  .choices input:checked + span { outline: 3px solid Highlight; outline-offset: -4px; }
  .switch input { appearance: auto; width: 20px; }
  .switch input::after { display: none; }
}
@media (prefers-reduced-motion: reduce) { * { animation: none !important; transition: none !important; } }
"""##
}
