extension Page {
    /// The page's signaling client: an ES module without dependencies.
    // swift-format-ignore
    static let client = ##"""
// A Sora client: WebSocket and DataChannel signaling, media, messages and RPC.
//
// Events: "message" {direction, over, type, body}, "state" {state, reason}, "notify" {message},
// "push" {message}, "track" {track, stream}, "trackend" {track, stream}, "data" {label, bytes, sender},
// "labels" {labels}.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

async function through(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}
const deflate = (bytes) => through(bytes, new CompressionStream("deflate"));
const inflate = (bytes) => through(bytes, new DecompressionStream("deflate"));

export class SoraClient extends EventTarget {
  #options;
  #stream;
  #socket = null;
  #pc = null;
  #offer = null;
  #channels = new Map();
  #definitions = new Map();
  #isSwitched = false;
  #isOver = false;
  #isLeaving = false;
  /// Why the server said that it closes.
  #closing = null;
  #redirects = 0;
  #calls = new Map();
  #nextCall = 1;
  #sending = new Map();
  #negotiation = Promise.resolve();

  /// `options`: keys of the `connect` message. `stream`: local media, or null.
  constructor(options, stream) {
    super();
    this.#options = options;
    this.#stream = stream;
  }

  get connectionID() { return this.#offer?.connection_id ?? null; }
  get rpcMethods() { return this.#offer?.rpc_methods ?? []; }
  get offer() { return this.#offer; }
  get isOver() { return this.#isOver; }
  statistics() { return this.#pc?.getStats() ?? Promise.resolve(new Map()); }

  connect(url) {
    this.#tell("state", { state: "connecting" });
    this.#open(url, { type: "connect", ...this.#options });
  }

  #open(url, connect) {
    let socket;
    try {
      socket = new WebSocket(url);
    } catch (error) {
      return this.#end(`Not a signaling URL: ${error.message}`);
    }
    this.#socket = socket;
    socket.onopen = () => this.#write(socket, connect);
    socket.onmessage = async ({ data }) => {
      if (typeof data !== "string") return;
      const message = JSON.parse(data);
      this.#tell("message", { direction: "in", over: "WebSocket", type: message.type, body: message });
      if (message.type === "redirect") {
        if (++this.#redirects > 10) return this.#end("Too many redirects");
        this.#socket = null;
        socket.close();
        return this.#open(message.location, { ...connect, redirect: true });
      }
      await this.#handle(message, (answer) => this.#write(socket, answer));
    };
    socket.onclose = ({ code, reason }) => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      if (this.#isSwitched && this.#offer?.ignore_disconnect_websocket) return;
      const text = this.#isLeaving ? "You left" : code === 1000 ? reason || "The server ended the connection"
        : code === 1006 ? (this.#offer ? "The connection to the server broke (1006)" : "The server cannot be reached (1006)") : `${reason || "no reason"} (${code})`;
      this.#end(text, code !== 1000 && !this.#isLeaving);
    };
  }

  #write(socket, message) {
    if (socket.readyState !== WebSocket.OPEN) return;
    this.#tell("message", { direction: "out", over: "WebSocket", type: message.type, body: message });
    socket.send(JSON.stringify(message));
  }

  async #handle(message, reply) {
    switch (message.type) {
      case "offer":
        return this.#serialize(async () => {
          this.#prepare(message);
          reply({ type: "answer", sdp: await this.#answer(message.sdp, true) });
        });
      case "re-offer":
        return this.#serialize(async () => reply({ type: "re-answer", sdp: await this.#answer(message.sdp) }));
      case "ping":
        return reply(message.stats ? { type: "pong", stats: await this.#reports() } : { type: "pong" });
      case "req-stats": return reply({ type: "stats", reports: await this.#reports() });
      case "notify": return this.#notified(message);
      case "push": return this.#tell("push", { message });
      case "switched":
        this.#isSwitched = true;
        if (message.ignore_disconnect_websocket && this.#socket) {
          const socket = this.#socket;
          this.#socket = null;
          socket.close();
        }
    }
  }

  /// Offers are answered one after the other, in order.
  #serialize(work) {
    this.#negotiation = this.#negotiation.then(work).catch((error) => this.#end(`Negotiation failed: ${error.message}`));
    return this.#negotiation;
  }

  async #reports() { return [...(await this.statistics()).values()]; }

  #notified(message) {
    if (message.event_type === "connection.created" && message.connection_id === this.connectionID) {
      this.#tell("state", { state: "connected" });
    }
    this.#tell("notify", { message });
  }

  // Media.

  #prepare(offer) {
    this.#offer = offer;
    for (const entry of offer.data_channels ?? []) this.#definitions.set(entry.label, entry);
    this.#tell("labels", { labels: [...this.#definitions.keys()] });
    const pc = new RTCPeerConnection(offer.config ?? {});
    this.#pc = pc;
    pc.ontrack = ({ track, streams: [stream] }) => {
      if (!stream || stream.id === "default" || stream.id === this.connectionID) return;
      this.#tell("track", { track, stream });
      stream.onremovetrack = ({ track: gone }) => this.#tell("trackend", { track: gone, stream });
    };
    pc.ondatachannel = ({ channel }) => this.#channelOpened(channel);
    pc.onicecandidate = ({ candidate }) => {
      if (!candidate) return;
      const message = { type: "candidate", ...candidate.toJSON() };
      if (this.#socket) this.#write(this.#socket, message); else this.#sendSystem("signaling", message);
    };
    pc.onconnectionstatechange = () => {
      if (pc.connectionState === "failed") this.#end("The media connection failed: no packets get through");
    };
  }

  async #answer(sdp, isFirst = false) {
    const pc = this.#pc;
    await pc.setRemoteDescription({ type: "offer", sdp });
    if (isFirst) await this.#attach();
    await pc.setLocalDescription(await pc.createAnswer());
    return pc.localDescription.sdp;
  }

  async #attach() {
    for (const track of this.#stream?.getTracks() ?? []) {
      const transceiver = this.#pc.getTransceivers().find(({ mid }) => mid === this.#offer.mid?.[track.kind]);
      if (!transceiver) continue;
      transceiver.direction = "sendonly";
      await transceiver.sender.replaceTrack(track);
      transceiver.sender.setStreams?.(this.#stream);
      if (track.kind === "video" && this.#offer.simulcast && this.#offer.encodings) {
        const parameters = transceiver.sender.getParameters();
        if (parameters.encodings.length === this.#offer.encodings.length) {
          parameters.encodings.forEach((encoding, index) => Object.assign(encoding, this.#offer.encodings[index]));
          await transceiver.sender.setParameters(parameters);
        }
      }
    }
  }

  // Data channels.

  #channelOpened(channel) {
    const { label } = channel;
    const definition = this.#definitions.get(label) ?? {};
    channel.binaryType = "arraybuffer";
    this.#channels.set(label, channel);
    // Inflating takes its time; messages keep their order all the same.
    let order = Promise.resolve();
    channel.onmessage = ({ data }) => {
      order = order.then(async () => {
        let bytes = typeof data === "string" ? encoder.encode(data) : new Uint8Array(data);
        if (definition.compress) bytes = await inflate(bytes);
        await this.#receivedOn(label, definition, bytes);
      }).catch(() => {});
    };
    channel.onclose = () => {
      this.#channels.delete(label);
      if (label === "signaling" && !this.#socket && !this.#isOver) {
        this.#end(this.#isLeaving ? "You left" : this.#closing ?? "The server ended the connection", false);
      }
    };
  }

  async #receivedOn(label, definition, bytes) {
    if (label.startsWith("#")) {
      let sender = null;
      for (const { type, length } of definition.header ?? []) {
        if (type === "sender_connection_id") sender = decoder.decode(bytes.subarray(0, length));
        bytes = bytes.subarray(length);
      }
      return this.#tell("data", { label, bytes, sender });
    }
    const message = JSON.parse(decoder.decode(bytes));
    this.#tell("message", { direction: "in", over: label, type: message.type ?? "rpc", body: message });
    if (label === "rpc") return this.#answered(message);
    if (message.type === "close") this.#closing = `${message.reason} (${message.code})`;
    await this.#handle(message, (answer) => this.#sendSystem(label, answer));
  }

  /// Deflating must not change the order of messages.
  #enqueue(label, bytes, asText) {
    const channel = this.#channels.get(label);
    if (channel?.readyState !== "open") return Promise.resolve(false);
    const compress = this.#definitions.get(label)?.compress;
    const previous = this.#sending.get(label) ?? Promise.resolve();
    const next = previous.then(async () => {
      const payload = compress ? await deflate(bytes) : asText ? decoder.decode(bytes) : bytes;
      if (channel.readyState === "open") channel.send(payload);
      return true;
    }).catch(() => false);
    this.#sending.set(label, next);
    return next;
  }

  #sendSystem(label, message) {
    this.#tell("message", { direction: "out", over: label, type: message.type ?? message.method ?? "rpc", body: message });
    return this.#enqueue(label, encoder.encode(JSON.stringify(message)), true);
  }

  send(label, text) { return this.#enqueue(label, encoder.encode(text), false); }

  // RPC.

  call(method, params) {
    const id = this.#nextCall++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#calls.get(id)?.reject(new Error("no answer in 5 s")), 5000);
      const done = (finish) => (value) => {
        clearTimeout(timer);
        this.#calls.delete(id);
        finish(value);
      };
      this.#calls.set(id, { resolve: done(resolve), reject: done(reject) });
      this.#sendSystem("rpc", { jsonrpc: "2.0", method, id, params });
    });
  }

  #answered({ id, result, error }) {
    const call = this.#calls.get(id);
    if (error) call?.reject(new Error(error.message)); else call?.resolve(result);
  }

  // The end.

  async disconnect() {
    if (this.#isOver || this.#isLeaving) return;
    this.#isLeaving = true;
    const message = { type: "disconnect", reason: "NO-ERROR" };
    if (this.#channels.has("signaling")) await this.#sendSystem("signaling", message);
    else if (this.#socket) this.#write(this.#socket, message);
    const deadline = performance.now() + 3000;
    while (!this.#isOver && (this.#socket || this.#channels.size) && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    this.#end("You left", false);
  }

  /// Gives up at once, without a word to the server.
  abort() { this.#end("Cancelled", false); }

  #end(reason, isFailure = true) {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const call of [...this.#calls.values()]) call.reject(new Error("the connection ended"));
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    this.#pc?.close();
    this.#tell("state", { state: isFailure ? "failed" : "ended", reason });
  }

  #tell(type, detail) { this.dispatchEvent(new CustomEvent(type, { detail })); }
}
"""##
}
