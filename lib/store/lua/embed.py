#!/usr/bin/env python3
"""Writes Lua scripts as C strings, with their SHA-1: embed.py OUTPUT.h INPUT.lua...

decide_one.lua becomes DECIDE_ONE_LUA and DECIDE_ONE_SHA1. Comments and indentation stay
behind: Redis keeps and, where a script is sent whole, reads every byte.
"""

import hashlib
import os
import sys


def stripped(path):
    with open(path, encoding="ascii") as file:
        lines = [line.strip() for line in file]
    return "".join(line + "\n" for line in lines if line and not line.startswith("--"))


def c_string(text):
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"') for line in text.splitlines()]
    return " \\\n".join(f'    "{line}\\n"' for line in escaped)


def main(output, inputs):
    with open(output, "w", encoding="ascii") as header:
        for path in inputs:
            text = stripped(path)
            if len(text) > 4095:
                sys.exit(f"{path}: longer than a C11 string may be")
            name = os.path.basename(path)[: -len(".lua")].upper()
            sha1 = hashlib.sha1(text.encode("ascii")).hexdigest()
            header.write(f"#define {name}_LUA \\\n{c_string(text)}\n")
            header.write(f'#define {name}_SHA1 "{sha1}"\n')


main(sys.argv[1], sys.argv[2:])
