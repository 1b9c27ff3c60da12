extension Page {
    /// The page's behaviour: an ES module.
    // swift-format-ignore
    static let script = ##"""
import { $, clock, element } from "/elements.js";
import { canSend, mediaProblem, openMedia } from "/media.js";
import { Meter } from "/statistics.js";
import { SoraClient } from "/sora.js";

const form = $("join");
const body = document.body;
let client = null;
let local = null;
let meter = null;
const tiles = new Map();
const names = new Map();
const people = new Map();
let unread = 0;

// Names.

const shorten = (text) => (text && text.length > 14 ? text.slice(0, 10) + "…" : text ?? "?");
const nameOf = (id) => names.get(id) ?? shorten(id);

function setState(state, text) {
  body.dataset.state = state;
  $("status-text").textContent = text;
  $("controls").hidden = state !== "connected";
  $("join-button").disabled = state === "connecting";
  $("join-button").textContent = state === "connecting" ? "Joining…" : "Join";
  $("cancel").hidden = state !== "connecting";
}

function complain(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
  if (text) $("problem").scrollIntoView({ block: "nearest" });
}

// The form.

const defaultURL = () => `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/signaling`;
$("url").value = defaultURL();
const query = new URLSearchParams(location.search);
for (const [key, value] of query) {
  const field = form.elements[key];
  if (!field) continue;
  if (field.type === "checkbox") field.checked = value !== "0" && value !== "false";
  else field.value = value;
}

function adapt() {
  const watches = form.elements.role.value === "recvonly";
  $("sources").disabled = watches;
  form.elements.microphone.disabled = watches;
}
form.addEventListener("change", adapt);
adapt();
// A wrong value in a folded part must be seen, or the button seems dead.
form.addEventListener("invalid", ({ target }) => {
  const folded = target.closest("details");
  if (folded) folded.open = true;
}, true);

/// What the form says, as keys of `connect`.
function connectOptions() {
  const value = (name) => form.elements[name].value.trim();
  const role = value("role");
  const watches = role === "recvonly";
  const hasVideo = watches || value("source") !== "none";
  const hasAudio = watches || form.elements.microphone.checked;
  const options = {
    role, channel_id: value("channel"), sora_client: "Local Sora page", environment: navigator.userAgent,
    // Who sends only one kind may still watch both.
    audio: role === "sendonly" ? hasAudio : true, video: role === "sendonly" ? hasVideo : true,
  };
  if (options.video) {
    const wishes = {};
    if (value("codec")) wishes.codec_type = value("codec");
    if (value("bitrate")) wishes.bit_rate = Number(value("bitrate"));
    if (Object.keys(wishes).length) options.video = wishes;
  }
  if (form.elements.simulcast.checked) options.simulcast = true;
  if (value("rid")) options.simulcast_request_rid = value("rid");
  if (form.elements.spotlight.checked) {
    options.spotlight = true;
    if (value("spotlight_number")) options.spotlight_number = Number(value("spotlight_number"));
  }
  const dcs = value("dcs");
  if (dcs) options.data_channel_signaling = dcs !== "off";
  if (dcs === "only") options.ignore_disconnect_websocket = true;
  if (value("client")) {
    options.client_id = value("client");
    options.signaling_notify_metadata = { name: value("client") };
  }
  if (value("metadata")) options.metadata = JSON.parse(value("metadata"));
  if (dcs !== "off" && value("label")) {
    options.data_channels = [{
      label: value("label"), direction: "sendrecv", compress: false, header: [{ type: "sender_connection_id" }],
    }];
  }
  if (!options.audio && !options.video && dcs === "off") throw new Error("There is nothing to send and nothing to see");
  return options;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (client) return;
  complain("");
  let options;
  try {
    options = connectOptions();
  } catch (error) {
    return complain(error instanceof SyntaxError ? `Metadata is no JSON: ${error.message}` : error.message);
  }
  const codec = form.elements.codec.value;
  const sends = form.elements.role.value !== "recvonly" && form.elements.source.value !== "none";
  if (codec && sends && !canSend(codec)) return complain(`This browser cannot send ${codec}. Choose another codec, or watch.`);
  setState("connecting", "Connecting…");
  const attempt = client = {};  // so that nobody joins twice while the browser asks for permission
  let media = null;
  try {
    const watches = form.elements.role.value === "recvonly";
    if (!watches) {
      media = await openMedia(form.elements.source.value, form.elements.microphone.checked);
    }
  } catch (error) {
    if (client !== attempt) return;
    client = null;
    setState("failed", "No camera or microphone");
    return complain(mediaProblem(error));
  }
  if (client !== attempt) {  // cancelled meanwhile
    for (const track of media?.getTracks() ?? []) track.stop();
    return media?.stopAll?.();
  }
  local = media;
  for (const track of local?.getTracks() ?? []) track.addEventListener("ended", () => stoppedByBrowser(track));
  client = new SoraClient(options, local);
  listen(client);
  client.connect($("url").value.trim() || defaultURL());
});

