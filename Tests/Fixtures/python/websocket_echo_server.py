"""Echo server for the interop tests: prints its port, then serves until its input ends.

Usage: websocket_echo_server.py [CERTIFICATE KEY]

Text "close CODE REASON" is answered with that Close frame, "fragments" with a fragmented message, "ping"
with a ping whose answer is reported as text; everything else comes back as it is.
"""

import asyncio
import ssl
import sys

import websockets


async def handle(connection):
    async for message in connection:
        if isinstance(message, str) and message.startswith("close "):
            _, code, reason = message.split(" ", 2)
            await connection.close(int(code), reason)
            return
        elif message == "fragments":
            await connection.send(["žlu", "ťoučký ", "", "kůň"])
        elif message == "ping":
            await (await connection.ping(b"hello"))
            await connection.send("ponged")
        else:
            await connection.send(message)


async def main():
    context = None
    if len(sys.argv) > 2:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(sys.argv[1], sys.argv[2])
    async with websockets.serve(handle, "127.0.0.1", 0, ssl=context, max_size=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
