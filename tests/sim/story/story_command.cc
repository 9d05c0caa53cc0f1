// See story_command.h. The operator is its real binary; the API server is a simulated one that is served here
// (--serve-sim), or any other (--kubeconfig).
#include "tests/sim/story/story_command.h"

#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "k8sclient/api/client.h"
#include "k8sclient/auth/kubeconfig.h"
#include "k8sclient/clock.h"
#include "k8sclient/transport/curl_transport.h"
#include "reconcilers/cluster/manifests.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/http_frontend.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/fleet/fleet.h"
#include "tests/sim/fleet/topology.h"
#include "tests/sim/story/child_operator.h"
#include "tests/sim/story/invariants.h"

namespace gso::sim {
namespace asio = boost::asio;

namespace {

// A folder of our own for the kubeconfig and the operator's log.
class Scratch {
 public:
  explicit Scratch(bool keep) : keep_(keep) {
    std::string name = (std::filesystem::temp_directory_path() / "gso-story-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + name);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!keep_) std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] std::string file(const char* name) const { return (path_ / name).string(); }
  void keep() { keep_ = true; }

 private:
  std::filesystem::path path_;
  bool keep_;
};

constexpr const char* kOperatorUser = "system:serviceaccount:gpu-sharing-operator:gpu-sharing-operator";

// The simulated API server over HTTP, and a way into it without HTTP. The invariants are judged on every write.
struct SimulatedServer {
  SimulatedServer(asio::io_context& io, k8s::Clock& clock)
      : server(io.get_executor(), clock),
        frontend(io.get_executor(), server),
        transport(server, {.user = "kubectl", .user_agent = "gso-story"}) {}
  ApiServer server;
  HttpFrontend frontend;
  InProcessTransport transport;
  Invariants invariants{&server, {.operator_user = kOperatorUser}};
};

k8s::Result<std::vector<std::string>> read_definitions(const std::string& folder) {
  std::vector<std::string> definitions;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".yaml") continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    auto json = yaml_to_json(text);
    if (!json) return std::unexpected(json.error());
    definitions.push_back(*std::move(json));
  }
  if (definitions.empty())
    return k8s::fail(k8s::Reason::invalid, "there are no definitions in folder '" + folder + "'");
  return definitions;
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<std::string>> all{
      {"NODE", "PROFILE", "STRATEGY", "REPLICAS", "PRODUCT", "ALLOCATABLE", "STATE"}};
  all.insert(all.end(), rows.begin(), rows.end());
  std::vector<std::size_t> width(all.front().size(), 0);
  for (const auto& row : all)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  std::printf("\n");
  for (const auto& row : all) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += row[i] + std::string(width[i] - row[i].size() + 3, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", line.c_str());
  }
  std::printf("\n");
}

std::string in_colour(const std::string& line) {
  if (isatty(STDOUT_FILENO) == 0) return line;
  if (line.starts_with("✓")) return "\033[32m✓\033[0m" + line.substr(std::string("✓").size());
  if (line.starts_with("✗")) return "\033[31m✗\033[0m" + line.substr(std::string("✗").size());
  return line.starts_with("    ") ? "\033[2m" + line + "\033[0m" : line;
}

StageOptions story_options(const StorySettings& settings, std::vector<std::string> definitions) {
  StageOptions options;
  options.plugin_version = settings.plugin_version;
  options.time_scale = settings.time_scale;
  options.slack = std::chrono::seconds(60);
  options.custom_resources = std::move(definitions);
  // One identity over all restarts, so that a new process need not wait for the lease of the one that was killed.
  options.operator_settings = {
      {"identity", "story"}, {"namespace", "gpu-sharing-operator"}, {"log-level", "debug"}, {"discovery-period", "1s"}};
  options.progress = [](const std::string& line) {
    std::printf("%s\n", in_colour(line).c_str());
    std::fflush(stdout);
  };
  return options;
}

asio::awaitable<void> tell_and_stop(Story* story, ChildOperator* child, std::optional<std::vector<StoryStep>>* steps) {
  auto told = co_await story->run();
  *steps = std::move(told);
  co_await child->stop(std::chrono::seconds(5));
}

// Keeps the operator's log, and says where it is.
void keep_log(Scratch* scratch) {
  const std::string log = scratch->file("operator.log");
  if (std::filesystem::exists(log)) {
    scratch->keep();
    std::printf("the operator's log: %s\n", log.c_str());
  } else {
    std::printf("the operator was never started, so there is no log of it\n");
  }
}

int tell(const StorySettings& settings, TellShort tell_short) {
  auto definitions = read_definitions(GSO_CRDS);
  if (!definitions) return story_failure(definitions.error().message);
  Scratch scratch(settings.keep);
  asio::io_context io(1);
  const auto clock = k8s::make_real_clock(io.get_executor());

  std::unique_ptr<SimulatedServer> simulated;
  std::unique_ptr<k8s::Transport> curl;
  k8s::Transport* transport = nullptr;
  std::string operator_kubeconfig =
      settings.operator_kubeconfig.empty() ? settings.kubeconfig : settings.operator_kubeconfig;
  if (settings.serve_sim) {
    simulated = std::make_unique<SimulatedServer>(io, *clock);
    transport = &simulated->transport;
    operator_kubeconfig = scratch.file("kubeconfig");
    std::ofstream(operator_kubeconfig) << simulated->frontend.kubeconfig(kOperatorUser);
    std::printf("simulated API server at %s, plugin %s, time x%g\n", simulated->frontend.url().c_str(),
                settings.plugin_version.c_str(), 1.0 / settings.time_scale);
  } else {
    const auto config = k8s::load_kubeconfig({settings.kubeconfig}, k8s::MissingFile::error);
    if (!config) return story_failure(config.error().message);
    auto connection = k8s::connection_from(*config, "", clock.get());
    if (!connection) return story_failure(connection.error().message);
    curl = k8s::make_curl_transport(io.get_executor(), *connection, clock.get());
    transport = curl.get();
    std::printf("API server %s, plugin %s, time x%g\n", connection->server.c_str(), settings.plugin_version.c_str(),
                1.0 / settings.time_scale);
  }
  k8s::ApiClient client(transport, clock.get(), {});
  const std::string log = scratch.file("operator.log");
  if (!settings.stories.empty()) {
    const int code = tell_short(settings, {&io, clock.get(), &client, operator_kubeconfig, log,
                                           story_options(settings, *std::move(definitions))});
    if (code != 0) keep_log(&scratch);
    return code;
  }
  FleetOptions fleet_options;
  fleet_options.nodes = *topology("demo");
  fleet_options.timing.scale = settings.time_scale;
  fleet_options.act_as_controllers = settings.serve_sim;
  Fleet fleet(&client, clock.get(), std::move(fleet_options));
  ChildOperator child(clock.get(), settings.operator_binary, operator_kubeconfig, log);
  Story story(&client, clock.get(), &child, &fleet, story_options(settings, *std::move(definitions)));
  if (simulated) story.invariant = [&judge = simulated->invariants] { return judge.violation(); };

  std::optional<std::vector<StoryStep>> steps;
  asio::signal_set signals(io, SIGTERM, SIGINT);
  signals.async_wait([&io](const boost::system::error_code& error, int) {
    if (!error) io.stop();
  });
  asio::co_spawn(io, fleet.run(), asio::detached);
  asio::co_spawn(io, tell_and_stop(&story, &child, &steps), [&io](const std::exception_ptr& error) {
    io.stop();
    if (error) std::rethrow_exception(error);
  });
  const auto begun = clock->monotonic();
  io.run();
  if (!steps) return story_failure("interrupted");
  print_table(story.node_table());
  std::size_t held = 0;
  for (const auto& step : *steps) held += step.held ? 1 : 0;
  const std::string violation = simulated ? simulated->invariants.violation() : std::string();
  const bool all = held == steps->size() && violation.empty();
  std::printf("%zu of %zu steps held, in %.1f s\n", held, steps->size(),
              std::chrono::duration<double>(clock->monotonic() - begun).count());
  if (!violation.empty()) std::printf("an invariant broke: %s\n", violation.c_str());
  if (!all) keep_log(&scratch);
  return all ? 0 : 1;
}

}  // namespace

int story_failure(const std::string& why) {
  std::fprintf(stderr, "gso-story: %s\n", why.c_str());
  return 2;
}

int story_command(int argc, char** argv, TellShort tell_short) {
  CLI::App app("Tells the story of a GPU fleet and its operator, and checks each step of it.");
  StorySettings settings;
  auto* sim =
      app.add_flag("--serve-sim", settings.serve_sim, "Serve a simulated API server over loopback HTTP, with a fleet");
  auto* kubeconfig =
      app.add_option("--kubeconfig", settings.kubeconfig, "API server to use instead, as its administrator");
  sim->excludes(kubeconfig);
  app.add_option("--operator", settings.operator_binary, "The operator's binary")->required()->check(CLI::ExistingFile);
  app.add_option("--operator-kubeconfig", settings.operator_kubeconfig,
                 "What the operator connects with; default: --kubeconfig");
  app.add_option("--plugin-version", settings.plugin_version, "Device plugin that the fleet runs")
      ->capture_default_str();
  app.add_option("--time-scale", settings.time_scale, "Factor on every delay of the fleet and the operator")
      ->check(CLI::Range(0.001, 1.0))
      ->capture_default_str();
  if (tell_short != nullptr) {
    app.add_option("--stories", settings.stories,
                   "Tell these short stories instead: names with commas, rollouts, seeds, or all");
    app.add_option("--share", settings.share, "K N: only every N-th of these, from the K-th on")
        ->check(CLI::PositiveNumber);
  }
  app.add_flag("--keep", settings.keep, "Keep the kubeconfig and the operator's log");
  CLI11_PARSE(app, argc, argv);
  if (!settings.serve_sim && settings.kubeconfig.empty())
    return story_failure("give --serve-sim, or --kubeconfig FILE");
  try {
    return tell(settings, tell_short);
  } catch (const std::exception& error) {
    return story_failure(error.what());
  }
}

}  // namespace gso::sim
