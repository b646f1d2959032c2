#!/usr/bin/env python3
"""Some 400 malformed or out-of-place records: each closes, ends or is passed over, and
nothing behind it is taken for a request."""

import socket
import sys

from fastcgi import (
    ABORT,
    BEGIN,
    CANT_MPX,
    COMPLETE,
    DATA,
    END,
    GET_VALUES,
    GET_VALUES_RESULT,
    PARAMS,
    STDERR,
    STDIN,
    STDOUT,
    UNKNOWN_ROLE,
    UNKNOWN_TYPE,
    Cut,
    Late,
    Peer,
    begin,
    pairs,
    params,
    record,
    request,
    size,
    stream,
)
from faults import App, runs, same, tell, within

BODY = b"0123456789"
HEAD = pairs(params(b"/length", b"POST", [(b"CONTENT_LENGTH", b"10")]))
SMUGGLED = request(b"/fast", keep=True, request=1)

# Where a connection stands when the fault comes: what was sent, what completes it, and
# what the completed request is answered.
STATES = {
    "new": (b"", request(b"/fast"), b"fast\n"),
    "head": (
        begin() + record(PARAMS, HEAD[:21]),
        record(PARAMS, HEAD[21:]) + record(PARAMS) + stream(STDIN, BODY),
        b"10\n",
    ),
    "body": (
        begin() + stream(PARAMS, HEAD) + record(STDIN, BODY[:5]),
        record(STDIN, BODY[5:]) + record(STDIN),
        b"10\n",
    ),
    "kept": (request(b"/fast"), request(b"/fast"), b"fast\n"),
}

CLOSED, GOES_ON, HALF = "closed", "goes on", "closed at the half-close"


class Case:
    """expected: CLOSED at once; GOES_ON, after the records in `replies`; HALF: closed with
    nothing said once the client has shut its side; a number: a status, at most."""

    def __init__(self, label, state, data, expected, replies=(), rest=None):
        self.label, self.state, self.data = f"{state}: {label}", state, data
        self.expected, self.replies, self.rest = expected, list(replies), rest


def wrong_versions():
    for state in STATES:
        for version in (0, 2, 3, 127, 128, 255):
            for kind in (BEGIN, ABORT, PARAMS, STDIN, GET_VALUES):
                data = record(kind, b"\0\1\1\0\0\0\0\0", version=version)
                yield Case(f"version {version}, type {kind}", state, data, CLOSED)


def wrong_ids():
    for state in STATES:
        for kind in range(BEGIN, DATA + 1):
            content = bytes(8) if kind in (BEGIN, END) else b""
            yield Case(f"id 0 on type {kind}", state, record(kind, content, 0), CLOSED)
        for kind in (GET_VALUES, GET_VALUES_RESULT, UNKNOWN_TYPE):
            yield Case(f"id 1 on type {kind}", state, record(kind, bytes(8), 1), CLOSED)
        for kind in (ABORT, PARAMS, STDIN, STDOUT, STDERR, DATA):
            content = b"" if kind == ABORT else SMUGGLED
            yield Case(f"foreign id on type {kind}", state, record(kind, content, 7), GOES_ON)
        foreign = record(STDIN, SMUGGLED * 20, 65535, padding=255)
        yield Case("foreign id 65535, a body of records", state, foreign, GOES_ON)


def unknown_types():
    for state in STATES:
        for kind in (12, 13, 50, 127, 128, 255):
            told = (UNKNOWN_TYPE, 0, bytes([kind]) + bytes(7))
            for content in (b"", SMUGGLED):
                data = record(kind, content, 0)
                label = f"management type {kind} with {len(content)} bytes"
                yield Case(label, state, data, GOES_ON, [told])
        for kind in (12, 200):
            for number in (1, 7):
                data = record(kind, SMUGGLED, number)
                yield Case(f"type {kind}, id {number}", state, data, GOES_ON)
        for kind in (STDOUT, STDERR, DATA):
            yield Case(f"type {kind} from a client", state, record(kind, SMUGGLED), GOES_ON)
        yield Case("END_REQUEST from a client", state, record(END, bytes(8)), GOES_ON)
        yield Case("GET_VALUES_RESULT", state, record(GET_VALUES_RESULT, b"x" * 9, 0), GOES_ON)


