#!/usr/bin/env python3
"""GET_VALUES with many, repeated, unknown and cut names: one bounded reply, alive."""

from fastcgi import GET_VALUES, GET_VALUES_RESULT, pairs, record, size
from faults import App, Peer, runs, same, tell, within

NAMES = (b"FCGI_MAX_CONNS", b"FCGI_MAX_REQS", b"FCGI_MPXS_CONNS")
LONGEST = 80


def queries():
    """Label, content, how many pairs must be answered."""
    yield "each name four times", pairs([(name, b"") for name in NAMES] * 4), 3
    yield "one name 4,000 times", pairs([(NAMES[0], b"")] * 4000), 1
    yield "2,000 unknown names", pairs([(b"FCGI_UNKNOWN", b"")] * 2000), 0
    yield "names with values", pairs([(name, b"v" * 200) for name in NAMES]), 3
    yield "no name at all", b"", 0
    yield "a pair cut by the record", pairs([(NAMES[0], b"")])[:-3], 0
    yield "a declared length of 2 GiB", b"\xff\xff\xff\xff\xff\xff\xff\xff" + NAMES[0], 0
    yield "a name of 60,000 bytes", size(60000) + size(0) + b"F" * 60000, 0


def main():
    app = App()
    rounds = runs(100, 3)
    times, longest, wrong, asked = [], 0, [], 0
    before = app.sums()
    for _ in range(rounds):
        for label, content, expected in queries():
            with Peer(app.path) as peer:
                with app.stopwatch() as watch:
                    peer.send(record(GET_VALUES, content, 0))
                    kind, number, reply = peer.record()
                times.append(watch)
                asked += 1
                longest = max(longest, len(reply) + 8)
                found = sum(reply.count(name) for name in NAMES)
                if (kind, number, found) != (GET_VALUES_RESULT, 0, expected):
                    wrong.append(label)
                if peer.ask().status != 200:
                    wrong.append(label + ", then a request")
    tell(not wrong, "right replies, and the connection goes on", f"{asked - len(wrong)} of {asked}")
    tell(longest <= LONGEST, f"a reply has at most {LONGEST} bytes", f"{longest}")
    within("the reply, after up to 64 KiB of names,", times, 5)
    after = app.sums()
    same("the app's counters agree", f"{asked} connections, {asked} requests", after.since(before))
    tell(app.is_sane(), "alive", "yes")


main()
