#!/usr/bin/env python3
"""The judge of KAI's reservations can fail, and does not fail on an operator that does as it should: on made-up audit lines."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

import kai_judge
from kai_reservations import GPU, GROUP, PREFIX, RESERVATIONS, TEAM
from made_up_log import OPERATOR, MadeUpLog


class KaiJudgeTest(unittest.TestCase):
    def setUp(self):
        self.log = MadeUpLog()
        self.reservation("r")

    def reservation(self, name, gpu="GPU-r"):
        self.log.put("pods", RESERVATIONS, name, {
            "metadata": {"labels": {GROUP: "g"}, "annotations": {GPU: gpu}}, "spec": {"nodeName": "n1"},
            "status": {"phase": "Running"}})

    def consumer(self, phase="Running", labels=None, node="n1"):
        self.log.put("pods", TEAM, "c", {"metadata": {"labels": labels or {GROUP: "g"}}, "spec": {"nodeName": node},
                                         "status": {"phase": phase}})

    def delete(self, name="r", namespace=RESERVATIONS, **conditions):
        meta = self.log.get("pods", namespace, name)["metadata"]
        self.log.remove("pods", namespace, name, user=OPERATOR, request={"preconditions": {
            "uid": meta["uid"], "resourceVersion": meta["resourceVersion"], **conditions}})

    def judged(self, *arguments):
        """The exit code and what is printed."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "audit.log"
            path.write_text("\n".join(self.log.lines) + "\n", encoding="utf-8")
            with contextlib.redirect_stdout(io.StringIO()) as out:
                code = kai_judge.main([str(path), *arguments])
        return code, out.getvalue()

    def wrong(self, text):
        code, said = self.judged()
        self.assertEqual(code, 1, said)
        self.assertIn(text, said)

    def test_an_orphan_and_one_whose_consumer_has_ended_may_go(self):
        self.consumer("Succeeded")
        self.delete()
        self.assertEqual(self.judged()[0], 0)

    def test_a_live_consumer_keeps_it_by_either_label_and_in_any_phase(self):
        for labels in ({GROUP: "g"}, {PREFIX + "g": "g"}):
            for phase in ("Running", "Unknown", ""):
                self.setUp()
                self.consumer(phase, labels)
                self.delete()
                self.wrong("pod team/c (" + (phase or "without a phase") + ") is of its group g")

    def test_a_bind_in_progress_keeps_it_by_either_field(self):
        for fields in ({"selectedGPUGroups": ["g"]}, {"selectedFractionalGpuGroups": [{"id": "g"}]}):
            self.setUp()
            self.log.put("bindrequests", TEAM, "c", {"spec": fields, "status": {"phase": "Pending"}})
            self.delete()
            self.wrong("BindRequest team/c in progress names its group g")
            self.setUp()
            self.log.put("bindrequests", TEAM, "c", {"spec": fields, "status": {"phase": "Succeeded"}})
            self.delete()
            self.assertEqual(self.judged()[0], 0)

    def test_a_duplicate_may_go_only_if_its_consumers_see_another_gpu(self):
        for gpu, code in (("GPU-other", 0), ("GPU-r", 1), ("", 1)):
            self.setUp()
            self.reservation("other", "GPU-other")
            self.consumer()
            self.log.put("configmaps", TEAM, "c-0", {"data": {"NVIDIA_VISIBLE_DEVICES": gpu}})
            self.delete()
            self.assertEqual(self.judged()[0], code, gpu)

    def test_the_request_names_the_pod_that_was_there(self):
        self.delete(uid="another")
        self.wrong("the precondition uid is another")
        self.setUp()
        self.delete(resourceVersion=None)
        self.wrong("the precondition resourceVersion is None")

    def test_no_other_pod_is_written(self):
        self.consumer()
        self.delete("c", TEAM)
        self.wrong("the operator writes a pod that is no reservation")

    def test_a_log_without_deletions_proves_nothing(self):
        self.assertEqual(self.judged()[0], 2)
        self.delete()
        self.assertEqual(self.judged()[0], 0)
        self.assertEqual(self.judged("--at-least", "2")[0], 2)


if __name__ == "__main__":
    unittest.main()
