// micro_bench: the small steps that an event of a large fleet goes through, one by one: decoding, projecting, storing,
// planning. google-benchmark chooses the number of repetitions; its flags apply (--benchmark_filter=…).
//
// Where the machine counts instructions for programs, each line has `instructions` for one repetition, which do not
// depend on what else the machine does. Virtual machines often have no such counter: the head of the output says so.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/watch/store.h"
#include "k8sclient/watch/watch_decoder.h"
#include "reconcilers/model/project.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace {

using namespace gso;

// Instructions of this process in user mode, from the processor's counter.
class InstructionCounter {
 public:
  InstructionCounter() {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.size = sizeof attributes;
    attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    descriptor_ = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
    if (descriptor_ < 0) why_ = std::strerror(errno);
  }
  ~InstructionCounter() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  InstructionCounter(const InstructionCounter&) = delete;
  InstructionCounter& operator=(const InstructionCounter&) = delete;

  // Empty: instructions are counted.
  [[nodiscard]] const std::string& why_not() const { return why_; }
  [[nodiscard]] std::uint64_t count() const {
    std::uint64_t value = 0;
    if (descriptor_ >= 0 && read(descriptor_, &value, sizeof value) != sizeof value) return 0;
    return value;
  }

 private:
  int descriptor_ = -1;
  std::string why_;
};

const InstructionCounter& counter() {
  static const InstructionCounter kCounter;
  return kCounter;
}

// Repeats `work`, which returns something that must not be optimised away, and reports its instructions.
template <class Work>
void repeat(benchmark::State& state, Work work) {
  const std::uint64_t before = counter().count();
  for (auto _ : state) {
    auto result = work();
    benchmark::DoNotOptimize(result);
  }
  if (counter().why_not().empty()) {
    state.counters["instructions"] =
        benchmark::Counter(static_cast<double>(counter().count() - before), benchmark::Counter::kAvgIterations);
  }
}

void report_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(bytes));
}

// A Node of 27 KB, the median of production GPU nodes: labels of NFD, managedFields, images.
std::string node_json(int number, int version) {
  std::string labels;
  std::string fields;
  std::string images;
  for (int k = 0; k < 60; ++k) {
    labels += fmt::format(R"("feature.node.kubernetes.io/cpu-cpuid.FEATURE{}":"true",)", k);
    fields += fmt::format(R"("f:feature.node.kubernetes.io/cpu-cpuid.FEATURE{}":{{}},)", k);
  }
  for (int k = 0; k < 80; ++k) {
    images += fmt::format(
        R"({}{{"names":["registry.example.com/team-{}/image@sha256:{:064x}","registry.example.com/team-{}/image:v1.{}.0"],"sizeBytes":{}}})",
        k == 0 ? "" : ",", k, k * 7919, k, k, 100'000'000 + k);
  }
  return fmt::format(
      R"({{"kind":"Node","apiVersion":"v1","metadata":{{"name":"gpu-{0:05}","uid":"uid-{0}","resourceVersion":"{1}","creationTimestamp":"2026-01-01T00:00:00Z","labels":{{{2}"nvidia.com/gpu.present":"true","nvidia.com/gpu.count":"8","nvidia.com/gpu.product":"NVIDIA-A100-SXM4-80GB-SHARED","nvidia.com/gpu.replicas":"4","nvidia.com/gpu.sharing-strategy":"time-slicing","kubernetes.io/hostname":"gpu-{0:05}"}},"managedFields":[{{"manager":"nfd","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:labels":{{{3}".":{{}}}}}}}}}}]}},"spec":{{"providerID":"example:///zone-a/gpu-{0:05}"}},"status":{{"capacity":{{"cpu":"96","nvidia.com/gpu":"32"}},"allocatable":{{"cpu":"96","nvidia.com/gpu":"32"}},"conditions":[{{"type":"Ready","status":"True","lastHeartbeatTime":"2026-01-01T00:{4:02}:{5:02}Z"}}],"images":[{6}]}}}})",
      number, version, labels, fields, version / 60 % 60, version % 60, images);
}

// An object that can be read past its end, as the client hands them out.
std::string padded(std::string text) {
  text.reserve(text.size() + k8s::kJsonPadding);
  return text;
}

std::string watch_event(std::string_view object) {
  return fmt::format("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", object);
}

// As TLS hands a stream over: records of 16 KB.
k8s::WatchEvent decode(k8s::WatchDecoder& decoder, std::string_view stream) {
  constexpr std::size_t kRecord = std::size_t{16} * 1024;
  for (; stream.size() > kRecord; stream.remove_prefix(kRecord)) decoder.feed(stream.substr(0, kRecord));
  decoder.feed(stream);
  return decoder.next()->value();
}

