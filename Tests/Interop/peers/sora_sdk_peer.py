"""A Sora client on the Python SDK (libwebrtc), driven by JSON lines.

Commands arrive on standard input, events leave on standard output, one JSON object a line.
The tests start one process per client, so a crash of the library is seen as the end of its output.

Commands: connect {options}, send {label, base64 | size + seed}, rpc {message}, media {reset}, stats,
disconnect, exit.
"""

import base64
import hashlib
import json
import math
import os
import queue
import random
import sys
import threading
import time

import counted_video
import numpy
from sora_sdk import Sora, SoraAudioSink, SoraVideoSink

output_lock = threading.Lock()


def emit(event, **fields):
    with output_lock:
        sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
        sys.stdout.flush()


def payload_of(command):
    if "base64" in command:
        return base64.b64decode(command["base64"])
    return random.Random(command.get("seed", 1)).randbytes(command["size"])


class VideoFeed(threading.Thread):
    """Pushes a moving picture: a bright square whose place follows the frame number; the number itself is burnt in
    where a first one is given. A rough picture is grain that needs all the bits there are."""

    def __init__(self, source, width, height, fps, first=None, rough=False):
        super().__init__(daemon=True)
        self.grain = None
        if rough:
            grain = numpy.random.default_rng(1).integers(100, 140, (height + 64, width + 64, 1), dtype=numpy.uint8)
            self.grain = numpy.repeat(grain, 3, axis=2)
        self.source, self.width, self.height, self.fps, self.first = source, width, height, fps, first
        self.running = True

    def run(self):
        number = 0
        started = time.monotonic()
        base = numpy.zeros((self.height, self.width, 3), dtype=numpy.uint8)
        base[:, :, 1] = numpy.linspace(0, 200, self.width, dtype=numpy.uint8)[None, :]
        while self.running:
            frame = base.copy()
            size = self.height // 4
            x = (number * 8) % (self.width - size)
            y = (number * 4) % (self.height - size)
            frame[y : y + size, x : x + size] = (250, 250 - (number * 3) % 200, (number * 5) % 250)
            if self.grain is not None:
                x, y = number * 37 % 64, number * 23 % 64
                frame[:] = self.grain[y : y + self.height, x : x + self.width]
            if self.first is not None:
                counted_video.draw(frame, self.first + number)
            self.source.on_captured(frame)
            number += 1
            delay = started + number / self.fps - time.monotonic()
            if delay > 0:
                time.sleep(delay)


class AudioFeed(threading.Thread):
    """Pushes a 440 Hz tone in 10 ms pieces."""

    def __init__(self, source):
        super().__init__(daemon=True)
        self.source = source
        self.running = True

    def run(self):
        number = 0
        started = time.monotonic()
        while self.running:
            t = (numpy.arange(480) + number * 480) / 48000.0
            tone = (numpy.sin(2 * math.pi * 440 * t) * 8000).astype(numpy.int16)
            self.source.on_data(numpy.ascontiguousarray(numpy.stack([tone, tone], axis=1)))
            number += 1
            delay = started + number * 0.01 - time.monotonic()
            if delay > 0:
                time.sleep(delay)


class VideoWatch:
    def __init__(self, track):
        self.stream_id = track.stream_id
        self.frames = 0
        self.distinct = 0
        self.last = None
        self.size = (0, 0)
        self.times = []
        self.seen = counted_video.Seen()
        self.sink = SoraVideoSink(track)
        self.sink.on_frame = self.on_frame

    def on_frame(self, frame):
        data = frame.data()
        self.frames += 1
        self.size = (data.shape[1], data.shape[0])
        self.times.append(time.monotonic())
        self.seen.see(data)
        digest = hashlib.blake2b(numpy.ascontiguousarray(data[::16, ::16]).tobytes(), digest_size=8).digest()
        if digest != self.last:
            self.distinct += 1
            self.last = digest

    def report(self):
        gaps = [b - a for a, b in zip(self.times, self.times[1:])]
        return {
            "kind": "video",
            "stream_id": self.stream_id,
            "frames": self.frames,
            "distinct": self.distinct,
            "width": self.size[0],
            "height": self.size[1],
            "longest_gap": max(gaps) if gaps else 0,
            "seen": self.seen.report(),
        }


