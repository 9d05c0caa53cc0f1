// Names that others give: paths, the directory of an MPS daemon as a label, and the jobs of pods.
#include "reconcilers/model/foreign_names.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "reconcilers/model/project.h"

namespace gso::foreign_names_test {
namespace {

TEST(CleanPath, HasOneSpellingForOnePath) {
  EXPECT_EQ(clean_path("/run//nvidia/./mps/"), "/run/nvidia/mps");
  EXPECT_EQ(clean_path("run/nvidia"), "run/nvidia");
  EXPECT_EQ(clean_path("//"), "/");
  EXPECT_EQ(clean_path(""), "");
}

TEST(IsAtOrBelow, ComparesWholeParts) {
  EXPECT_TRUE(is_at_or_below("/tmp/nvidia-mps", "/tmp/nvidia-mps"));
  EXPECT_TRUE(is_at_or_below("/tmp/nvidia-mps/pipe", "/tmp/nvidia-mps"));
  EXPECT_TRUE(is_at_or_below("/tmp", "/"));
  EXPECT_FALSE(is_at_or_below("/tmp/nvidia-mps-logs", "/tmp/nvidia-mps"));
  EXPECT_FALSE(is_at_or_below("/tmp", "/tmp/nvidia-mps"));
}

TEST(PipeDirectory, IsReadFromTheReportOfAStandaloneDaemon) {
  EXPECT_EQ(reported_pipe_directory("pipeDirectory=/run/nvidia-mps driver=615.20 gpus=8\n"), "/run/nvidia-mps");
  EXPECT_EQ(reported_pipe_directory("pipeDirectory=/tmp/nvidia-mps\n"), "/tmp/nvidia-mps");
  EXPECT_EQ(reported_pipe_directory("pipeDirectory=/tmp/nvidia-mps"), "/tmp/nvidia-mps");
  for (const char* none : {"", "pipeDirectory=", "pipeDirectory", "no GPU", "driver=1 pipeDirectory=/tmp/nvidia-mps"})
    EXPECT_EQ(reported_pipe_directory(none), "") << none;
}

TEST(PipeDirectory, HasALabelsValueThatNoOtherDirectoryHas) {
  const std::pair<std::string, std::string> cases[] = {
      {"/run/nvidia-mps", "run.nvidia-mps"},
      {"/tmp/nvidia-mps", "tmp.nvidia-mps"},
      {"/run/nvidia/mps", "run.nvidia.mps"},
      {"/mps", "mps"},
      {"/a_b/-c/d", "a_b.-c.d"},
      {"/" + std::string(63, 'a'), std::string(63, 'a')},
  };
  for (const auto& [directory, value] : cases) {
    EXPECT_EQ(pipe_directory_label(directory), value);
    EXPECT_EQ(pipe_directory_of_label(value), directory);
  }
}

TEST(PipeDirectory, IsNotExpressedWhereALabelCannot) {
  for (const char* refused : {"", "/", "run/nvidia-mps", "/run/nvidia-mps/", "/run//mps", "/a/./b", "/v1.2/mps", "/a b",
                              "/-a", "/a-", "/a_", "/ä"})
    EXPECT_EQ(pipe_directory_label(refused), "") << refused;
  EXPECT_EQ(pipe_directory_label("/" + std::string(64, 'a')), "");
  const std::string none[] = {"", ".run", "run.", "run..mps", "-run", "a/b", std::string(64, 'a')};
  for (const std::string& value : none) EXPECT_EQ(pipe_directory_of_label(value), "") << value;
}

TEST(Members, AreToldByWhatTheirJobLeavesOnThem) {
  const struct {
    const char *name, *metadata, *job;  // JSON without braces; no job: empty.
  } rows[] = {
      {"OfABatchJob", R"("labels":{"batch.kubernetes.io/job-name":"a","job-name":"a"})",
       "team/batch.kubernetes.io/job-name=a"},
      {"OfABatchJobBefore127", R"("labels":{"job-name":"a"})", "team/job-name=a"},
      {"OfAJobOfAJobSet", R"("labels":{"jobset.sigs.k8s.io/jobset-name":"s","batch.kubernetes.io/job-name":"a"})",
       "team/jobset.sigs.k8s.io/jobset-name=s"},
      {"OfAPodGroupOfKAI", R"("labels":{"batch.kubernetes.io/job-name":"a"},"annotations":{"pod-group-name":"pg"})",
       "team/pod-group-name=pg"},
      {"OfAPodGroupOfVolcano", R"("annotations":{"scheduling.k8s.io/group-name":"pg"})",
       "team/scheduling.k8s.io/group-name=pg"},
      {"OfAKubeflowJob", R"("labels":{"training.kubeflow.org/job-name":"t"})", "team/training.kubeflow.org/job-name=t"},
      {"OfARayCluster", R"("labels":{"ray.io/cluster":"r"})", "team/ray.io/cluster=r"},
      {"OfAControllerThatIsAJob",
       R"("ownerReferences":[{"apiVersion":"x/v1","kind":"MPIJob","name":"m","uid":"u","controller":true}])",
       "team/MPIJob=m"},
      {"OfAReplicaSetAreNone",
       R"("ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"w","uid":"u","controller":true}])",
       ""},
      {"OfAStatefulSetAreNone",
       R"("ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"w","uid":"u","controller":true}])",
       ""},
      {"OfNothingAreNone", R"("labels":{"app":"x","job-name":""})", ""},
  };
  for (const auto& row : rows) {
    const auto pod =
        project_pod(fmt::format(R"({{"metadata":{{"name":"p","namespace":"team",{}}},"spec":{{}}}})", row.metadata));
    ASSERT_TRUE(pod) << pod.error().message;
    const auto job = job_of(*pod);
    EXPECT_EQ(job ? job->id() : "", row.job) << row.name;
  }
}

}  // namespace
}  // namespace gso::foreign_names_test
