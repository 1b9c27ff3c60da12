"""A Sora client page in headless Chromium, driven by JSON lines like sora_sdk_peer.py.

The page (browser_peer.html) follows the message patterns of the JavaScript SDK. It holds any number of peers:
commands and events carry the peer's name in `peer`. With --no-fake-ui nobody grants camera and microphone.
Commands: connect {options}, send {label, base64 | size + seed}, rpc {message}, media {reset}, stats, disconnect
of a peer; screenshot {path}, exit; evaluate {script}; and for any other page: goto {url},
viewport {width, height}, press {key}, scheme {dark | light}; page opens one more and takes it.
"""

import base64
import json
import pathlib
import random
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from playwright.sync_api import sync_playwright


def emit(event, **fields):
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def payload_of(command):
    if "base64" in command:
        return command["base64"]
    return base64.b64encode(random.Random(command.get("seed", 1)).randbytes(command["size"])).decode()


class Handler(SimpleHTTPRequestHandler):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, directory=str(pathlib.Path(__file__).parent), **kwargs)

    def log_message(self, *_):
        pass


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    commands = []
    condition = threading.Condition()

    def read():
        for line in sys.stdin:
            if line.strip():
                with condition:
                    commands.append(json.loads(line))
        with condition:
            commands.append({"do": "exit"})

    threading.Thread(target=read, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=[
                "--no-sandbox",
                *([] if "--no-fake-ui" in sys.argv else ["--use-fake-ui-for-media-stream"]),
                # Pages of a test's server may ask for cameras as those of localhost may.
                *(word for word in sys.argv if word.startswith("--unsafely-treat-insecure-origin-as-secure=")),
                "--use-fake-device-for-media-stream=fps=30",
                "--autoplay-policy=no-user-gesture-required",
                "--disable-features=WebRtcHideLocalIpsWithMdns",
            ],
        )
        context = browser.new_context(
            permissions=[] if "--no-fake-ui" in sys.argv else ["camera", "microphone"])
        page = context.new_page()
        page.expose_function("report", lambda text: emit(**json.loads(text)))
        page.on("pageerror", lambda error: emit("page_error", message=str(error)))
        page.goto(f"http://127.0.0.1:{server.server_port}/browser_peer.html")
        emit("ready")
        while True:
            with condition:
                command = commands.pop(0) if commands else None
            if command is None:
                page.wait_for_timeout(20)  # lets page events through
                continue
            do = command["do"]
            if do == "exit":
                break
            if do == "screenshot":
                page.screenshot(path=command["path"])
                emit("screenshot", path=command["path"])
            elif do == "evaluate":
                emit("evaluated", value=page.evaluate(command["script"]))
            elif do == "send":
                command["base64"] = payload_of(command)
                page.evaluate("(command) => run(command)", command)
            elif do == "viewport":
                page.set_viewport_size({"width": command["width"], "height": command["height"]})
                emit("resized")
            elif do == "press":
                page.keyboard.press(command["key"])
                emit("pressed")
            elif do == "scheme":
                page.emulate_media(color_scheme=command["scheme"])
                emit("shown")
            elif do == "page":
                page = browser.new_context().new_page()
                page.on("pageerror", lambda error: emit("page_error", message=str(error)))
                emit("opened")
            elif do == "goto":
                page.goto(command["url"])
                emit("loaded")
            else:
                page.evaluate("(command) => run(command)", command)
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()
