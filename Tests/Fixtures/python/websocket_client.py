"""Client for the interop tests: talks to the echo server at the given URL and prints what it finds.

Usage: websocket_client.py URL [CA]

Prints one line per finding and ends with "done".
"""

import asyncio
import ssl
import sys

import websockets


async def main():
    context = None
    if len(sys.argv) > 2:
        context = ssl.create_default_context(cafile=sys.argv[2])
    # Offers permessage-deflate, as browsers do; the server must decline it.
    async with websockets.connect(sys.argv[1], ssl=context, max_size=None) as connection:
        print("extensions", len(connection.protocol.extensions))
        for message in ["", "žluťoučký 🐴 kůň", "x" * 70000, b"", bytes(range(256)) * 300]:
            await connection.send(message)
            print("echo", await connection.recv() == message)
        await connection.send(["frag", "", "mented ", "text"])
        print("fragments", await connection.recv())
        await (await connection.ping(b"payload"))
        print("pong")
        await connection.send("close 4490 TEST-REJECT")
        try:
            await connection.recv()
        except websockets.ConnectionClosed as closed:
            print("closed", closed.rcvd.code, closed.rcvd.reason)
    async with websockets.connect(sys.argv[1], ssl=context) as connection:
        await connection.close(1000, "TYPE-DISCONNECT")
        print("own close", connection.close_code)
    print("done")


asyncio.run(main())
