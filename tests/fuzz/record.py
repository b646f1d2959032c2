#!/usr/bin/env python3
"""Stands behind a web server and keeps what it sends: record.py SOCKET FOLDER PREFIX.

SOCKET is a path, or tcp:PORT. Each connection is read up to the end of a request's STDIN,
answered, and read on until the server closes it or is silent; its bytes go to
FOLDER/PREFIX-N. Runs until it is ended.
"""

import os
import socket
import struct
import sys

REPLY = b"Status: 200 OK\r\nContent-Type: text/plain\r\n\r\nhello"


def record(kind, content):
    return struct.pack(">BBHHBx", 1, kind, 1, len(content), 0) + content


ANSWER = record(6, REPLY) + record(6, b"") + record(3, bytes(8))


def requests(data):
    """How many requests have come whole: empty STDIN records."""
    at = count = 0
    while at + 8 <= len(data):
        kind, length, padding = data[at + 1], data[at + 4] << 8 | data[at + 5], data[at + 6]
        at += 8 + length + padding
        count += kind == 5 and length == 0 and at <= len(data)
    return count


def main():
    path, folder, prefix = sys.argv[1:4]
    tcp = path.startswith("tcp:")
    server = socket.socket(socket.AF_INET if tcp else socket.AF_UNIX)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", int(path[4:])) if tcp else path)
    if not tcp:
        os.chmod(path, 0o666)
    server.listen(16)
    number = 0
    while True:
        peer, _ = server.accept()
        peer.settimeout(1)
        data, answered = b"", 0
        try:
            while piece := peer.recv(65536):
                data += piece
                while answered < requests(data):
                    peer.sendall(ANSWER)
                    answered += 1
        except OSError:
            pass
        peer.close()
        if data:
            number += 1
            with open(f"{folder}/{prefix}-{number}", "wb") as file:
                file.write(data)


main()
