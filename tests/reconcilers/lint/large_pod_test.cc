// The webhook lints pods on the one thread that renews the Lease: a pod four times as large takes about four times as
// long, not sixteen times.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "reconcilers/lint/lint.h"

namespace gso::large_pod_test {
namespace {

struct Shape {
  const char* name;
  std::string (*pod)(int count);
};

std::string pod_of(const std::string& metadata, const std::string& spec) {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p")" + metadata + R"(},"spec":{)" + spec + "}}";
}

// Parts of a list or of a mapping: "{0}" in `part` is the number of the part.
std::string repeated(int count, const char* part) {
  std::string out;
  for (int i = 0; i < count; ++i) out += (i == 0 ? "" : ",") + fmt::format(fmt::runtime(part), i);
  return out;
}

const Shape kShapes[] = {
    {"volumes and mounts",
     [](int count) {
       return pod_of("", R"("volumes":[)" + repeated(count, R"({{"name":"v{0}","emptyDir":{{}}}})") +
                             R"(],"containers":[{"name":"c","image":"i","volumeMounts":[)" +
                             repeated(count, R"({{"name":"v{0}","mountPath":"/m{0}"}})") + "]}]");
     }},
    {"labels that are no strings",
     [](int count) {
       return pod_of(R"(,"labels":{)" + repeated(count, R"("l{0}":1)") + "}",
                     R"("containers":[{"name":"c","image":"i"}])");
     }},
    {"limits and requests",
     [](int count) {
       const std::string amounts = repeated(count, R"("nvidia.com/r{0}":"1")");
       return pod_of("", R"("containers":[{"name":"c","image":"i","resources":{"limits":{)" + amounts +
                             R"(},"requests":{)" + amounts + "}}}]");
     }},
    {"containers and settings of them",
     [](int count) {
       return pod_of(
           R"(,"annotations":{)" + repeated(count, R"("nvidia.com/container.c{0}.gpu-memory.limit":"1Gi")") + "}",
           R"("containers":[)" + repeated(count, R"({{"name":"c{0}","image":"i"}})") + "]");
     }},
};

// Processor time, the least of three tries: other programs on the machine do not count.
std::clock_t effort(const std::string& text) {
  std::clock_t least = std::numeric_limits<std::clock_t>::max();
  for (int i = 0; i < 3; ++i) {
    const std::clock_t begun = std::clock();
    EXPECT_EQ(lint_text("p", text, {}).size(), 1U);
    least = std::min(least, std::clock() - begun);
  }
  return least;
}

TEST(LargePod, IsLintedInTimeThatGrowsAsItsSize) {
  for (const Shape& shape : kShapes) {
    const std::clock_t small = effort(shape.pod(2000));
    EXPECT_LT(effort(shape.pod(8000)), 9 * small) << shape.name;
  }
}

}  // namespace
}  // namespace gso::large_pod_test
