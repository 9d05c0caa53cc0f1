#!/usr/bin/env python3
"""The kubelet of a node whose fleet emulator has ended, for the pods of `verify` alone: their containers' own commands run here
as processes, and the API server gets their logs.

usage: client_kubelet.py CLUSTER_DIR NODE PROGRAMS

PROGRAMS is the folder that comes first in the containers' PATH, where the container toolkit's nvidia-cuda-mps-control would be.
"""
import http.server
import os
import pathlib
import ssl
import subprocess
import sys
import threading

import process_kubelet


class ClientPod(process_kubelet.Pod):
    def log_of(self, container):
        return self.folder / f"{container}.log"

    def start(self, container):
        env = {entry["name"]: entry["value"] for entry in container.spec["env"]}
        # The pipe directory is the device plugin's answer to the kubelet.
        env |= {"PATH": f"{self.kubelet.programs}:/usr/bin:/bin", "CUDA_MPS_PIPE_DIRECTORY": "/mps/nvidia.com/gpu/pipe"}
        with open(self.log_of(container.spec["name"]), "ab") as log:
            container.process = subprocess.Popen(container.spec["command"], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        container.started_at = process_kubelet.now()


class ClientKubelet(process_kubelet.Kubelet):
    pod_class = ClientPod
    selector = "&labelSelector=app.kubernetes.io%2Fname%3Dgpu-sharing-verify"

    def __init__(self, cluster, node, programs):
        super().__init__(cluster, "", node)
        self.programs = programs
        kubelet = self

        class Logs(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                # /containerLogs/NAMESPACE/POD/CONTAINER
                namespace, name, container = self.path.partition("?")[0].split("/")[2:]
                found = [pod for pod in list(kubelet.pods.values()) if (pod.meta["namespace"], pod.meta["name"]) == (namespace, name)]
                self.send_response(200 if found else 404)
                self.end_headers()
                if found:
                    self.wfile.write(found[0].log_of(container).read_bytes())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Logs)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cluster / "pki" / "server.crt", cluster / "pki" / "server.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def register(self):
        super().register()
        port = self.server.server_address[1]
        self.api.call("PATCH", f"/api/v1/nodes/{self.node}/status", {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}},
                      "application/merge-patch+json")


if __name__ == "__main__":
    process_kubelet.run_until_signal(ClientKubelet(pathlib.Path(sys.argv[1]), sys.argv[2], os.path.abspath(sys.argv[3])))
