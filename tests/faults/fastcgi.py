"""A raw FastCGI client: plays any bytes, at any pace, and reads what comes back.

It checks nothing by itself and forgives nothing: what is sent is what the caller built.
Section numbers are those of the FastCGI specification.
"""

import select
import socket
import struct
import time

BEGIN, ABORT, END, PARAMS, STDIN, STDOUT, STDERR, DATA = range(1, 9)
GET_VALUES, GET_VALUES_RESULT, UNKNOWN_TYPE = 9, 10, 11
RESPONDER, AUTHORIZER, FILTER = 1, 2, 3
COMPLETE, CANT_MPX, OVERLOADED, UNKNOWN_ROLE = range(4)


# ---- building ------------------------------------------------------------------------


def record(kind, content=b"", request=1, padding=0, version=1, length=None):
    """One record (3.3); length is what the header says where it isn't the content's."""
    head = struct.pack(
        ">BBHHBB",
        version,
        kind,
        request,
        len(content) if length is None else length,
        padding,
        0,
    )
    return head + content + bytes(padding)


def begin(keep=True, role=RESPONDER, request=1):
    return record(BEGIN, struct.pack(">HB5x", role, 1 if keep else 0), request)


def size(number):
    """A length of a name or value (3.4)."""
    return struct.pack(">B", number) if number < 128 else struct.pack(">I", number | 1 << 31)


def pairs(items):
    return b"".join(size(len(n)) + size(len(v)) + n + v for n, v in items)


def stream(kind, content, request=1, part=65528):
    """A whole stream with its end."""
    whole = b"".join(
        record(kind, content[i : i + part], request) for i in range(0, len(content), part)
    )
    return whole + record(kind, b"", request)


def params(uri=b"/fast", method=b"GET", more=(), address=b"192.0.2.1"):
    return [
        (b"REQUEST_METHOD", method),
        (b"REQUEST_URI", uri),
        (b"REMOTE_ADDR", address),
    ] + list(more)


def request(uri=b"/fast", method=b"GET", body=b"", more=(), keep=True, request=1, role=RESPONDER):
    """A whole request as a web server sends it."""
    items = params(uri, method, more)
    if body:
        items.append((b"CONTENT_LENGTH", b"%d" % len(body)))
    return (
        begin(keep, role, request)
        + stream(PARAMS, pairs(items), request)
        + stream(STDIN, body, request)
    )


# ---- the client ----------------------------------------------------------------------


class Cut(Exception):
    """The app has closed the connection."""


class Late(Exception):
    """Nothing came in the time that was given."""


class Answer:
    """What came for one request."""

    def __init__(self):
        self.stdout = b""
        self.stdout_ended = False
        self.protocol_status = None  # of END_REQUEST
        self.app_status = None

    @property
    def status(self):
        """Of HTTP; 0 where there was none."""
        head = self.stdout.split(b"\r\n\r\n", 1)[0]
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"status:"):
                return int(line.split()[1])
        return 200 if head else 0

    @property
    def body(self):
        return self.stdout.split(b"\r\n\r\n", 1)[-1]


class Peer:
    """A connection; address is a path, or (host, port)."""

    def __init__(self, address, seconds=10, receive_bytes=None):
        family = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(seconds)
        self.socket.connect(address)
        self.since = time.perf_counter()
        self.seconds = seconds
        self.unread = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def reset(self):
        """Closes so that the app meets a reset (TCP)."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def send(self, data):
        """Raises Cut where the app has closed."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            raise Cut from None

    def send_what_goes(self, data):
        """As much as is taken; returns whether all was."""
        try:
            self.socket.sendall(data)
            return True
        except (OSError, socket.timeout):
            return False

    def drip(self, data, pause_s):
        """A byte and a pause, until all is sent or the app closes; returns how many went."""
        for i in range(len(data)):
            try:
                self.socket.sendall(data[i : i + 1])
            except (BrokenPipeError, ConnectionResetError):
                return i
            if self.is_cut_within(pause_s):
                return i + 1
        return len(data)

    def is_cut_within(self, seconds):
        """Waits for the end and takes nothing else; what comes stays to be read."""
        end = time.monotonic() + seconds
        while True:
            left = max(0, end - time.monotonic())
            if not select.select([self.socket], [], [], left)[0]:
                return False
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                return True
            if not data:
                return True
            self.unread += data

    def more(self):
        try:
            data = self.socket.recv(1 << 18)
        except (ConnectionResetError, BrokenPipeError):
            raise Cut from None
        except (socket.timeout, BlockingIOError):
            raise Late from None
        if not data:
            raise Cut
        self.unread += data

    def record(self):
        """The next record: kind, request, content."""
        while len(self.unread) < 8:
            self.more()
        version, kind, number, length, padding = struct.unpack(">BBHHBx", self.unread[:8])
        if version != 1:
            raise ValueError(f"a record of version {version}")
        whole = 8 + length + padding
        while len(self.unread) < whole:
            self.more()
        content = self.unread[8 : 8 + length]
        self.unread = self.unread[whole:]
        return kind, number, content

    def answer(self, request=1):
        """Reads to the END_REQUEST of this request; anything out of order raises."""
        answer = Answer()
        parts = []
        while True:
            kind, number, content = self.record()
            if number != request:
                raise ValueError(f"a record of request {number}")
            if kind == STDOUT and answer.stdout_ended:
                raise ValueError("output after its end")
            if kind == STDOUT:
                parts.append(content)
                answer.stdout_ended = not content
            elif kind == END:
                answer.stdout = b"".join(parts)
                answer.app_status, answer.protocol_status = struct.unpack(">IB3x", content)
                return answer
            else:
                raise ValueError(f"a record of type {kind}")

    def ask(self, *arguments, **named):
        self.send(request(*arguments, **named))
        return self.answer(named.get("request", 1))


def ask(address, *arguments, **named):
    """A request on a connection of its own, which is closed behind it."""
    with Peer(address) as peer:
        return peer.ask(*arguments, keep=False, **named)


def until_cut(peers, seconds, drips=None, pause_s=0.1):
    """Waits until each peer's connection is closed by the app and returns after how many
    milliseconds since `peer.since` (None: not within the seconds), with what had been said
    to it in peer.unread. With drips, bytes for each peer, one of them leaves each pause."""
    cut_ms = [None] * len(peers)
    open_ones = dict(enumerate(peers))
    end = time.perf_counter() + seconds
    next_drip, sent = time.perf_counter(), 0
    while open_ones and time.perf_counter() < end:
        if drips and time.perf_counter() >= next_drip:
            for i, peer in open_ones.items():
                if sent < len(drips[i]):
                    peer.send_what_goes(drips[i][sent : sent + 1])
            sent += 1
            next_drip += pause_s
        wait_s = min(0.01 if drips else 0.1, max(0, end - time.perf_counter()))
        sockets = {peer.socket: i for i, peer in open_ones.items()}
        for ready in select.select(list(sockets), [], [], wait_s)[0]:
            i = sockets[ready]
            now = time.perf_counter()
            try:
                data = ready.recv(65536)
            except ConnectionResetError:
                data = b""
            if data:
                peers[i].unread += data
            else:
                cut_ms[i] = (now - peers[i].since) * 1000
                del open_ones[i]
    return cut_ms