void decode_watch_event(benchmark::State& state) {
  const std::string event = watch_event(node_json(1, 1));
  k8s::WatchDecoder decoder;
  repeat(state, [&] { return decode(decoder, event).object.size(); });
  report_bytes(state, event.size());
}
BENCHMARK(decode_watch_event)->Unit(benchmark::kMicrosecond);

void project_node_27kb(benchmark::State& state) {
  const std::string text = padded(node_json(1, 1));
  repeat(state, [&] { return project_node(text).has_value(); });
  report_bytes(state, text.size());
}
BENCHMARK(project_node_27kb)->Unit(benchmark::kMicrosecond);

// Everything between the received bytes and a planner that is not woken.
void heartbeat(benchmark::State& state) {
  constexpr int kVersions = 64;
  std::vector<std::string> events;
  for (int version = 1; version <= kVersions; ++version) events.push_back(watch_event(node_json(1, version)));
  k8s::WatchDecoder decoder;
  k8s::Store<Node> store;
  store.init_done();
  std::size_t next = 0;
  repeat(state, [&] {
    const auto event = decode(decoder, events[next++ % kVersions]);
    store.replace(*project_node(event.object));
    return store.size();
  });
  report_bytes(state, events.front().size());
}
BENCHMARK(heartbeat)->Unit(benchmark::kMicrosecond);

k8s::Store<Node> store_of(int nodes) {
  k8s::Store<Node> store;
  store.init();
  for (int i = 0; i < nodes; ++i) store.init_apply(*project_node(node_json(i, 1)));
  store.init_done();
  return store;
}

void store_find(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  const k8s::Store<Node> store = store_of(nodes);
  std::vector<std::string> names;
  for (int i = 0; i < nodes; ++i) names.push_back(fmt::format("gpu-{:05}", i * 7919LL % nodes));
  std::size_t next = 0;
  repeat(state, [&] { return store.find(names[next++ % names.size()]); });
}
BENCHMARK(store_find)->Arg(5000);

void store_apply_changed_label(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  k8s::Store<Node> store = store_of(nodes);
  const Node* first = store.find("gpu-00000");
  std::vector<Node> versions(2, *first);
  versions[1].unschedulable = true;
  std::size_t next = 0;
  repeat(state, [&] {
    store.replace(versions[++next % 2]);
    return store.size();
  });
}
BENCHMARK(store_apply_changed_label)->Arg(5000);

void store_relist_unchanged(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  k8s::Store<Node> store = store_of(nodes);
  std::vector<Node> all;
  for (const auto& [key, node] : store.all()) all.push_back(*node);
  repeat(state, [&] {
    store.init();
    for (const Node& node : all) store.init_apply(node);
    store.init_done();
    return store.size();
  });
}
BENCHMARK(store_relist_unchanged)->Arg(5000)->Unit(benchmark::kMillisecond);

std::unique_ptr<test::FleetModel> settled_fleet(int nodes) {
  test::FleetSpec spec;
  spec.profiles = {{"any", "ts-4"}};
  spec.nodes = test::alike_nodes(nodes);
  auto fleet = std::make_unique<test::FleetModel>(spec);
  fleet->plan();
  while (!fleet->tick().actions.empty()) continue;
  return fleet;
}

void plan_nothing_changed(benchmark::State& state) {
  const auto fleet = settled_fleet(static_cast<int>(state.range(0)));
  repeat(state, [&] { return fleet->plan().actions.size(); });
}
BENCHMARK(plan_nothing_changed)->Arg(1000)->Arg(5000)->Unit(benchmark::kMicrosecond);

void plan_one_node_relabelled(benchmark::State& state) {
  const auto fleet = settled_fleet(static_cast<int>(state.range(0)));
  const std::string name = "n00001";
  int value = 0;
  repeat(state, [&] {
    fleet->label(name, "example.com/rack", std::to_string(++value % 2));
    return fleet->plan().actions.size();
  });
}
BENCHMARK(plan_one_node_relabelled)->Arg(1000)->Arg(5000)->Unit(benchmark::kMicrosecond);

void plan_from_nothing(benchmark::State& state) {
  const auto fleet = settled_fleet(static_cast<int>(state.range(0)));
  repeat(state, [&] { return fleet->plan_from_scratch(fleet->world).actions.size(); });
}
BENCHMARK(plan_from_nothing)->Arg(1000)->Arg(5000)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const std::string& why = counter().why_not();
  benchmark::AddCustomContext("instructions",
                              why.empty() ? "counted" : "not counted, this machine has no counter: " + why);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
