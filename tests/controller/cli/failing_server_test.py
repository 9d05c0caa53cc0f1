#!/usr/bin/env python3
"""An API server that fails, and a proxy before it: a command ends after a few requests and prints what was answered.

usage: failing_server_test.py BINARY
"""
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

BINARY = sys.argv.pop(1)
COMMANDS = (["status"], ["audit"], ["explain", "n1"], ["verify", "n1"], ["plan", "--from-cluster"], ["rollout", "status"], ["check"], ["support-bundle", "-o", "-"],
            ["cleanup", "--dry-run"])
STATUS = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "InternalError", "message": "etcd is gone", "code": 500})
# Without the settings of whoever runs the tests: the program warns of those that it does not know.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GSO_")}
PAGE = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><center><h1>502 Bad Gateway</h1></center><hr>nginx</body></html>\r\n"


class ManyConnections(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # A command lists in parallel; a full queue of five would drop connections for a second.


class Server:
    """Answers every path as `answer` says, and counts the requests."""

    def __init__(self, answer):
        self.paths = paths = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                paths.append(self.path)
                status, body = answer(self.path)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass

        self.http = ManyConnections(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    def run(self, *arguments):
        """(exit status, stdout, lines of stderr but the one that announces a wait, requests)"""
        del self.paths[:]
        address = "http://127.0.0.1:%d" % self.http.server_address[1]
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder, "config")
            config.write_text(json.dumps({
                "apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "k", "cluster": {"server": address}}],
                "users": [{"name": "u", "user": {}}], "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}]}), encoding="utf-8")
            done = subprocess.run([BINARY, *arguments, "--kubeconfig", str(config)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=300, env=ENVIRONMENT, check=False)
        lines = [line for line in done.stderr.splitlines() if "waiting for the API server" not in line]
        return done.returncode, done.stdout, lines, len(self.paths)


class FailingServer(unittest.TestCase):
    def test_a_server_that_only_fails_is_one_line_after_a_few_requests(self):
        with Server(lambda path: (500, STATUS)) as server:
            for command in COMMANDS:
                with self.subTest(command=command):
                    code, out, err, requests = server.run(*command)
                    self.assertEqual((code, out, len(err)), (2, "", 1), err)
                    self.assertRegex(err[0], r"the API server http://127.0.0.1:\d+ fails. Try again when it works: get /version: etcd is gone \(HTTP 500\)")
                    self.assertLessEqual(requests, 3)

    def test_a_server_whose_lists_fail_ends_a_command_as_soon(self):
        with Server(lambda path: (200, "{}") if path == "/version" else (500, STATUS)) as server:
            for command in COMMANDS:
                with self.subTest(command=command):
                    code, _, err, requests = server.run(*command)
                    self.assertEqual(code, 2, err)
                    self.assertIn("etcd is gone (HTTP 500)", err[-1])
                    self.assertLessEqual(requests, 30)

    def test_the_page_of_a_proxy_is_quoted_by_its_title(self):
        with Server(lambda path: (502, PAGE)) as server:
            code, out, err, _ = server.run("status")
            self.assertEqual((code, out, len(err)), (2, "", 1), err)
            self.assertTrue(err[0].endswith("get /version: HTTP 502: Bad Gateway (an HTML page: of a proxy or load balancer, not of the API server)"), err)


if __name__ == "__main__":
    unittest.main()
