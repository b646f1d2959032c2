#!/usr/bin/env python3
"""Asks one of the examples what it is asked in every build, and prints the answers.

    examples_ask.py EXAMPLE SOCKET PORT BUILD

A line for each case: its name, a tab, the status, the fields, and the length and digest
of the body. Cases whose names begin with "raw" speak FastCGI to SOCKET themselves; the
others go through the nginx at PORT, which takes the socket from the field X-Build. What
may differ between builds is left out here, or is a case that begins with "differs":

  - Date;
  - in a raw answer, the reason behind the number in Status, and the order of the fields:
    Weir reads the program's head and writes its own;
  - the exit status of a request, which no web server looks at: Weir's is always 0;
  - a body that is shorter than declared: Weir refuses it before it reaches the program;
  - Content-Length and Transfer-Encoding of an answer whose length the program doesn't
    declare: Weir has the whole of a short answer and says how long it is.

Exit status 1 where a case has another status than it must have in any build.
"""

import hashlib
import socket
import struct
import sys
import threading
import time

TIMEOUT_SECS = 20
BEGIN, END, PARAMS, STDIN, STDOUT, STDERR = 1, 3, 4, 5, 6, 7


def noise(length):
    """Bytes of every value, the same in each run."""
    return bytes((i * 7 + i // 251) % 256 for i in range(length))


def text(length):
    """Lines of many lengths, the last one without its end."""
    lines = "".join("x" * (i % 200) + f" {i}\n" for i in range(length // 50))
    return lines.encode()[: length - 1] + b"."


# ---- answers ----------------------------------------------------------------------


def describe(status, fields, body, declared):
    """What must be the same in every build."""
    kept = []
    for name, value in fields:
        framing = name in ("content-length", "transfer-encoding")
        if name not in ("date", "status") and (declared or not framing):
            kept.append(f"{name}: {value}")
    digest = hashlib.sha256(body).hexdigest()[:16]
    return status, f"{status} {{{'; '.join(sorted(kept))}}} {len(body)} bytes {digest}"


def read_fields(lines):
    pairs = (line.partition(":") for line in lines if line)
    return [(name.strip().lower(), value.strip()) for name, _, value in pairs]


def unchunk(data):
    body = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            return body
        body, data = body + data[:length], data[length + 2 :]


def read_all(peer):
    data = b""
    while block := peer.recv(65536):
        data += block
    return data


# ---- through nginx ----------------------------------------------------------------


class Http:
    def __init__(self, port, build):
        self.port, self.build = port, build

    def connect(self, method, target, body=b"", chunked=False):
        """A connection that has sent the head."""
        peer = socket.create_connection(("127.0.0.1", self.port), TIMEOUT_SECS)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = f"{method} {target} HTTP/1.1\r\nHost: example\r\nUser-Agent: ask\r\n"
        head += f"Connection: close\r\nX-Build: {self.build}\r\n"
        if chunked:
            head += "Transfer-Encoding: chunked\r\n"
        elif method == "POST":
            head += f"Content-Length: {len(body)}\r\n"
        peer.sendall(head.encode() + b"\r\n")
        return peer

    def ask(self, method, target, body=b"", piece=0, chunked=False, declared=False):
        with self.connect(method, target, body, chunked) as peer:
            if chunked:
                body = b"".join(
                    b"%x\r\n%s\r\n" % (len(part), part)
                    for part in (body[at : at + 1000] for at in range(0, len(body), 1000))
                )
                body += b"0\r\n\r\n"
            for at in range(0, len(body), piece or len(body) or 1):
                peer.sendall(body[at : at + (piece or len(body))])
                time.sleep(0.0002 if piece else 0)
            head, _, rest = read_all(peer).partition(b"\r\n\r\n")
        line, *lines = head.decode().split("\r\n")
        fields = read_fields(lines)
        if ("transfer-encoding", "chunked") in fields:
            rest = unchunk(rest)
        return describe(int(line.split()[1]), fields, rest, declared)

    def leave(self, target):
        """Goes away in the middle of an answer."""
        with self.connect("GET", target) as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            seen = len(peer.recv(50000))
        return 200 if seen else 0, "left"


# ---- FastCGI itself ---------------------------------------------------------------


def record(kind, content):
    padding = -len(content) % 8
    head = struct.pack("!BBHHBB", 1, kind, 1, len(content), padding, 0)
    return head + content + bytes(padding)


def pair(name, value):
    name, value = name.encode(), value.encode()
    lengths = b"".join(
        bytes([n]) if n < 128 else struct.pack("!I", n | 1 << 31)
        for n in (len(name), len(value))
    )
    return lengths + name + value


class Raw:
    def __init__(self, path):
        self.path = path
        self.exit_status = None  # of the last answer

    def request(self, method, target, body, record_bytes, missing=0):
        path, _, query = target.partition("?")
        params = {
            "REQUEST_METHOD": method,
            "REQUEST_URI": target,
            "DOCUMENT_URI": path,
            "SCRIPT_NAME": path,
            "QUERY_STRING": query,
            "CONTENT_LENGTH": str(len(body) + missing) if method == "POST" else "",
            "REMOTE_ADDR": "192.0.2.1",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_USER_AGENT": "ask",
        }
        data = record(BEGIN, struct.pack("!HB5x", 1, 0))
        data += record(PARAMS, b"".join(pair(*item) for item in params.items()))
        data += record(PARAMS, b"")
        for at in range(0, len(body), record_bytes):
            data += record(STDIN, body[at : at + record_bytes])
        return data + record(STDIN, b"")

    def answer(self, data):
        """What was written to each stream, up to the end of the request."""
        streams = {STDOUT: b"", STDERR: b""}
        while len(data) >= 8:
            _, kind, _, length, padding, _ = struct.unpack("!BBHHBB", data[:8])
            content, data = data[8 : 8 + length], data[8 + length + padding :]
            if kind == END:
                self.exit_status = struct.unpack("!I4x", content)[0]
                return streams[STDOUT]
            streams[kind] += content
        return b""

    def ask(
        self,
        method,
        target,
        body=b"",
        piece=0,
        record_bytes=32768,
        missing=0,
        declared=False,
    ):
        data = self.request(method, target, body, record_bytes, missing)
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(TIMEOUT_SECS)
            peer.connect(self.path)
            for at in range(0, len(data), piece or len(data)):
                peer.sendall(data[at : at + (piece or len(data))])
                time.sleep(0.0002 if piece else 0)
            answer = self.answer(read_all(peer)).replace(b"\r\n", b"\n", 10)
        head, _, rest = answer.partition(b"\n\n")
        fields = read_fields(head.decode().split("\n"))
        said = dict(fields)
        status = 302 if "location" in said else 200 if said else 0
        if "status" in said:
            status = int(said["status"].split()[0])
        return describe(status, fields, rest, declared)

    def leave(self, target, body):
        """Goes away in the middle of its own body."""
        data = self.request("POST", target, body, 32768)
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(self.path)
            peer.sendall(data[: len(data) // 2])
        return 200, "left"


# ---- the cases --------------------------------------------------------------------


def hello(http, raw):
    yield "GET", 200, http.ask("GET", "/?you")
    yield "no query", 200, http.ask("GET", "/")
    yield "HEAD", 200, http.ask("HEAD", "/?you")
    yield "a redirect", 302, http.ask("GET", "/moved")
    yield "not found", 404, http.ask("GET", "/nowhere")
    yield "a body that is not read", 200, http.ask("POST", "/?you", noise(2000))
    yield "raw", 200, raw.ask("GET", "/?you")
    yield "raw, 7 bytes at a time", 200, raw.ask("GET", "/?you", piece=7)
    yield "raw, a redirect", 302, raw.ask("GET", "/moved")


def body(http, raw):
    sent, lines = noise(100000), text(100000)
    yield "no body", 200, http.ask("POST", "/", declared=True)
    yield "whole", 200, http.ask("POST", "/", sent, declared=True)
    yield "by character", 200, http.ask("POST", "/?char", sent, declared=True)
    yield "by line", 200, http.ask("POST", "/?line", lines, declared=True)
    yield "1 MB", 200, http.ask("POST", "/", noise(1000000), declared=True)
    yield "over 4 MiB", 413, http.ask("POST", "/", noise(4200000))
    yield "chunked", 200, http.ask("POST", "/", sent, chunked=True, declared=True)
    few = sent[:2003]
    for how in ("", "?char"):
        yield "7 bytes at a time " + how, 200, http.ask(
            "POST", "/" + how, few, piece=7, declared=True
        )
        yield "raw, 7 bytes at a time " + how, 200, raw.ask(
            "POST", "/" + how, few, piece=7, declared=True
        )
        yield "raw, 7 bytes a record " + how, 200, raw.ask(
            "POST", "/" + how, few, record_bytes=7, declared=True
        )
    yield "raw, by line, 7 bytes at a time", 200, raw.ask(
        "POST", "/?line", lines[:5000], piece=7, declared=True
    )
    yield "HEAD", 200, http.ask("HEAD", "/", declared=True)
    yield "an error and an exit status", 400, http.ask("POST", "/?no-such", few)
    yield "raw, an error and an exit status", 400, raw.ask("POST", "/?no-such", few)
    yield "differs, exit status", 400, (400, raw.exit_status)
    yield "differs, a short body", 400, raw.ask("POST", "/", few, missing=1)
    yield "raw, gone in its body", 200, raw.leave("/", sent)
    yield "after it", 200, http.ask("POST", "/", few, declared=True)


def at_once(http, sizes):
    """The answers to requests that are sent side by side, in order."""
    answers = {}

    def one(size):
        answers[size] = http.ask("GET", f"/?{size}", declared=True)

    threads = [threading.Thread(target=one, args=(size,)) for size in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answers[size] for size in sizes]


def threads(http, raw):
    yield "GET", 200, http.ask("GET", "/a/b?c=d")
    yield "1 MB", 200, http.ask("GET", "/?1000000", declared=True)
    yield "HEAD", 200, http.ask("HEAD", "/a")
    yield "HEAD of 1 MB", 200, http.ask("HEAD", "/?1000000", declared=True)
    for number, answer in enumerate(at_once(http, range(1, 800000, 100000))):
        yield f"8 at once: {number}", 200, answer
    yield "raw, 7 bytes at a time", 200, raw.ask("GET", "/?3000", piece=7, declared=True)
    yield "gone", 200, http.leave("/?20000000")
    yield "after it", 200, http.ask("GET", "/?1000", declared=True)


def stdio(http, raw):
    sent = text(20000)
    yield "GET", 200, http.ask("GET", "/a/b?c=d")
    yield "HEAD", 200, http.ask("HEAD", "/a/b")
    yield "POST", 200, http.ask("POST", "/a", sent)
    yield "7 bytes at a time", 200, http.ask("POST", "/a", sent[:2003], piece=7)
    yield "raw, 7 bytes at a time", 200, raw.ask("POST", "/a", sent[:2003], piece=7)
    yield "1 MB", 200, http.ask("GET", "/?1000000")
    yield "HEAD of 1 MB", 200, http.ask("HEAD", "/?1000000")
    yield "gone", 200, http.leave("/?20000000")
    yield "after it", 200, http.ask("GET", "/b")


def main():
    example, path, port, build = sys.argv[1:]
    cases = {"hello": hello, "body": body, "threads": threads, "stdio": stdio}[example]
    wrong = 0
    for name, wanted, (status, answer) in cases(Http(int(port), build), Raw(path)):
        print(f"{name}\t{answer}")
        wrong += status != wanted
    sys.exit(1 if wrong else 0)


main()
