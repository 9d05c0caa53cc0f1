#include "reconcilers/model/foreign_names.h"

#include <gtest/gtest.h>

#include <string>

namespace gso::mps_pipe_directory_test {
namespace {

TEST(PipeDirectory, IsReadFromTheReportOfAStandaloneDaemon) {
  EXPECT_EQ(reported_pipe_directory("pipeDirectory=/run/nvidia-mps driver=615.20 gpus=8\n"), "/run/nvidia-mps");
  EXPECT_EQ(reported_pipe_directory("pipeDirectory=/tmp/nvidia-mps\n"), "/tmp/nvidia-mps");
  EXPECT_EQ(reported_pipe_directory("pipeDirectory=/tmp/nvidia-mps"), "/tmp/nvidia-mps");
  for (const char* none : {"", "pipeDirectory=", "pipeDirectory", "no GPU", "driver=1 pipeDirectory=/tmp/nvidia-mps"})
    EXPECT_EQ(reported_pipe_directory(none), "") << none;
}

TEST(PipeDirectory, HasALabelsValueThatNoOtherDirectoryHas) {
  const struct {
    std::string directory;
    std::string value;
  } cases[] = {
      {"/run/nvidia-mps", "run.nvidia-mps"},
      {"/tmp/nvidia-mps", "tmp.nvidia-mps"},
      {"/run/nvidia/mps", "run.nvidia.mps"},
      {"/mps", "mps"},
      {"/a_b/-c/d", "a_b.-c.d"},
      {"/" + std::string(63, 'a'), std::string(63, 'a')},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(pipe_directory_label(one.directory), one.value);
    EXPECT_EQ(pipe_directory_of_label(one.value), one.directory);
  }
}

TEST(PipeDirectory, IsNotExpressedWhereALabelCannot) {
  const std::string refused[] = {"",
                                 "/",
                                 "run/nvidia-mps",
                                 "/run/nvidia-mps/",
                                 "/run//mps",
                                 "/a/./b",
                                 "/v1.2/mps",
                                 "/a b",
                                 "/-a",
                                 "/a-",
                                 "/a_",
                                 "/ä",
                                 "/" + std::string(64, 'a')};
  for (const std::string& directory : refused) EXPECT_EQ(pipe_directory_label(directory), "") << directory;
  const std::string none[] = {"", ".run", "run.", "run..mps", "-run", "a/b", std::string(64, 'a')};
  for (const std::string& value : none) EXPECT_EQ(pipe_directory_of_label(value), "") << value;
}

}  // namespace
}  // namespace gso::mps_pipe_directory_test
