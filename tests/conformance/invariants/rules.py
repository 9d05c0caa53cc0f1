"""What every rule has: a number, a sentence, and the writes that it has judged."""

# An operator that has only just been shown something cannot have acted on it. What it must heed has to be true for this
# long before its request arrived, on a machine that does other things too.
LAG = 2.0


class Rule:
    """One invariant. judge() is called with each successful write of the operator, before the cluster has taken it over;
    `after` is what it left behind. It calls judged() once for each write to which the rule applies."""

    number = ""
    title = ""

    def __init__(self):
        self.counts = {}  # Story -> writes judged.
        self.violations = []

    def judge(self, write, cluster):
        raise NotImplementedError

    def judged(self, cluster):
        story = cluster.settings.get("story", "")
        self.counts[story] = self.counts.get(story, 0) + 1

    def violated(self, write, what):
        self.violations.append(f"{self.number}: {what} ({write})")

    @property
    def total(self):
        return sum(self.counts.values())