$("cancel").addEventListener("click", () => {
  if (body.dataset.state !== "connecting") return;
  client?.abort?.();
  leave(false, "Cancelled");
  $("join-button").focus();
});

/// The user ended screen sharing in the browser's own bar, or pulled a device out.
function stoppedByBrowser(track) {
  const entry = tiles.get(client?.connectionID);
  entry?.stream.removeTrack(track);
  if (track.kind === "video") entry?.figure.classList.remove("has-picture");
  $(`mute-${track.kind}`).hidden = true;
}

function listen(current) {
  const on = (type, handle) => current.addEventListener(type, ({ detail }) => { if (client === current) handle(detail); });
  on("state", ({ state, reason }) => {
    if (state === "connecting") return;
    if (state === "connected") return joined(current);
    leave(state === "failed", reason);
  });
  on("message", (message) => log($("signaling-log"), message));
  on("notify", ({ message }) => notified(message));
  on("push", ({ message }) => log($("notify-log"), { direction: "in", over: "push", type: "push", body: message }));
  on("track", ({ track, stream }) => addTrack(stream.id, track));
  on("trackend", ({ track, stream }) => removeTrack(stream.id, track));
  on("data", ({ label, bytes, sender }) => showMessage(new TextDecoder().decode(bytes), sender, label));
}

function joined(current) {
  const channel = form.elements.channel.value;
  setState("connected", `In ${channel}`);
  $("empty-text").textContent = "Nobody sends anything here yet.";
  document.title = `${channel} · Local Sora`;
  const label = form.elements.label.value.trim();
  const canWrite = current.offer.data_channels?.some((entry) => entry.label === label) ?? false;
  $("message").disabled = $("send").disabled = !canWrite;
  $("message").placeholder = canWrite ? "Message to everybody" : "Messages need DataChannel signaling";
  showMine(current);
  for (const button of [$("mute-audio"), $("mute-video")]) {
    showPressed(button, false);
    button.hidden = !local?.getTracks().some((track) => track.kind === button.id.slice(5));
  }
  meter = new Meter(current, tiles, nameOf);
  scrollTo(0, 0);
  if (form.contains(document.activeElement) || document.activeElement === body) $("stage").focus({ preventScroll: true });
}

function leave(isFailure, reason) {
  const wasJoined = body.dataset.state === "connected";
  client = null;
  meter?.stop();
  meter = null;
  for (const track of local?.getTracks() ?? []) track.stop();
  local?.stopAll?.();
  local = null;
  for (const id of [...tiles.keys()]) removeTile(id);
  people.clear();
  names.clear();
  showPeople();
  $("message").disabled = $("send").disabled = true;
  $("empty-text").textContent = "Join a channel to see who is there.";
  document.title = "Local Sora";
  setState(isFailure ? "failed" : "idle", reason);
  if (isFailure) complain(reason);
  if (wasJoined) $("join-button").focus({ preventScroll: isFailure });
}

// Tiles.

function tile(id, isMine = false) {
  if (tiles.has(id)) return tiles.get(id);
  const video = element("video", { autoplay: true, playsInline: true, muted: isMine });
  const name = element("span", { className: "name", textContent: isMine ? `${nameOf(id)} (you)` : nameOf(id) });
  const figures = element("span", { className: "figures" });
  const avatar = element("div", { className: "avatar", textContent: nameOf(id).slice(0, 2).toUpperCase(), ariaHidden: true });
  const figure = element("figure", { className: isMine ? "tile mine" : "tile" }, avatar, video,
    element("figcaption", {}, name, figures));
  const entry = { figure, video, name, figures, avatar, stream: new MediaStream() };
  video.srcObject = entry.stream;
  video.addEventListener("resize", () => figure.classList.toggle("has-picture", video.videoWidth > 0));
  if (!isMine) addLayerChoice(entry, id);
  $("videos").append(figure);
  tiles.set(id, entry);
  arrange();
  return entry;
}