class AudioWatch(threading.Thread):
    def __init__(self, track):
        super().__init__(daemon=True)
        self.stream_id = track.stream_id
        self.sink = SoraAudioSink(track, 16000, 1)
        self.samples = 0
        self.loud = 0
        self.running = True
        self.start()

    def run(self):
        while self.running:
            success, data = self.sink.read(frames=160, timeout=0.02)
            if success and data is not None:
                self.samples += data.shape[0]
                if numpy.sqrt(numpy.mean(data.astype(numpy.float64) ** 2)) > 100:
                    self.loud += data.shape[0]

    def report(self):
        return {"kind": "audio", "stream_id": self.stream_id, "samples": self.samples, "loud": self.loud}


class Peer:
    def __init__(self):
        openh264 = os.environ.get("SORA_TEST_OPENH264")
        self.sora = Sora(openh264=openh264) if openh264 else Sora()
        self.connection = None
        self.feeds = []
        self.watches = []
        self.kept = []
        self.ended = threading.Event()
        self.is_leaving = False
        self.farewell = threading.Lock()

    def connect(self, command):
        options = dict(command["options"])
        video, audio = command.get("send_video"), command.get("send_audio")
        if video:
            source = self.sora.create_video_source()
            options["video_source"] = source
            self.feeds.append(VideoFeed(source, **video))
            self.kept.append(source)
        if audio:
            source = self.sora.create_audio_source(2, 48000)
            options["audio_source"] = source
            self.feeds.append(AudioFeed(source))
            self.kept.append(source)
        if "ca_cert" in options:
            options["ca_cert"] = options["ca_cert"].encode()
        connection = self.sora.create_connection(**options)
        connection.on_set_offer = lambda text: emit("offer", message=json.loads(text))
        connection.on_ws_close = lambda code, reason: emit("ws_close", code=code, reason=reason)
        connection.on_disconnect = self.on_disconnect
        connection.on_notify = lambda text: emit("notify", message=json.loads(text))
        connection.on_push = lambda text: emit("push", message=json.loads(text))
        connection.on_switched = lambda text: emit("switched", message=json.loads(text))
        connection.on_data_channel = lambda label: emit("data_channel", label=label)
        connection.on_message = self.on_message
        connection.on_rpc = lambda data: emit("rpc", text=bytes(data).decode())
        connection.on_track = self.on_track
        connection.on_signaling_message = lambda kind, direction, text: emit(
            "signaling", type=kind.name, direction=direction.name, text=text
        )
        self.connection = connection
        connection.connect()
        for feed in self.feeds:
            feed.start()
        emit("started")

    def on_disconnect(self, code, message):
        emit("disconnect", code=code.name, message=message)
        with self.farewell:
            self.ended.set()
            if self.is_leaving:
                # Told from here: what follows in the library, the end of its tracks, is known to crash now and then.
                emit("ended")

    def on_message(self, label, data):
        fields = {"label": label, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        if len(data) <= 4096:
            fields["base64"] = base64.b64encode(data).decode()
        emit("message", **fields)

    def on_track(self, track):
        self.kept.append(track)
        emit("track", kind=track.kind, id=track.id, stream_id=track.stream_id)
        self.watches.append(VideoWatch(track) if track.kind == "video" else AudioWatch(track))

    def run(self):
        for line in sys.stdin:
            if not line.strip():
                continue
            command = json.loads(line)
            do = command["do"]
            if do == "connect":
                self.connect(command)
            elif do == "send":
                data = payload_of(command)
                ok = self.connection.send_data_channel(command["label"], data)
                emit("sent", label=command["label"], size=len(data), sha256=hashlib.sha256(data).hexdigest(), ok=bool(ok))
            elif do == "rpc":
                ok = self.connection.send_data_channel("rpc", json.dumps(command["message"]).encode())
                emit("sent", label="rpc", ok=bool(ok))
            elif do == "media":
                emit("media", tracks=[watch.report() for watch in self.watches])
                for watch in self.watches if command.get("reset") else []:
                    if isinstance(watch, VideoWatch):
                        watch.seen.reset()
            elif do == "stats":
                emit("stats", reports=json.loads(self.connection.get_stats()))
            elif do == "disconnect":
                # Its threads must not be inside the library while that takes its tracks apart.
                threads = self.feeds + [watch for watch in self.watches if isinstance(watch, AudioWatch)]
                for thread in threads:
                    thread.running = False
                for thread in threads:
                    thread.join(2)
                with self.farewell:
                    self.is_leaving = True
                    has_ended = self.ended.is_set()
                    if has_ended:
                        emit("ended")
                if has_ended:
                    continue
                self.connection.disconnect()
                self.ended.wait(10)
            elif do == "exit":
                break
        sys.stdout.flush()
        # The library may crash while the interpreter takes its objects apart; nothing is left to do.
        os._exit(0)


if __name__ == "__main__":
    Peer().run()
