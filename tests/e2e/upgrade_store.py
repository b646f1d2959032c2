#!/usr/bin/env python3
"""Stands for systemd: keeps the sockets and the counters of a service between its starts.

    upgrade_store.py SOCKET PROGRAM [ARGUMENT...]

Holds the listening socket, reads what the program says to NOTIFY_SOCKET and keeps the
descriptor that it gives (FDSTORE=1). At each SIGHUP the program is stopped and started
again with both; prints "started" each time it is ready. At SIGTERM it is stopped, and the
words that it said in all are printed.
"""

import array
import os
import signal
import socket
import sys
import tempfile


def receive(notify, words, store):
    """One datagram; a descriptor that comes along is kept under its name."""
    data, control, _, _ = notify.recvmsg(4096, socket.CMSG_SPACE(4))
    lines = data.decode().split("\n")
    fds = array.array("i")
    for _, kind, content in control:
        if kind == socket.SCM_RIGHTS:
            fds.frombytes(content)
    name = next((line[7:] for line in lines if line.startswith("FDNAME=")), None)
    if "FDSTOREREMOVE=1" in lines:
        store.pop(name, None)
    if "FDSTORE=1" in lines:
        store[name] = fds[0]
    words.append(lines[0])
    return lines


def start(command, holder, store, environment):
    """Descriptors 3 and up in the form of sd_listen_fds(3)."""
    names, sources = ["app.socket"], [holder.fileno()]
    for name, fd in store.items():
        names.append(name)
        sources.append(fd)

    def prepare():
        high = [os.dup2(fd, 50 + i) for i, fd in enumerate(sources)]
        for i, fd in enumerate(high):
            os.dup2(fd, 3 + i, inheritable=True)
        os.environ.update(environment)
        os.environ["LISTEN_PID"] = str(os.getpid())
        os.environ["LISTEN_FDS"] = str(len(sources))
        os.environ["LISTEN_FDNAMES"] = ":".join(names)
        os.execv(command[0], command)

    pid = os.fork()
    if pid == 0:
        try:
            prepare()
        finally:
            os._exit(127)
    return pid


def main():
    path, command = sys.argv[1], sys.argv[2:]
    words, store = [], {}
    folder = tempfile.mkdtemp(prefix="weir-notify-")
    with socket.socket(socket.AF_UNIX) as holder, socket.socket(
        socket.AF_UNIX, socket.SOCK_DGRAM
    ) as notify:
        holder.bind(path)
        os.chmod(path, 0o666)
        holder.listen(64)
        notify.bind(f"{folder}/notify")
        notify.settimeout(20)
        signals = {signal.SIGHUP, signal.SIGTERM}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        while True:
            pid = start(command, holder, store, {"NOTIFY_SOCKET": f"{folder}/notify"})
            while "READY=1" not in receive(notify, words, store):
                pass
            print("started", flush=True)
            asked = signal.sigwait(signals)
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
            if asked == signal.SIGTERM:
                break
        while words[-1] != "STOPPING=1":
            receive(notify, words, store)
    os.unlink(f"{folder}/notify")
    os.rmdir(folder)
    os.unlink(path)
    print(" ".join(words), flush=True)


main()
