// Where an MPS daemon and its clients meet, and how limits are written.
#include "controller/mps_daemon/standalone_daemon.h"

#include <gtest/gtest.h>

#include "reconcilers/model/foreign_names.h"

namespace gso::test::settings_test {
namespace {

MpsDaemonSettings settings_of(const char* pipe_directory, const char* root) {
  MpsDaemonSettings out;
  out.pipe_directory = pipe_directory;
  out.root = root;
  return out;
}

TEST(MpsDaemonSettings, TakeTheDirectoryThatTheDriverTakes) {
  struct Row {
    const char* driver;
    bool root;
    const char* directory;
  };
  for (const Row& row : {Row{"615.71.05", true, "/run/nvidia-mps"}, Row{"615.71.05", false, "/tmp/nvidia-mps"},
                         Row{"614.99", true, "/tmp/nvidia-mps"}, Row{"570", true, "/tmp/nvidia-mps"},
                         Row{"1000.1", true, "/run/nvidia-mps"}, Row{"", true, "/tmp/nvidia-mps"}}) {
    EXPECT_EQ(default_pipe_directory(row.driver, row.root), row.directory) << row.driver;
  }
}

// sun_path of unix(7) has 108 bytes, one of them for the end; "/control_privileged" takes 19.
TEST(MpsDaemonSettings, RefuseADirectoryThatIsTooLongForASocket) {
  const std::string longest = "/" + std::string(87, 'd');
  EXPECT_TRUE(check_length(settings_of(longest.c_str(), "")));
  const auto refused = check_length(settings_of((longest + "d").c_str(), ""));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("has 89 characters: choose one of at most 88"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(check_length(settings_of("", "/node")));
  EXPECT_FALSE(check_length(settings_of("", longest.c_str()))) << "with the driver's default below it";
}

TEST(MpsDaemonSettings, LookInBothDefaultsUnlessADirectoryIsNamedAndNameItByItsPathOnTheNode) {
  EXPECT_EQ(possible_pipe_directories({}), (std::vector<std::string>{"/run/nvidia-mps", "/tmp/nvidia-mps"}));
  EXPECT_EQ(possible_pipe_directories(settings_of("/mps", "")), std::vector<std::string>{"/mps"});
  const MpsDaemonSettings mounted = settings_of("", "/host");
  EXPECT_EQ(possible_pipe_directories(mounted),
            (std::vector<std::string>{"/host/run/nvidia-mps", "/host/tmp/nvidia-mps"}));
  EXPECT_EQ(path_on_node(mounted, "/host/run/nvidia-mps"), "/run/nvidia-mps");
  EXPECT_EQ(path_on_node(settings_of("/mps", "/host"), "/mps"), "/mps");
}

TEST(MpsDaemonSettings, ReadAMemoryLimitOfADevice) {
  const auto limit = parse_memory_limit("GPU-1a2b-3c=512M");
  ASSERT_TRUE(limit);
  EXPECT_EQ(*limit, std::pair(std::string("GPU-1a2b-3c"), std::string("512M")));
  for (const char* wrong : {"", "=", "0=", "0=G", "0=10", "0=10K", "0=-1G", "0=00M", "=1G", "0 1=1G", "0=12345678M"})
    EXPECT_FALSE(parse_memory_limit(wrong)) << wrong;
}

}  // namespace
}  // namespace gso::test::settings_test