def largest():
    filler = (SMUGGLED * 1000)[:65535]
    for state in STATES:
        for kind, number in ((STDIN, 9), (PARAMS, 9), (DATA, 1), (GET_VALUES_RESULT, 0)):
            data = record(kind, filler, number, padding=255)
            yield Case(f"65,535 + 255 of type {kind}", state, data, GOES_ON)
        data = record(77, filler, 0, padding=255)
        told = (UNKNOWN_TYPE, 0, b"\x4d" + bytes(7))
        yield Case("65,535 + 255 of type 77", state, data, GOES_ON, [told])


def begins_and_aborts():
    for state in STATES:
        for length in (0, 1, 7, 9, 16, 65535):
            data = record(BEGIN, bytes([0, 1, 1]) + bytes(65532), length=length)
            yield Case(f"BEGIN of {length} bytes", state, data, CLOSED)
        for length in (0, 7, 9):
            yield Case(f"END of {length} bytes", state, record(END, bytes(length)), CLOSED)
        for length in (1, 8):
            yield Case(f"ABORT of {length} bytes", state, record(ABORT, bytes(length)), CLOSED)
    for state in ("head", "body"):
        yield Case("BEGIN twice", state, begin(), CLOSED)
        yield Case("BEGIN twice, then a request", state, SMUGGLED, CLOSED)
        told = (END, 2, bytes(4) + bytes([CANT_MPX, 0, 0, 0]))
        yield Case("BEGIN of another", state, begin(request=2), GOES_ON, [told])
        told = (END, 1, bytes(4) + bytes([COMPLETE, 0, 0, 0]))
        rest = (request(b"/fast"), b"fast\n")
        yield Case("ABORT", state, record(ABORT), GOES_ON, [told], rest)
    for state in ("new", "kept"):
        for role in (0, 3, 9, 255, 65535):
            told = (END, 1, bytes(4) + bytes([UNKNOWN_ROLE, 0, 0, 0]))
            yield Case(f"role {role}", state, begin(role=role), GOES_ON, [told])
            yield Case(f"role {role}, not kept", state, begin(False, role), CLOSED, [told])
        yield Case("ABORT of nothing", state, record(ABORT), GOES_ON)


def out_of_order():
    for state in ("new", "kept"):
        yield Case("PARAMS without BEGIN", state, record(PARAMS, HEAD), GOES_ON)
        yield Case("STDIN without BEGIN", state, stream(STDIN, SMUGGLED), GOES_ON)
    for content in (b"", b"x", SMUGGLED):
        text = f"of {len(content)} bytes"
        yield Case(f"STDIN {text} before the end of PARAMS", "head", record(STDIN, content), CLOSED)
        yield Case(f"PARAMS {text} after STDIN", "body", record(PARAMS, content), CLOSED)


def cut_short():
    whole = {
        "BEGIN": begin(),
        "STDIN": record(STDIN, b"x" * 3, 9, padding=5),
        "GET_VALUES": record(GET_VALUES, pairs([(b"FCGI_UNHEARD", b"")]), 0, padding=7),
    }
    for state in STATES:
        yield Case("nothing", state, b"", HALF)
        for length in range(1, 8):
            yield Case(f"{length} bytes of a header", state, whole["BEGIN"][:length], HALF)
        for length in (8, 10, 15):
            yield Case(f"{length} bytes of BEGIN", state, whole["BEGIN"][:length], HALF)
        for length in (8, 10, 11, 13):
            yield Case(f"{length} bytes of STDIN", state, whole["STDIN"][:length], HALF)
        yield Case("65,535 declared, 2 come", state, record(STDIN, b"xx", 9, length=65535), HALF)
    yield Case("PARAMS without an end", "head", record(PARAMS, HEAD[21:]), HALF)
    yield Case("STDIN without an end", "body", record(STDIN, BODY[5:]), HALF)


