#!/usr/bin/env python3
"""Peers that send a byte every 100 ms: header and parameters have 2 s, whatever comes."""

from fastcgi import PARAMS, begin, pairs, params, request, stream, until_cut
from faults import App, Peer, beside, cut_within, runs, same, tell, within

HEAD_MS, SILENT_UNIX_MS, SILENT_TCP_MS, TOTAL_MS = 2000, 200, 1000, 3000
LONG = [(b"HTTP_X", b"x" * 4000)]


def dripping(address, count, first):
    """Peers that have sent the first bytes already, and what they have still to send."""
    whole = request(b"/fast", more=LONG)
    peers = []
    for _ in range(count):
        peer = Peer(address)
        peer.send(whole[:first])
        peers.append(peer)
    return peers, [whole[first:]] * count


def main():
    count = runs(100, 20)
    app = App("--total-time", f"{TOTAL_MS}ms", tcp=True)
    before = app.sums()
    beside_ms, asked, connected, answered = [], 0, 0, 0
    for what, address, first, deadline_ms in (
        ("unix, from the first byte on", app.path, 1, SILENT_UNIX_MS),
        ("TCP, from the first byte on", app.tcp, 1, SILENT_TCP_MS),
        ("unix, from the parameters on", app.path, 24, HEAD_MS),
        ("TCP, from the parameters on", app.tcp, 24, HEAD_MS),
    ):
        peers, drips = dripping(address, count, first)
        cut, watches = beside(app, 20, lambda: until_cut(peers, 6, drips))
        cut_within(f"{what}: cut", cut, deadline_ms, deadline_ms - 20)
        beside_ms += watches
        asked += len(watches)
        connected += count
        for peer in peers:
            peer.close()

    # A body that drips holds no thread; it has the total time and is answered 504.
    head = pairs(params(b"/length", b"POST", [(b"CONTENT_LENGTH", b"1000")]))
    peers = [Peer(app.path) for _ in range(count)]
    for peer in peers:
        peer.send(begin(False) + stream(PARAMS, head))
    drips = [bytes([1, 5, 0, 1, 3, 232, 0, 0]) + b"x" * 1000] * count
    cut, watches = beside(app, 20, lambda: until_cut(peers, 8, drips))
    statuses = [peer.answer().status for peer in peers]
    answered = len(peers)
    same("a body that drips: 504 at the total time", {504}, set(statuses))
    cut_within(f"a body that drips, total time {TOTAL_MS} ms: answered", cut, TOTAL_MS, TOTAL_MS - 20)
    beside_ms += watches
    asked += len(watches)
    connected += count

    within(f"requests beside {count} of them answered", beside_ms, 50)
    after, _ = app.settled(lambda sums: sums.open == 0)
    same(
        "the app's counters agree",
        f"{connected + asked} connections, {asked + answered} requests",
        after.since(before),
    )
    begun, ended, _, _ = app.told()
    same("requests begun and not ended", 0, begun - ended)
    tell(app.is_sane(), "alive", "yes")


main()
