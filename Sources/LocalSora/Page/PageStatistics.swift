extension Page {
    /// The page's statistics: an ES module.
    // swift-format-ignore
    static let statistics = ##"""
import { $, element } from "/elements.js";

/// Shows what a connection's statistics say, in the tiles and in the panel. One for each connection.
export class Meter {
  #client;
  #tiles;
  #nameOf;
  #previous = new Map();
  #timer;

  /// `tiles`: by connection id, each with a stream and a place for figures.
  constructor(client, tiles, nameOf) {
    this.#client = client;
    this.#tiles = tiles;
    this.#nameOf = nameOf;
    this.#timer = setInterval(() => this.#measure(), 1000);
  }

  stop() {
    clearInterval(this.#timer);
    this.#timer = null;
  }

  async #measure() {
    const reports = await this.#client.statistics();
    if (!this.#timer) return;
    const now = performance.now();
    const rows = [];
    const next = new Map();
    const totals = { up: 0, down: 0 };
    const pictures = new Map();
    for (const report of reports.values()) {
      if (report.type !== "inbound-rtp" && report.type !== "outbound-rtp") continue;
      const isIn = report.type === "inbound-rtp";
      const bytes = isIn ? report.bytesReceived : report.bytesSent;
      const before = this.#previous.get(report.id);
      const rate = before && now > before.now ? Math.max(0, (bytes - before.bytes) * 8 / (now - before.now)) : 0;
      next.set(report.id, { bytes, now });
      totals[isIn ? "down" : "up"] += rate;
      const owner = isIn ? [...this.#tiles].find(([, entry]) => entry.stream.getTracks().some((track) => track.id === report.trackIdentifier))?.[0]
        : this.#client.connectionID;
      const codec = reports.get(report.codecId)?.mimeType?.split("/")[1] ?? "";
      const size = report.frameWidth ? `${report.frameWidth}×${report.frameHeight}` : "";
      rows.push([`${isIn ? "←" : "→"} ${report.kind} ${report.rid ?? ""} ${owner ? this.#nameOf(owner) : "?"}`, codec,
        rate.toFixed(0), size, report.framesPerSecond?.toFixed(0) ?? "", isIn ? report.packetsLost ?? 0 : ""]);
      if (report.kind === "video" && this.#tiles.has(owner)) {
        // Of simulcast layers the largest, and the rates of all.
        const figures = pictures.get(owner) ?? { width: 0, size: "", fps: 0, rate: 0 };
        figures.rate += rate;
        if ((report.frameWidth ?? 0) > figures.width) {
          Object.assign(figures, { width: report.frameWidth, size, fps: report.framesPerSecond ?? 0 });
        }
        pictures.set(owner, figures);
      }
    }
    for (const [owner, { size, fps, rate }] of pictures) {
      this.#tiles.get(owner).figures.textContent = [size, fps ? `${fps.toFixed(0)} fps` : "", `${rate.toFixed(0)} kbit/s`]
        .filter(Boolean).join(" · ");
    }
    this.#previous = next;
    this.#show(reports, rows, totals);
  }

  #show(reports, rows, totals) {
    const transport = [...reports.values()].find((report) => report.type === "transport");
    const pair = reports.get(transport?.selectedCandidatePairId);
    const localCandidate = reports.get(pair?.localCandidateId);
    const remoteCandidate = reports.get(pair?.remoteCandidateId);
    const facts = {
      "Connection": this.#client.connectionID, "Session": this.#client.offer?.session_id,
      "Sending": `${totals.up.toFixed(0)} kbit/s`, "Receiving": `${totals.down.toFixed(0)} kbit/s`,
      "Round trip": pair?.currentRoundTripTime === undefined ? "–" : `${(pair.currentRoundTripTime * 1000).toFixed(1)} ms`,
      "Path": localCandidate && remoteCandidate
        ? `${localCandidate.candidateType} ${localCandidate.address ?? ""} → ${remoteCandidate.address ?? ""}:${remoteCandidate.port}` : "–",
      "DTLS": transport ? `${transport.dtlsState} ${transport.srtpCipher ?? ""}` : "–",
    };
    $("summary").replaceChildren(...Object.entries(facts).flatMap(([name, value]) => [
      element("dt", { textContent: name }), element("dd", { textContent: value ?? "–" })]));
    $("streams").replaceChildren(...rows.map((cells) => element("tr", {}, ...cells.map((text) => element("td", { textContent: text })))));
  }
}
"""##
}
