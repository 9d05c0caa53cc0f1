// fleet_bench: the real operator binary against a simulated API server and fleet over loopback HTTP. Prints what a
// fleet costs: start to synced, resident memory, the time from an edited ConfigMap to the first write, writes per
// changed and per unchanged node, and the operator's CPU.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "k8sclient/api/client.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/model/labels.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/http_frontend.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/fleet/fleet.h"
#include "tests/sim/fleet/topology.h"
#include "tests/sim/story/child_operator.h"

namespace {

namespace asio = boost::asio;
using namespace gso;
using namespace gso::sim;
using nlohmann::json;

constexpr const char* kOperator = "gpu-sharing-operator";

struct Arguments {
  std::string binary;
  int nodes = 1000;
  std::size_t node_bytes = 27'000;  // The median of production GPU nodes (JSON).
  double time_scale = 0.02;
  bool edit = true;
  int copies = 0;
  // The bench fails above these.
  double most_memory_mib = 1e6;  // At the operator's peak.
  double most_patches_unchanged = 1e6;
  double most_patches_changed = 1e6;
};

double milliseconds(k8s::Duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A "VmRSS:   12345 kB" line of /proc, in MiB.
double memory_mib(pid_t pid, const std::string& field) {
  std::istringstream lines(read_file(fmt::format("/proc/{}/status", pid)));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(field + ":")) return std::strtod(line.c_str() + field.size() + 1, nullptr) / 1024;
  return 0;
}

double cpu_seconds(pid_t pid) {
  const std::string stat = read_file(fmt::format("/proc/{}/stat", pid));
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

class Bench {
 public:
  Bench(asio::io_context& io, k8s::Clock& clock, Arguments arguments, std::string scratch)
      : io_(io),
        clock_(clock),
        arguments_(std::move(arguments)),
        log_(scratch + "/operator.log"),
        server_(io.get_executor(), clock),
        frontend_(io.get_executor(), server_),
        transport_(server_, ClientIdentity{}),
        client_(&transport_, &clock, {}),
        fleet_(&client_, &clock, fleet_options()),
        operator_(&clock, arguments_.binary, scratch + "/kubeconfig", log_) {
    std::ofstream(scratch + "/kubeconfig") << frontend_.kubeconfig(kOperator);
    server_.add_audit_listener([this](const AuditEntry& entry) { count(entry); });
  }

  asio::awaitable<void> run() {
    asio::co_spawn(io_, fleet_.run(), asio::detached);
    co_await set_up();
    co_await start_operator();
    if (arguments_.edit && arguments_.copies == 0) co_await edit();
    judge();
    co_await operator_.kill();
    if (arguments_.copies == 0) fleet_.stop();
    io_.stop();
  }

 private:
  FleetOptions fleet_options() const {
    FleetOptions options;
    options.nodes = *topology(fmt::format("uniform:{}", arguments_.nodes));
    options.timing.scale = arguments_.time_scale;
    // The emulated DaemonSet controller looks at every node each time: seldom, so that the machine is the operator's.
    options.timing.daemonset_sync = std::chrono::seconds(20);
    options.timing.heartbeat = k8s::Duration(0);
    options.timing.node_lost = std::chrono::hours(24 * 365);
    return options;
  }

  void count(const AuditEntry& entry) {
    if (entry.user != kOperator || entry.gvr.resource != "nodes") return;
    if (node_patches_++ == 0) first_patch_ = clock_.monotonic();
  }

  asio::awaitable<void> put(k8s::Gvr gvr, std::string ns, json object) {
    const auto created = co_await client_.create(gvr, ns, object.dump());
    if (!created) throw std::runtime_error(created.error().message);
  }

  asio::awaitable<void> set_up() {
    const k8s::Gvr crds("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    co_await put(crds, "", open_definition("nvidia.com", "clusterpolicies", "ClusterPolicy", "v1", false));
    for (const auto& entry : std::filesystem::directory_iterator(GSO_CRDS)) {
      if (entry.path().extension() != ".yaml") continue;
      const auto text = yaml_to_json(read_file(entry.path()));
      if (!text) throw std::runtime_error(text.error().message);
      co_await put(crds, "", json::parse(*text));
    }
    const k8s::Gvr namespaces("", "v1", "namespaces");
    for (const char* ns : kNamespaces) {
      json object;
      object["metadata"]["name"] = ns;
      co_await put(namespaces, "", object);
    }
    const PluginInstall install;
    co_await put(config_maps_, install.ns, config_map(install.ns, install.config_map, profiles(4)));
    co_await put(k8s::Gvr("nvidia.com", "v1", "clusterpolicies"), "", cluster_policy(install));
    json policy;
    policy["apiVersion"] = kApiVersion;
    policy["kind"] = "SharingPolicy";
    policy["metadata"]["name"] = "default";
    policy["spec"]["rollout"] = json::parse(
        R"({"maxUnavailable":"100%","maxUnavailablePerGroup":"100%","canary":{"nodesPerGroup":0},"workloads":"Interrupt"})");
    co_await put(k8s::Gvr("gpusharing.dev", "v1alpha1", "sharingpolicies"), "", policy);
    co_await until_shared(4);
    co_await pad_nodes();
    if (arguments_.copies > 0) co_await copy_first_node();
  }

  static json copy_of(const json& object, const std::string& number) {
    json out = object;
    for (const char* field : {"uid", "resourceVersion", "creationTimestamp", "managedFields"})
      out["metadata"].erase(field);
    out["metadata"]["name"] = out["metadata"]["name"].get<std::string>() + "-" + number;
    return out;
  }

  // More nodes than can be emulated: they and their pods are only there, as the first one is.
  asio::awaitable<void> copy_first_node() {
    fleet_.stop();
    const k8s::Gvr pod_kind("", "v1", "pods");
    const json node = server_.list(nodes_).front();
    json pods = json::array();
    for (const json& pod : server_.list(pod_kind))
      if (pod["spec"].value("nodeName", "") == node["metadata"]["name"]) pods.push_back(pod);
    for (int i = 0; i < arguments_.copies; ++i) {
      const json copy = copy_of(node, std::to_string(i));
      co_await put(nodes_, "", copy);
      for (const json& pod : pods) {
        json running = copy_of(pod, std::to_string(i));
        running["spec"]["nodeName"] = copy["metadata"]["name"];
        co_await put(pod_kind, pod["metadata"]["namespace"].get<std::string>(), running);
      }
    }
    fmt::print("{} copies of the first node, with {} pods each\n", arguments_.copies, pods.size());
    std::fflush(stdout);
  }

  static std::map<std::string, std::string> profiles(int replicas) {
    std::map<std::string, std::string> data;
    data["any"] = fmt::format(
        "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: {}\n",
        replicas);
    return data;
  }

  // GPUs x replicas on every node: eight GPUs each.
  asio::awaitable<void> until_shared(int replicas) {
    const std::string wanted = std::to_string(8 * replicas);
    for (int done = 0; done < arguments_.nodes;) {
      co_await clock_.sleep_for(std::chrono::seconds(1));
      done = 0;
      for (const json& node : server_.list(nodes_)) {
        const bool there = node["status"].value("/allocatable/nvidia.com~1gpu"_json_pointer, "") == wanted;
        const bool settled = !node["metadata"]["labels"].contains(std::string(kStateLabel));
        done += there && settled ? 1 : 0;
      }
    }
  }

  asio::awaitable<void> pad_nodes() {
    for (const json& node : server_.list(nodes_)) {
      const std::size_t size = node.dump().size();
      if (size >= arguments_.node_bytes) continue;
      json patch;
      patch["metadata"]["annotations"]["example.com/padding"] = std::string(arguments_.node_bytes - size, 'x');
      const k8s::ObjectKey key("", node["metadata"]["name"].get<std::string>());
      const auto patched = co_await client_.merge_patch(nodes_, key, patch.dump());
      if (!patched) throw std::runtime_error(patched.error().message);
    }
  }

  asio::awaitable<void> start_operator() {
    const OperatorSettings settings = operator_settings();
    const k8s::MonoTime begun = clock_.monotonic();
    const auto started = operator_.start(settings);
    if (!started) throw std::runtime_error(started.error().message);
    while (read_file(log_).find("All stores synced") == std::string::npos) {
      const std::string trouble = operator_.trouble();
      if (!trouble.empty()) throw std::runtime_error(trouble);
      co_await clock_.sleep_for(std::chrono::milliseconds(2));
    }
    fmt::print("start to synced            {:8.0f} ms\n", milliseconds(clock_.monotonic() - begun));
    co_await clock_.sleep_for(std::chrono::seconds(3));
    fmt::print("resident after sync        {:8.1f} MiB (peak {:.1f})\n", memory_mib(operator_.pid(), "VmRSS"),
               memory_mib(operator_.pid(), "VmHWM"));
    fmt::print("CPU to synced              {:8.2f} s\n", cpu_seconds(operator_.pid()));
    fmt::print("PATCHes of unchanged nodes {:8}\n", node_patches_);
    patches_unchanged_ = static_cast<double>(node_patches_);
    std::fflush(stdout);
  }

  static OperatorSettings operator_settings() {
    OperatorSettings settings;
    settings.emplace_back("namespace", "gpu-sharing-operator");
    settings.emplace_back("settle-period", "0s");
    settings.emplace_back("node-status-lag", "0s");
    settings.emplace_back("cluster-max-unavailable", "100%");
    return settings;
  }

  asio::awaitable<void> edit() {
    node_patches_ = 0;
    const double cpu = cpu_seconds(operator_.pid());
    json patch;
    patch["data"] = profiles(8);
    const k8s::ObjectKey key("gpu-operator", "mps-config");
    const auto edited = co_await client_.merge_patch(config_maps_, key, patch.dump());
    if (!edited) throw std::runtime_error(edited.error().message);
    const k8s::MonoTime begun = clock_.monotonic();
    co_await until_shared(8);
    const double nodes = arguments_.nodes;
    fmt::print("edit to first PATCH        {:8.0f} ms\n", milliseconds(first_patch_ - begun));
    fmt::print("edit to all nodes verified {:8.1f} s\n", milliseconds(clock_.monotonic() - begun) / 1000);
    patches_changed_ = static_cast<double>(node_patches_) / nodes;
    fmt::print("PATCHes per changed node   {:8.2f}\n", patches_changed_);
    fmt::print("CPU per changed node       {:8.2f} ms\n", (cpu_seconds(operator_.pid()) - cpu) * 1000 / nodes);
    fmt::print("resident after the change  {:8.1f} MiB (peak {:.1f})\n", memory_mib(operator_.pid(), "VmRSS"),
               memory_mib(operator_.pid(), "VmHWM"));
  }

  void judge() const {
    judge(patches_unchanged_, "PATCHes of unchanged nodes", arguments_.most_patches_unchanged);
    judge(patches_changed_, "PATCHes for each changed node", arguments_.most_patches_changed);
    // A container with a limit below the peak is killed.
    judge(memory_mib(operator_.pid(), "VmHWM"), "MiB of memory at its peak", arguments_.most_memory_mib);
  }

  static void judge(double figure, const char* what, double most) {
    if (figure <= most) return;
    throw std::runtime_error(fmt::format("the operator needed {:.2f} {}, more than {:.2f}", figure, what, most));
  }

  static constexpr const char* kNamespaces[] = {"gpu-operator", "gpu-sharing-operator"};
  const k8s::Gvr nodes_{"", "v1", "nodes"};
  const k8s::Gvr config_maps_{"", "v1", "configmaps"};
  asio::io_context& io_;
  k8s::Clock& clock_;
  Arguments arguments_;
  std::string log_;
  ApiServer server_;
  HttpFrontend frontend_;
  InProcessTransport transport_;
  k8s::ApiClient client_;
  Fleet fleet_;
  ChildOperator operator_;
  std::uint64_t node_patches_ = 0;
  double patches_unchanged_ = 0;
  double patches_changed_ = 0;  // For each node.
  k8s::MonoTime first_patch_;
};

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  Arguments arguments;
  CLI::App app("What a fleet costs the operator");
  app.add_option("--operator", arguments.binary, "The operator's binary")->required();
  app.add_option("--nodes", arguments.nodes, "GPU nodes")->check(CLI::Range(1, 20000));
  app.add_option("--node-bytes", arguments.node_bytes, "Size of one Node as JSON");
  app.add_option("--time-scale", arguments.time_scale, "Factor on the fleet's delays");
  app.add_flag("!--no-edit", arguments.edit, "Only start and memory, no change of the fleet");
  app.add_option("--most-memory", arguments.most_memory_mib, "MiB that the operator is allowed to use at its peak");
  app.add_option("--most-patches-unchanged", arguments.most_patches_unchanged,
                 "PATCHes of all nodes together that are allowed while nothing changes");
  app.add_option("--most-patches-changed", arguments.most_patches_changed,
                 "PATCHes that are allowed for each node of a change");
  app.add_option("--copies", arguments.copies,
                 "Copies of the first node, with its pods, that nobody emulates (--no-edit)")
      ->check(CLI::Range(0, 100000));
  CLI11_PARSE(app, argc, argv);
  std::string scratch = (std::filesystem::temp_directory_path() / "gso-bench-XXXXXX").string();
  if (mkdtemp(scratch.data()) == nullptr) return 2;
  fmt::print("{} nodes of {} bytes, simulated API server over loopback HTTP\n", arguments.nodes, arguments.node_bytes);
  int code = 0;
  try {
    asio::io_context io(1);
    const auto clock = k8s::make_real_clock(io.get_executor());
    Bench bench(io, *clock, arguments, scratch);
    asio::co_spawn(io, bench.run(), [](const std::exception_ptr& error) {
      if (error) std::rethrow_exception(error);
    });
    io.run();
  } catch (const std::exception& e) {
    fmt::print(stderr, "fleet_bench: {}\n{}", e.what(), read_file(scratch + "/operator.log").substr(0, 4000));
    code = 1;
  }
  std::filesystem::remove_all(scratch);
  return code;
}