const layerMethod = "2025.2.0/RequestSimulcastRid";
function addLayerChoice(entry, id) {
  if (!client?.rpcMethods?.includes(layerMethod)) return;
  const choice = element("select", { title: "Simulcast layer" }, ...["r0", "r1", "r2", "none"].map((rid) => new Option(rid, rid)));
  choice.setAttribute("aria-label", `Layer of ${nameOf(id)}`);
  choice.value = form.elements.rid.value || "r0";
  choice.hidden = true;
  choice.addEventListener("change", async () => {
    try {
      await client.call(layerMethod, { rid: choice.value, sender_connection_id: id });
    } catch (error) {
      log($("notify-log"), { direction: "in", over: "rpc", type: `refused: ${error.message}`, body: {} });
    }
  });
  entry.figure.append(choice);
  entry.choice = choice;
  if (form.elements.simulcast.checked && !form.elements.spotlight.checked) choice.hidden = false;
}

function addTrack(id, track) {
  const entry = tile(id);
  for (const old of entry.stream.getTracks()) if (old.kind === track.kind) entry.stream.removeTrack(old);
  entry.stream.addTrack(track);
  entry.video.play().catch(() => {});
}

function removeTrack(id, track) {
  const entry = tiles.get(id);
  if (!entry) return;
  entry.stream.removeTrack(track);
  if (!entry.stream.getTracks().length) removeTile(id);
}

function removeTile(id) {
  const entry = tiles.get(id);
  if (!entry) return;
  entry.video.srcObject = null;
  entry.figure.remove();
  tiles.delete(id);
  arrange();
}

/// As many columns as make the tiles largest: all of them in sight, if the window is not a phone's.
function arrange() {
  const { clientWidth: width } = $("stage");
  const height = $("stage").clientHeight - ($("people").offsetHeight ? $("people").offsetHeight + 10 : 0);
  const count = tiles.size;
  const gap = 12;
  const isPhone = matchMedia("(max-width: 720px)").matches;
  let best = { columns: 1, size: width };
  if (isPhone) {
    // A phone scrolls.
    if (count > 3) best = { columns: 2, size: (width - gap) / 2 };
  } else {
    best.size = 0;
    for (let columns = 1; columns <= Math.max(count, 1); columns++) {
      const rows = Math.ceil(count / columns);
      const byWidth = (width - gap * (columns - 1)) / columns;
      const byHeight = (height - gap * (rows - 1)) / rows * 16 / 9;
      const size = Math.max(Math.min(byWidth, byHeight), Math.min(220, byWidth));
      if (size >= best.size) best = { columns, size };
    }
  }
  $("videos").style.setProperty("--columns", best.columns);
  $("videos").style.setProperty("--width", `${Math.floor(best.size)}px`);
}
new ResizeObserver(arrange).observe($("stage"));

function showMine(current) {
  if (!local) return;
  const entry = tile(current.connectionID, true);
  for (const track of local.getVideoTracks()) entry.stream.addTrack(track);
  entry.figure.classList.toggle("plain", form.elements.source.value !== "camera");
  $("videos").prepend(entry.figure);
}

// Notifications and logs.

function notified(message) {
  const remember = (peer) => {
    const name = peer.authn_metadata?.name ?? (peer.client_id !== peer.connection_id ? peer.client_id : null);
    if (name) names.set(peer.connection_id, String(name));
  };
  if (message.event_type?.startsWith("connection.")) {
    remember(message);
    for (const peer of message.data ?? []) remember(peer);
    for (const peer of [message, ...message.data ?? []]) {
      if (peer.connection_id) people.set(peer.connection_id, peer.role ?? people.get(peer.connection_id) ?? "");
    }
    if (message.event_type === "connection.destroyed") people.delete(message.connection_id);
    showPeople();
    for (const [id, entry] of tiles) {
      const isMine = id === client.connectionID;
      entry.name.textContent = isMine ? `${nameOf(id)} (you)` : nameOf(id);
      entry.avatar.textContent = nameOf(id).slice(0, 2).toUpperCase();
    }
    if (message.channel_connections) {
      const count = message.channel_connections;
      $("status-text").textContent = `In ${form.elements.channel.value} · ${count} ${count === 1 ? "connection" : "connections"}`;
    }
  }
  log($("notify-log"), { direction: "in", over: message.client_id ? nameOf(message.connection_id) : "", type: message.event_type, body: message });
  if (message.event_type === "connection.destroyed") removeTile(message.connection_id);
  if (message.event_type?.startsWith("spotlight.")) {
    tiles.get(message.connection_id)?.figure.classList.toggle("focused", message.event_type === "spotlight.focused");
  }
}