def bad_pairs():
    """A request with these parameters is answered 400 or 431 and runs nothing."""
    name, value = b"REQUEST_METHOD", b"GET"
    contents = {
        "no name": pairs([(b"", b"x")]),
        "no name, no value": pairs([(b"", b"")]),
        "a name with =": pairs([(b"REMOTE_ADDR=6.6.6.6", b"")]),
        "a name with NUL": pairs([(b"A\0B", b"x")]),
        "a value with NUL": pairs([(b"A", b"x\0y")]),
        "cut in a value": pairs([(b"A", b"12345")])[:-1],
        "cut in a name": pairs([(b"ABCDE", b"")])[:-1],
        "cut behind the lengths": size(3) + size(3),
        "cut in a long length": b"\x80\0",
        "one length alone": b"\x05",
        "a name of 2 GiB": b"\xff\xff\xff\xff\x01A",
        "a value of 2 GiB": b"\x01\xff\xff\xff\xffA",
        "both of 2 GiB": b"\xff" * 8 + b"AA",
        "lengths that add up to 0 in 32 bits": b"\xff\xff\xff\xff\x80\0\0\1" + b"A" * 20,
        "a second REQUEST_METHOD": pairs([(name, value), (name, b"POST")]),
    }
    for label, content in contents.items():
        head = pairs(params(b"/fast")) + content
        data = begin() + stream(PARAMS, head) + record(STDIN)
        yield Case(f"parameters: {label}", "new", data, 431)
        yield Case(f"parameters: {label}", "kept", data, 431)


def cases():
    for group in (
        wrong_versions,
        wrong_ids,
        unknown_types,
        largest,
        begins_and_aborts,
        out_of_order,
        cut_short,
        bad_pairs,
    ):
        yield from group()


def reach(peer, state):
    """Brings the connection there; returns how many answers that took."""
    peer.send(STATES[state][0])
    if state != "kept":
        return 0
    if peer.answer().body != b"fast\n":
        raise ValueError("no answer to begin with")
    return 1


def silence(peer):
    """Reads to the end of the connection; what came before it is a fault."""
    kind, number, _ = peer.record()
    raise ValueError(f"a record of type {kind}, id {number}, in place of the end")


def play(app, case):
    """One case on a connection of its own: a stopwatch where the bound counts, and how
    many requests the app has answered."""
    with Peer(app.path, seconds=3) as peer:
        answers = reach(peer, case.state)
        with app.stopwatch() as watch:
            if case.data:
                peer.send_what_goes(case.data)
            for expected in case.replies:
                seen = peer.record()
                if seen != expected:
                    raise ValueError(f"{seen} in place of {expected}")
            if case.expected == HALF:
                peer.socket.shutdown(socket.SHUT_WR)
            if case.expected in (CLOSED, HALF):
                try:
                    silence(peer)
                except Cut:
                    pass
        if case.expected == GOES_ON:
            rest, body = case.rest or STATES[case.state][1:]
            peer.send(rest)
            if peer.answer().body != body:
                raise ValueError("another answer afterwards")
            answers += 1
        elif isinstance(case.expected, int):
            status = peer.answer().status
            answers += 1
            if not 400 <= status <= case.expected:
                raise ValueError(f"status {status}")
    return watch if case.expected in (CLOSED, HALF) or case.replies else None, answers


def main():
    app = App()
    grid = list(cases())
    rounds = runs(100, 1)
    before = app.sums()
    handled_before = app.told()[2]
    watches, wrong, answers = [], {}, 1
    handled = 0
    for _ in range(rounds):
        for case in grid:
            try:
                watch, number = play(app, case)
            except (Cut, Late, ValueError) as fault:
                wrong.setdefault(case.label, f"{type(fault).__name__} {fault}")
                continue
            answers += number
            handled += number - isinstance(case.expected, int)
            if watch:
                watches.append(watch)
    for label, fault in wrong.items():
        print(f"{label}: {fault}", file=sys.stderr)
    tell(
        not wrong,
        f"{len(grid)} cases, {rounds} times: closed, ended or passed over as they should be",
        f"{len(grid) - len(wrong)} are",
    )
    within("closed or ended", watches, 1)
    after, _ = app.settled(lambda sums: sums.open == 0)
    connections = len(grid) * rounds + 1
    same("the app's counters agree", f"{connections} connections, {answers} requests", after.since(before))
    begun, ended, now, _ = app.told()
    same("handlers that ran", handled, now - handled_before)
    same("requests begun and not ended, connections open", (0, 0), (begun - ended, after.open))
    tell(app.is_sane(), "no worker died", "none")


main()
