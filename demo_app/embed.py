#!/usr/bin/env python3
"""Writes text files as C arrays that end with a NUL: embed.py OUTPUT.h INPUT...

page.html becomes `static const char page_html[]`. Bytes, not strings: a string literal
over 4,095 characters is more than C11 promises to take.
"""

import os
import sys


def c_array(name, data):
    lines = [
        "    " + " ".join(f"{byte:d}," for byte in data[i : i + 16])
        for i in range(0, len(data), 16)
    ]
    return f"static const char {name}[] = {{\n" + "\n".join(lines) + "\n};\n"


def main(output, inputs):
    with open(output, "w", encoding="ascii") as header:
        for path in inputs:
            with open(path, "rb") as file:
                text = file.read()
            # A char may be signed: ASCII only. The page writes other letters as entities.
            text.decode("ascii")
            name = os.path.basename(path).replace(".", "_")
            header.write(c_array(name, text + b"\0"))


main(sys.argv[1], sys.argv[2:])
