#!/usr/bin/env python3
"""A peer that keeps the socket after END_REQUEST: the app closes at once where it isn't kept."""

from fastcgi import PARAMS, STDIN, Cut, begin, pairs, params, record, request, stream
from faults import App, Peer, runs, same, tell, within

HEAD = pairs(params(b"/nowhere", b"POST", [(b"CONTENT_LENGTH", b"100000")]))
EARLY = begin(False) + stream(PARAMS, HEAD) + record(STDIN, b"x" * 1000)


def main():
    app = App("--linger-time", "300ms", tcp=True)
    before = app.sums()
    rounds = runs(200, 10)
    held, asked = [], 0
    for what, address in (("unix", app.path), ("TCP", app.tcp)):
        watches = []
        for _ in range(rounds):
            peer = Peer(address)
            peer.send(request(b"/fast", keep=False))
            peer.answer()
            with app.stopwatch() as watch:
                try:
                    peer.record()
                except Cut:
                    pass
            watches.append(watch)
            held.append(peer)
            asked += 1
        within(f"{what}: closed behind END_REQUEST", watches, 1)
        watches = []
        for _ in range(runs(100, 5)):
            peer = Peer(address)
            peer.send(EARLY)
            status = peer.answer().status
            with app.stopwatch() as watch:
                try:
                    peer.record()
                except Cut:
                    pass
            watches.append(watch)
            held.append(peer)
            asked += 1
            if status != 404:
                tell(False, "an early answer", f"{status}")
        within(f"{what}: shut behind an early answer, the body still to come,", watches, 1)
    # All are still held by their peers.
    after, took_ms = app.settled(lambda sums: sums.open == 0)
    within(f"all {len(held)} are let go, though their peers hold them,", [took_ms], 300 + 50)
    same(
        "the app's counters agree, open",
        (f"{asked} connections, {asked} requests", 0),
        (after.since(before), after.open),
    )
    tell(app.is_sane(), "alive", "yes")


main()
