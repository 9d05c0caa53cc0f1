"""Looks of the operator: time passes, the operator plans, and its plan is applied."""
import datetime
import json

from .actions import apply, named
from .expectations import Failure, show
from .plans import Run, Tick
from .program import ask
from .times import moment, seconds, stamp


class Looks:
    """Part of a Cluster: its clock, and the operator that looks at it from time to time."""

    def run_plan(self, now=None, held="0s", form="json", options=()):
        """How `plan` ended: its exit status and what it printed, as it is."""
        arguments = ["plan", "-", "-o", form, "--now", now or stamp(self.clock), "--assume-observed-for", held]
        done = ask(arguments + self.options + list(options), self.manifests())
        if done.returncode not in (0, 1, 2):
            raise Failure("expected a plan, got exit status %d: %s" % (done.returncode, show(done.stderr)))
        return done

    def audit(self):
        """What `audit` prints about the cluster: its exit status and its findings."""
        status, printed = self.run_audit()
        return status, printed["findings"]

    def audited_problems(self):
        """The same findings, merged, each with the command that shows or corrects the cause."""
        return self.run_audit()[1]["problems"]

    def run_audit(self):
        done = ask(["audit", "-f", "-", "-o", "json"], self.manifests())
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            raise Failure("expected an audit in JSON, got exit status %d: %s" %
                          (done.returncode, show(done.stderr or done.stdout)))

    def plan(self, held="0s", options=()):
        """A plan that is not applied."""
        done = self.run_plan(held=held, options=options)
        try:
            printed = json.loads(done.stdout)
        except ValueError:
            raise Failure("expected a plan in JSON, got exit status %d: %s" %
                          (done.returncode, show(done.stderr or done.stdout)))
        tick = Tick(self, printed, done.returncode)
        if tick.holes():
            raise Failure("expected sentences without holes, got %s" % show(tick.holes()))
        return tick

    def tick(self, now=None, held=None, options=(), killed_after=None):
        """Plans at `now` (by default the cluster's clock) and applies it all. Conditions count as held for `held`: by
        default since the tick before or since the cluster was last changed, whichever is later. With `killed_after`
        the operator ends after so many writes."""
        if now is not None:
            self.clock = moment(now)
        if held is None:
            since = max(self.last_tick or self.clock, self.changed)
            held = "%ds" % (self.clock - since).total_seconds()
        result = self.plan(held, options)
        self.gone = set()
        for action in result.actions[:killed_after]:
            if "target" in action and self.key(*named(action)) in self.gone:
                continue  # 404: an earlier action of this look has taken it away.
            apply(self, action)
        if self.restarts_wanted:
            self.roll_daemonsets()
        self.react()
        self.last_tick = self.clock
        self.ticks.append(result)
        return result

    def after(self, duration, held=None):
        """Lets time pass, then looks."""
        self.clock += datetime.timedelta(seconds=seconds(duration))
        return self.tick(held=held)

    def wait(self, duration):
        """Lets time pass without a look."""
        self.clock += datetime.timedelta(seconds=seconds(duration))

    def set_clock_back(self, duration):
        """The API server's clock is set back; all objects keep their times, and time itself passes as before."""
        step = datetime.timedelta(seconds=seconds(duration))
        self.clock -= step
        self.changed -= step
        self.last_tick = self.last_tick and self.last_tick - step
        self.history = [(when - step, data) for when, data in self.history]

    def install(self):
        """The operator comes and records what it finds: pods that are a quarter of an hour old."""
        self.wait("15m")
        self.tick()
        self.after("1m")
        return self.after("30m")

    def converge(self, most=60, each="2m"):
        """Ticks until nothing but status is written; returns a summary."""
        return Run([self.after(each) for _ in iter_until_quiet(self, most)])


def iter_until_quiet(cluster, most):
    """Yields as long as the last tick has changed anything but status."""
    quiet = 0
    for count in range(most):
        if count and cluster.ticks[-1].is_quiet():
            quiet += 1
            if quiet == 2:
                return
        else:
            quiet = 0
        yield count
