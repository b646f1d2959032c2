#!/usr/bin/env python3
"""Restarts an app again and again on one listening socket, as systemd would.

    process_rolling.py SOCKET PROGRAM [ARGUMENT...]

The socket is held here and passed as descriptor 0. In every second cycle the next
instance runs before the old one is told to stop; in the others it comes after, and what
connects in between waits in the socket. Ends at SIGTERM and prints how many instances it
had and how many of them ended with status 0.
"""

import os
import signal
import socket
import subprocess
import sys
import time

SERVE_SECS = 0.25


def start(holder, command):
    """Starts an instance and waits until it is ready."""
    app = subprocess.Popen(
        command, stdin=holder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    for line in app.stderr:
        if b"ready: " in line:
            return app
    sys.exit(f"the app doesn't start: status {app.wait()}")


def stop(app):
    app.terminate()
    app.stderr.read()
    return app.wait() == 0


def main():
    path, command = sys.argv[1], sys.argv[2:]
    asked_to_end = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked_to_end.append(number))
    with socket.socket(socket.AF_UNIX) as holder:
        holder.bind(path)
        os.chmod(path, 0o666)
        holder.listen(4096)
        app, instances, good = start(holder, command), 1, 0
        print("started", flush=True)
        while not asked_to_end:
            time.sleep(SERVE_SECS)
            if instances % 2:
                old, app = app, start(holder, command)
                good += stop(old)
            else:
                good += stop(app)
                app = start(holder, command)
            instances += 1
        good += stop(app)
        os.unlink(path)
        print(instances, good)


main()