/// Who is here, with and without picture.
function showPeople() {
  const roles = { sendrecv: "", sendonly: " sends", recvonly: " watches" };
  $("people").replaceChildren(...[...people].map(([id, role]) => element("li", { title: id },
    id === client?.connectionID ? `${nameOf(id)} (you)` : nameOf(id), element("small", { textContent: roles[role] ?? "" }))));
  arrange();
}

function log(list, { direction, over, type, body: content }) {
  const line = element("details", {}, element("summary", {},
    element("time", { textContent: clock() }),
    element("span", { className: `way ${direction}`, textContent: direction === "in" ? "←" : "→", ariaLabel: direction === "in" ? "received" : "sent" }),
    element("span", { textContent: type ?? "?" }), element("span", { className: "over", textContent: over })));
  line.addEventListener("toggle", () => {
    if (line.querySelector("pre")) return;
    const { sdp, ...rest } = content ?? {};
    line.append(element("pre", { textContent: JSON.stringify(rest, null, 2) + (sdp ? `\n\n${sdp}` : "") }));
  }, { once: true });
  list.prepend(line);
  while (list.children.length > 300) list.lastElementChild.remove();
}

// Messages.

function showMessage(text, sender, label) {
  const isMine = sender === client?.connectionID;
  const line = element("li", { className: isMine ? "mine" : "" },
    element("small", { textContent: `${isMine ? "You" : nameOf(sender)} · ${clock()}${label === "#chat" ? "" : " · " + label}` }), text);
  $("messages").append(line);
  line.scrollIntoView({ block: "nearest" });
  while ($("messages").children.length > 300) $("messages").firstElementChild.remove();
  if (!isMine && $("chat").hidden) $("tab-chat").querySelector("b").textContent = ++unread;
}

$("compose").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = $("message").value;
  const label = form.elements.label.value.trim();
  if (!text || !client) return;
  if (await client.send(label, text)) {
    $("message").value = "";
    showMessage(text, client.connectionID, label);
  }
});

// Tabs, with the arrow keys.

const tabs = [...document.querySelectorAll('[role="tab"]')];
function select(tab) {
  for (const other of tabs) {
    const isSelected = other === tab;
    other.setAttribute("aria-selected", isSelected);
    other.tabIndex = isSelected ? 0 : -1;
    $(other.getAttribute("aria-controls")).hidden = !isSelected;
  }
  if (tab.id === "tab-chat") {
    unread = 0;
    tab.querySelector("b").textContent = "";
  }
}
for (const tab of tabs) {
  tab.addEventListener("click", () => select(tab));
  tab.addEventListener("keydown", ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    const index = key === "Home" ? 0 : key === "End" ? tabs.length - 1
      : step ? (tabs.indexOf(tab) + step + tabs.length) % tabs.length : -1;
    if (index < 0) return;
    select(tabs[index]);
    tabs[index].focus();
  });
}

// Mute, leave, keys.

const words = { "mute-audio": ["Mute", "Unmute"], "mute-video": ["Hide me", "Show me"] };
function showPressed(button, isPressed) {
  button.setAttribute("aria-pressed", isPressed);
  button.textContent = words[button.id][isPressed ? 1 : 0];
}
function toggle(kind) {
  const button = $(`mute-${kind}`);
  if (button.hidden || !local) return;
  const isMuted = button.getAttribute("aria-pressed") !== "true";
  showPressed(button, isMuted);
  for (const track of local.getTracks()) if (track.kind === kind) track.enabled = !isMuted;
}
$("mute-audio").addEventListener("click", () => toggle("audio"));
$("mute-video").addEventListener("click", () => toggle("video"));
$("leave").addEventListener("click", () => client?.disconnect());
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  if (event.key === "m") toggle("audio");
  if (event.key === "v") toggle("video");
});
addEventListener("pagehide", () => client?.disconnect?.());

if (query.get("join") === "1") form.requestSubmit();
"""##
}
