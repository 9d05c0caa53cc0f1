"""What is measured of a client. Every function returns a dict of figures: seconds, MiB, counts."""
import statistics
import time

from audit_log import NodeWrites
from clients import scrape

IDLE_SECONDS = 3       # Before memory and CPU of an idle client are read.
SCRAPES = 50
WRITE_SECONDS = 1800   # Most that one label on every Node may take.


def start(client):
    """From nothing to filled caches, and the memory some seconds later."""
    synced = client.start()
    cpu = client.program.cpu()
    time.sleep(IDLE_SECONDS)
    resident, peak = client.program.memory()
    return {"synced_s": synced, "synced_cpu_s": cpu, "resident_mib": resident, "peak_mib": peak}


def wait_until(reached, what):
    deadline = time.monotonic() + WRITE_SECONDS
    while not reached():
        if time.monotonic() > deadline:
            raise RuntimeError("not within %d s: %s" % (WRITE_SECONDS, what))
        time.sleep(0.1)


def settle(client, log):
    """Waits until nothing is left to be written, and nothing but the Lease has been for some seconds."""
    wait_until(client.is_up_to_date, client.name + " has nothing to write")
    quiet = False
    while not quiet:
        log.new()
        time.sleep(IDLE_SECONDS)
        quiet = all(write.resource == "leases" for write in log.new() if client.agent in write.agent)


def write_label(client, fleet, log):
    """One label on every Node by a client with watches: first PATCH to last."""
    writes = NodeWrites(log, client.agent)
    cpu, edited = client.program.cpu(), time.time()
    client.write_label()
    wait_until(lambda: len(writes.read().first) >= fleet.size, "every Node has a PATCH of " + client.name)
    cpu = client.program.cpu() - cpu
    resident, peak = client.program.memory()
    figures = {"write_s": writes.seconds(), "write_cpu_s": cpu, "first_patch_s": writes.began() - edited,
               "conflicts": writes.conflicts, "failed": writes.failed, "write_resident_mib": resident, "write_peak_mib": peak}
    wanted = fleet.size * client.patches_per_node
    wait_until(lambda: writes.read().succeeded >= wanted, "%d PATCHes of %s" % (wanted, client.name))
    figures["patches_per_node"] = writes.succeeded / fleet.size
    return figures


def write_by_sender(sender, fleet, log):
    """The same by the sender, which has no watch."""
    writes = NodeWrites(log, sender.agent)
    cpu = sender.write_label()
    wait_until(lambda: len(writes.read().first) >= fleet.size, "every Node has a PATCH of the sender")
    return {"write_s": writes.seconds(), "write_cpu_s": cpu}


def heartbeats(client, sender, fleet):
    """CPU of a client for each status that a kubelet writes."""
    time.sleep(IDLE_SECONDS)
    cpu = client.program.cpu()
    sender.heartbeat()
    time.sleep(1)  # The last events arrive.
    return {"heartbeat_cpu_ms": (client.program.cpu() - cpu) * 1000 / fleet.size}


def quiet(client, log, seconds):
    """Writes and CPU while nothing happens."""
    settle(client, log)
    log.new()
    cpu = client.program.cpu()
    time.sleep(seconds)
    cpu = client.program.cpu() - cpu
    writes = [write for write in log.new() if client.agent in write.agent]
    leases = sum(write.resource == "leases" for write in writes)
    return {"quiet_s": seconds, "quiet_writes": len(writes) - leases, "quiet_lease_writes": leases, "quiet_cpu_s": cpu}


def scrapes(client):
    """CPU and time of one scrape of /metrics."""
    port = client.program.port()
    cpu = client.program.cpu()
    answers = [scrape(port) for _ in range(SCRAPES)]
    return {"scrape_cpu_ms": (client.program.cpu() - cpu) * 1000 / SCRAPES,
            "scrape_ms": statistics.median(took for took, _ in answers) * 1000, "scrape_bytes": answers[-1][1]}


def failover(client, api, log):
    """From SIGTERM of the leader until the API server has answered the first write of the Lease by the standby. From then
    on the client is the former standby."""
    name, namespace = client.lease
    path = "/apis/coordination.k8s.io/v1/namespaces/%s/leases/%s" % (namespace, name)
    leader, holder = client.program, api.get(path)["spec"]["holderIdentity"]
    client.start("two")
    time.sleep(IDLE_SECONDS)
    log.new()
    ended = time.time()
    leader.process.terminate()
    taken = []

    def is_taken():
        for write in log.new():
            now = write.body.get("spec", {}).get("holderIdentity")
            if write.resource == "leases" and write.name == name and 200 <= write.code < 300 and now not in (None, "", holder):
                taken.append(write.answered)
        return bool(taken)

    wait_until(is_taken, "the standby of %s holds the Lease" % client.name)
    leader.stop()
    return {"failover_s": taken[0] - ended}
