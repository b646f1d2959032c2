#!/usr/bin/env python3
"""Runs a program with a listening socket at descriptor 0, as spawn-fcgi does.

on_descriptor_0.py SOCKET PROGRAM [ARGUMENT...]
"""

import os
import socket
import sys

path, command = sys.argv[1], sys.argv[2:]
holder = socket.socket(socket.AF_UNIX)
holder.bind(path)
os.chmod(path, 0o666)
holder.listen(100)
os.dup2(holder.fileno(), 0)
os.execvp(command[0], command)
