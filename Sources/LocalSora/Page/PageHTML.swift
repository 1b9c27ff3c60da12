extension Page {
    /// The page at /.
    // swift-format-ignore
    static let html = ##"""
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<meta name="color-scheme" content="light dark">
<title>Local Sora</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/page.css">
<script type="module" src="/page.js"></script>
</head>
<body data-state="idle">
<a class="skip" href="#stage">Skip to the videos</a>
<header>
  <img src="/icon.svg" alt="" width="30" height="30">
  <h1>Local Sora</h1>
  <p id="status" role="status"><span class="dot" aria-hidden="true"></span><span id="status-text">Not connected</span></p>
  <div id="controls" role="toolbar" aria-label="My media" hidden>
    <button id="mute-audio" type="button" aria-pressed="false" aria-keyshortcuts="m" title="Key: m">Mute</button>
    <button id="mute-video" type="button" aria-pressed="false" aria-keyshortcuts="v" title="Key: v">Hide me</button>
    <button id="leave" type="button" class="danger">Leave</button>
  </div>
</header>
<main>
  <form id="join" aria-label="Join a channel" autocomplete="off">
    <h2>Join a channel</h2>
    <div class="field">
      <label for="channel">Channel</label>
      <input id="channel" name="channel" required maxlength="255" value="sora" spellcheck="false">
    </div>
    <fieldset class="choices">
      <legend>Role</legend>
      <label><input type="radio" name="role" value="sendrecv" checked><span>Both ways</span></label>
      <label><input type="radio" name="role" value="sendonly"><span>Send</span></label>
      <label><input type="radio" name="role" value="recvonly"><span>Watch</span></label>
    </fieldset>
    <fieldset class="choices" id="sources">
      <legend>Picture</legend>
      <label><input type="radio" name="source" value="camera" checked><span>Camera</span></label>
      <label><input type="radio" name="source" value="screen"><span>Screen</span></label>
      <label><input type="radio" name="source" value="pattern"><span>Pattern</span></label>
      <label><input type="radio" name="source" value="none"><span>None</span></label>
    </fieldset>
    <label class="switch" id="microphone-row">
      <input type="checkbox" name="microphone" checked><span>Microphone</span>
    </label>
    <div class="row">
      <div class="field">
        <label for="codec">Video codec</label>
        <select id="codec" name="codec">
          <option value="">Auto</option><option>VP8</option><option>VP9</option><option>AV1</option>
          <option>H264</option><option>H265</option>
        </select>
      </div>
      <div class="field">
        <label for="bitrate">Bit rate, kbit/s</label>
        <input id="bitrate" name="bitrate" type="number" min="1" max="50000" placeholder="auto" inputmode="numeric">
      </div>
    </div>
    <label class="switch"><input type="checkbox" name="simulcast"><span>Simulcast</span></label>
    <label class="switch"><input type="checkbox" name="spotlight"><span>Spotlight</span></label>
    <details>
      <summary>More</summary>
      <div class="field">
        <label for="rid">Simulcast layer to receive</label>
        <select id="rid" name="rid">
          <option value="">Auto</option><option>r0</option><option>r1</option><option>r2</option>
          <option>none</option>
        </select>
      </div>
      <div class="field">
        <label for="spotlight-number">Speakers in the spotlight</label>
        <input id="spotlight-number" name="spotlight_number" type="number" min="1" max="8" placeholder="auto">
      </div>
      <div class="field">
        <label for="dcs">DataChannel signaling</label>
        <select id="dcs" name="dcs">
          <option value="">Auto</option><option value="on">On, keep the WebSocket</option>
          <option value="only">On, drop the WebSocket</option><option value="off">Off</option>
        </select>
      </div>
      <div class="field">
        <label for="label">Message channel</label>
        <input id="label" name="label" value="#chat" pattern="#.*" title="Begins with #" spellcheck="false">
      </div>
      <div class="field">
        <label for="client">Client id</label>
        <input id="client" name="client" maxlength="255" placeholder="connection id" spellcheck="false">
      </div>
      <div class="field">
        <label for="metadata">Metadata (JSON)</label>
        <textarea id="metadata" name="metadata" rows="2" spellcheck="false" placeholder='{"access_token": "…"}'></textarea>
      </div>
      <div class="field">
        <label for="url">Signaling URL</label>
        <input id="url" name="url" spellcheck="false">
      </div>
    </details>
    <p id="problem" role="alert" hidden></p>
    <button id="join-button" class="primary">Join</button>
    <button id="cancel" type="button" hidden>Cancel</button>
    <p class="hint">Open this page in a second window to meet yourself.</p>
  </form>

  <section id="stage" aria-label="Videos" tabindex="-1">
    <ul id="people" aria-label="Members"></ul>
    <div id="videos"></div>
    <div id="empty">
      <img src="/icon.svg" alt="" width="64" height="64">
      <p id="empty-text">Join a channel to see who is there.</p>
    </div>
  </section>

  <section id="inspector" aria-label="What happens">
    <div role="tablist" aria-label="Views">
      <button role="tab" id="tab-chat" aria-controls="chat" aria-selected="true" type="button">Messages<b></b></button>
      <button role="tab" id="tab-signaling" aria-controls="signaling" tabindex="-1" aria-selected="false" type="button">Signaling</button>
      <button role="tab" id="tab-notify" aria-controls="notify" tabindex="-1" aria-selected="false" type="button">Notify</button>
      <button role="tab" id="tab-stats" aria-controls="stats" tabindex="-1" aria-selected="false" type="button">Statistics</button>
    </div>
    <div role="tabpanel" id="chat" aria-labelledby="tab-chat" tabindex="0">
      <ol id="messages" role="log" aria-label="Messages"></ol>
      <form id="compose" aria-label="Send a message">
        <input id="message" aria-label="Message" placeholder="Message to everybody" maxlength="4000" disabled>
        <button id="send" class="primary" disabled>Send</button>
      </form>
    </div>
    <div role="tabpanel" id="signaling" aria-labelledby="tab-signaling" tabindex="0" hidden>
      <p class="hint">Newest first. Open a line to see the whole message.</p><div class="log" id="signaling-log"></div>
    </div>
    <div role="tabpanel" id="notify" aria-labelledby="tab-notify" tabindex="0" hidden>
      <p class="hint">What the server tells about others, and pushes.</p><div class="log" id="notify-log"></div>
    </div>
    <div role="tabpanel" id="stats" aria-labelledby="tab-stats" tabindex="0" hidden>
      <dl id="summary"></dl>
      <div class="scroll"><table>
        <caption>Streams</caption>
        <thead><tr><th scope="col">Stream</th><th scope="col">Codec</th><th scope="col">kbit/s</th><th scope="col">Size</th>
        <th scope="col">fps</th><th scope="col">Lost</th></tr></thead>
        <tbody id="streams"></tbody>
      </table></div>
    </div>
  </section>
</main>
</body>
</html>
"""##
}
