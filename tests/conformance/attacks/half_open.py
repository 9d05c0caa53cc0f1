#!/usr/bin/env python3
"""Many connections to one port that never finish a request, while another client asks the same port.

usage: half_open.py PORT [--tls] [--path PATH] [--body FILE] [--connections N] [--seconds S]

Exit code 0 if the other client had a complete answer (200) within a second each time. With --tls half of the connections send nothing, and
half stop in the middle of the handshake; the other client does not verify the certificate.
"""
import argparse
import http.client
import socket
import ssl
import sys
import threading
import time

HALF_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # A ClientHello that ends here.
MOST = 1.0


def hold(port, text, end):
    while time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                connection.sendall(text)
                connection.settimeout(max(0.1, end - time.monotonic()))
                while connection.recv(100):
                    pass
        except OSError:
            time.sleep(0.02)


def ask(options):
    """What kept it from an answer; empty: nothing."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    began = time.monotonic()
    try:
        kind = http.client.HTTPSConnection if options.tls else http.client.HTTPConnection
        connection = kind("127.0.0.1", options.port, timeout=10, **({"context": context} if options.tls else {}))
        if options.body:
            with open(options.body, "rb") as body:
                connection.request("POST", options.path, body.read(), {"Content-Type": "application/json"})
        else:
            connection.request("GET", options.path)
        answer = connection.getresponse()
        answer.read()
        connection.close()
    except OSError as error:
        return str(error)
    took = time.monotonic() - began
    return "" if answer.status == 200 and took <= MOST else f"{answer.status} after {took:.1f} s"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--path", default="/livez")
    parser.add_argument("--body")
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    half = [b"", HALF_HELLO] if options.tls else [b"", f"GET {options.path} HTTP/1.1\r\nHost: a\r\nX-A: ".encode()]
    for number in range(options.connections):
        threading.Thread(target=hold, args=(options.port, half[number % 2], end), daemon=True).start()
    time.sleep(1)
    asked, problems = 0, []
    while time.monotonic() < end:
        asked += 1
        problem = ask(options)
        if problem:
            problems.append(problem)
        time.sleep(1)
    print(f"{asked} requests beside {options.connections} half-open connections, {len(problems)} failed")
    for problem in problems[:5]:
        print("    " + problem)
    return 1 if problems or asked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
