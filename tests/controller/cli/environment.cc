// The command line reads GSO_… variables: those of the person who runs the tests, and of ctest, must not count.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace gso {
namespace {

class WithoutSettings final : public testing::Environment {
 public:
  void SetUp() override {
    std::vector<std::string> names;
    for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
      const std::string_view entry(*at);
      if (entry.starts_with("GSO_")) names.emplace_back(entry.substr(0, entry.find('=')));
    }
    for (const std::string& name : names) unsetenv(name.c_str());
  }
};

[[maybe_unused]] testing::Environment* const kAdded = testing::AddGlobalTestEnvironment(new WithoutSettings);

}  // namespace
}  // namespace gso
