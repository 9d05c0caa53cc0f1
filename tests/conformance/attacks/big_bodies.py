#!/usr/bin/env python3
"""Bodies of megabytes to the webhook, in shapes that a parser multiplies, and some that never end.

usage: big_bodies.py PORT PID [--connections N]

Exit code 0 if the process lives, its peak memory grew by at most 32 MiB, and each finished body was answered, or its connection closed,
within two seconds.
"""
import argparse
import socket
import ssl
import sys
import threading
import time

MIB = 1024 * 1024
MOST_MEMORY, MOST_SECONDS = 32 * MIB, 2.0


def filled(unit, size, around=(b'{"a":[', b"]}")):
    return around[0] + unit * ((size - 20) // len(unit)) + unit.rstrip(b",") + around[1]


def bodies(size):
    review = (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"","version":"v1","kind":"Pod"},'
              b'"name":"p","namespace":"a","operation":"CREATE","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[')
    mounts = b'{"name":"c","image":"x","volumeMounts":[' + b'{"name":"v","mountPath":"/a"},' * (size // 64)
    return {
        "objects": filled(b"{},", size), "members": filled(b'{"":0},', size), "numbers": filled(b"0,", size),
        "depth": b'{"a":' + b"[" * (size // 2), "text": filled(b"x", size, (b'{"a":"', b'"}')),
        "containers": filled(b'{"name":"c","args":["",""]},', size, (review, b"]}}}}")),
        "mounts": review + mounts.rstrip(b",") + b"]}]," + b'"volumes":[' + (b'{"name":"v","emptyDir":{}},' * (size // 64)).rstrip(b",") + b"]}}}}",
    }


def peak(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def send(port, body, finished, slow):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    sent = None
    try:
        with context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=30)) as connection:
            head = f"POST /validate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body) + (not finished)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            sent = time.monotonic()
            if not finished:
                time.sleep(3)
                return
            connection.recv(300)
    except OSError:
        pass  # Refused or closed: as good as an answer.
    if sent and time.monotonic() - sent > MOST_SECONDS:
        slow.append(time.monotonic() - sent)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("pid")
    parser.add_argument("--connections", type=int, default=8)
    options = parser.parse_args()
    failed = 0
    for size in (2 * MIB, 8 * MIB):
        for name, body in bodies(size).items():
            for finished in (True, False):
                before, slow = peak(options.pid), []
                threads = [threading.Thread(target=send, args=(options.port, body, finished, slow)) for _ in range(options.connections)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                grown = peak(options.pid) - before
                bad = grown > MOST_MEMORY or slow
                failed += bool(bad)
                print(f"{'FAILED' if bad else 'ok':<7} {name:<10} {len(body) / MIB:.1f} MiB x {options.connections}, {'finished' if finished else 'cut off'}: "
                      f"memory grew by {grown / MIB:.0f} MiB, {len(slow)} answers took longer than 2 s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
