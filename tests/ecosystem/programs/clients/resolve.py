"""Ask a DNS server on this machine for an address: `resolve.py PORT NAME ADDRESS`."""

import socket
import struct
import sys

port, name, expected = int(sys.argv[1]), sys.argv[2], sys.argv[3]
question = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0" + struct.pack("!HH", 1, 1)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
    connection.settimeout(2)
    connection.connect(("127.0.0.1", port))
    connection.send(struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + question)
    try:
        answer = connection.recv(512)
    except OSError as error:
        sys.exit(f"no answer: {error}")
sys.exit(0 if socket.inet_aton(expected) in answer else f"{expected} is not in the answer")
