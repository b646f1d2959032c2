#!/usr/bin/env python3
"""Peers that say nothing, or stop inside the first record's header: cut at the deadline."""

from fastcgi import begin, until_cut
from faults import App, Peer, beside, cut_within, runs, same, tell, within

SILENT_UNIX_MS, SILENT_TCP_MS = 200, 1000


def silent_peers(address, count):
    """A third says nothing, the others half a header or all of one without its content."""
    peers = []
    for number in range(count):
        peer = Peer(address)
        if number % 3:
            peer.send(begin()[: 8 if number % 3 == 2 else 1 + number % 7])
        peers.append(peer)
    return peers


def main():
    app = App(tcp=True)
    before = app.sums()
    asked = connected = 0
    beside_ms = []
    count = 90  # more than ten for each thread
    for what, address, deadline_ms, rounds in (
        ("unix", app.path, SILENT_UNIX_MS, runs(5, 1)),
        ("TCP", app.tcp, SILENT_TCP_MS, runs(5, 1)),
    ):
        cut_ms = []
        for _ in range(rounds):
            peers = silent_peers(address, count)
            connected += count
            cut, watches = beside(app, 10, lambda: until_cut(peers, 5))
            asked += len(watches)
            beside_ms += watches
            cut_ms += cut
            for peer in peers:
                peer.close()
        cut_within(f"{what}: cut", cut_ms, deadline_ms, deadline_ms - 20)
    within(f"requests beside {count} of them, on 8 threads, answered", beside_ms, 50)
    after, _ = app.settled(lambda sums: sums.open == 0)
    same(
        "the app's counters agree",
        f"{connected + asked} connections, {asked} requests",
        after.since(before),
    )
    tell(app.is_sane(), "alive", "yes")


main()
