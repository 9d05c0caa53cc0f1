"""How the cases of each vector file are judged: JUDGES has a function for each, (cases, program) -> [(id, what is wrong)]."""
from judges.expect import judge_gfd_labels
from judges.lint import judge_config_validation, judge_kai_admission
from judges.partitioning import judge_nos_planner
from judges.reservations import judge_kai_gc

JUDGES = {
    "config_validation": judge_config_validation,
    "gfd_labels": judge_gfd_labels,
    "kai_admission": judge_kai_admission,
    "kai_gc": judge_kai_gc,
    "nos_planner": judge_nos_planner,
}
