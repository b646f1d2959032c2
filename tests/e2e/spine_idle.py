#!/usr/bin/env python3
"""Peers that hold connections hold nobody up: spine_idle.py SOCKET URL COUNT

COUNT connections to the demo's own socket are idle after a request each, and as many say
nothing or stop in half a head; those that the demo cuts come again at once. Meanwhile 100
new requests through nginx are all answered, the slowest within 300 ms.
"""

import http.client
import socket
import struct
import sys
import threading
import time
import urllib.parse

SLOWEST_SECS = 0.3
BEGIN, END, PARAMS, STDIN = 1, 3, 4, 5


def record(kind, content):
    return struct.pack(">BBHHBx", 1, kind, 1, len(content), 0) + content


def head():
    begin = record(BEGIN, struct.pack(">HB5x", 1, 1))  # a responder, kept
    params = b"".join(
        struct.pack("BB", len(name), len(value)) + name + value
        for name, value in (
            (b"REQUEST_METHOD", b"GET"),
            (b"REQUEST_URI", b"/health"),
            (b"REMOTE_ADDR", b"192.0.2.1"),
        )
    )
    return begin + record(PARAMS, params) + record(PARAMS, b"")


def connect(path):
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(10)
    peer.connect(path)
    return peer


def idle_peer(path):
    """Sends one request, reads its answer to END_REQUEST, and stays."""
    peer = connect(path)
    peer.sendall(head() + record(STDIN, b""))
    stream = peer.makefile("rb")
    while True:
        _, kind, _, length, padding = struct.unpack(">BBHHBx", stream.read(8))
        stream.read(length + padding)
        if kind == END:
            return peer


class SilentPeers(threading.Thread):
    """Keeps that many connections that say nothing (odd ones) or half a head."""

    def __init__(self, path, count):
        super().__init__(daemon=True)
        self.path = path
        self.peers = [self.one(number) for number in range(count)]
        self.again = 0
        self.over = False

    def one(self, number):
        peer = connect(self.path)
        if number % 2 == 0:
            peer.sendall(head()[:30])
        peer.setblocking(False)
        return peer

    def run(self):
        while not self.over:
            for number, peer in enumerate(self.peers):
                try:
                    cut = peer.recv(4096) == b""
                except BlockingIOError:
                    cut = False
                except ConnectionError:
                    cut = True
                if cut:
                    peer.close()
                    self.peers[number] = self.one(number)
                    self.again += 1
            time.sleep(0.01)


def ask(url):
    """Status and seconds of one request on a connection of its own."""
    begin = time.monotonic()
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=10)
    connection.request("GET", "/whoami")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, time.monotonic() - begin


def main(path, url, count):
    idle = [idle_peer(path) for _ in range(count)]
    silent = SilentPeers(path, count)
    silent.start()
    answers = [ask(urllib.parse.urlsplit(url)) for _ in range(100)]
    silent.over = True
    silent.join()

    good = sum(status == 200 for status, _ in answers)
    slowest = max(secs for _, secs in answers)
    for peer in idle:
        peer.setblocking(False)
    kept = 0
    for peer in idle:
        try:
            peer.recv(1)
        except BlockingIOError:
            kept += 1
    print(
        f"{good} of 100 answered, the slowest in {slowest * 1000:.0f} ms; {kept} of {count} "
        f"idle connections still there, silent ones came again {silent.again} times"
    )
    return 0 if good == 100 and slowest <= SLOWEST_SECS and kept == count else 1


sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
