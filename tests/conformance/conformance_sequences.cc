// Plays request sequences on two API servers and compares what they answer: how the simulated server is kept honest.
//
//   conformance_sequences --kubeconfig admin.kubeconfig --etcd http://127.0.0.1:2379 [--only TEXT] [--show]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/conformance/difference.h"
#include "tests/conformance/player.h"
#include "tests/conformance/sequence.h"
#include "tests/conformance/server.h"

namespace gso::conformance {
namespace {

namespace asio = boost::asio;
using nlohmann::json;

struct Arguments {
  std::string server_a = "sim";
  RemoteServer server_b;
  std::string folder;
  std::string root;
  std::string only;
  std::string record;
  bool show = false;
};

// What is left to play on one server, and what came of it.
struct Run {
  Server* server = nullptr;
  const std::vector<Sequence>* sequences = nullptr;
  std::vector<std::string> namespaces;  // By sequence.
  std::vector<std::size_t> order;
  std::size_t next = 0;
  std::size_t until = 0;
  int working = 0;
  std::unique_ptr<k8s::Signal> done;
  std::vector<Performance> performances;
};

asio::awaitable<void> work(Run* run) {
  while (run->next < run->until) {
    const std::size_t index = run->order[run->next++];
    run->performances[index] = co_await play(run->server, &(*run->sequences)[index], run->namespaces[index]);
  }
  if (--run->working == 0) run->done->notify();
}

asio::awaitable<void> work_together(Run* run, int jobs, std::size_t until) {
  const auto executor = co_await asio::this_coro::executor;
  run->until = until;
  run->working = jobs;
  for (int i = 0; i < jobs; ++i) asio::co_spawn(executor, work(run), asio::detached);
  co_await run->done->wait();
}

// Sequences that make the server forget its history would disturb the others: they come last, one by one.
asio::awaitable<void> play_all(Run* run) {
  std::size_t quiet = 0;
  for (std::size_t i = 0; i < run->sequences->size(); ++i)
    if (!(*run->sequences)[i].forgets_history())
      run->order.insert(run->order.begin() + static_cast<std::ptrdiff_t>(quiet++), i);
    else
      run->order.push_back(i);
  if (quiet > 0) co_await work_together(run, run->server->jobs(), quiet);
  if (quiet < run->order.size()) co_await work_together(run, 1, run->order.size());
}

std::vector<Performance> play_on(Server& server, const std::vector<Sequence>& sequences,
                                 const std::vector<std::string>& namespaces) {
  Run run{.server = &server,
          .sequences = &sequences,
          .namespaces = namespaces,
          .order = {},
          .done = server.clock().make_signal(),
          .performances = std::vector<Performance>(sequences.size())};
  server.run(play_all(&run));
  return std::move(run.performances);
}

void print_differences(const std::vector<Answer>& a, const std::vector<Answer>& b) {
  constexpr std::size_t kMostLines = 24;
  std::size_t lines = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const std::vector<Difference> found = differences(a[i].answer, b[i].answer);
    if (found.empty()) continue;
    fmt::print("  {}\n", a[i].title);
    for (const Difference& difference : found) {
      if (++lines > kMostLines) {
        fmt::print("    … and more\n");
        return;
      }
      fmt::print("    {}\n      a: {}\n      b: {}\n", difference.path, difference.a, difference.b);
    }
  }
}

bool equal(const std::vector<Answer>& a, const std::vector<Answer>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Answer& x, const Answer& y) { return x.title == y.title && x.answer == y.answer; });
}

// True when both servers did as the sequence expects, and the same.
bool judge(const Sequence& sequence, const Performance& a, const Performance& b, bool show) {
  const bool good = a.failure.empty() && b.failure.empty() && equal(a.answers, b.answers);
  fmt::print("{:<7}{}: {}\n", good ? "ok" : "FAILED", sequence.file, sequence.name);
  if (!a.failure.empty()) fmt::print("  a: {}\n", a.failure.substr(0, 2000));
  if (!b.failure.empty()) fmt::print("  b: {}\n", b.failure.substr(0, 2000));
  print_differences(a.answers, b.answers);
  if (show) {
    for (std::size_t i = 0; i < std::max(a.answers.size(), b.answers.size()); ++i) {
      fmt::print("  {}\n", i < a.answers.size() ? a.answers[i].title : b.answers[i].title);
      if (i < a.answers.size()) fmt::print("    a: {}\n", a.answers[i].answer.dump());
      if (i < b.answers.size()) fmt::print("    b: {}\n", b.answers[i].answer.dump());
    }
  }
  return good;
}

void write_record(const std::string& path, const std::vector<Sequence>& sequences,
                  const std::vector<Performance>& performances) {
  json record = json::object();
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    json answers = json::array();
    for (const Answer& answer : performances[i].answers)
      answers.push_back({{"step", answer.title}, {"answer", answer.answer}});
    record[sequences[i].file + ": " + sequences[i].name] = std::move(answers);
  }
  std::ofstream(path) << record.dump(1) << '\n';
}

std::vector<std::string> make_namespaces(std::size_t count) {
  std::random_device random;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("s{}-{:08x}", i, random()));
  return names;
}

k8s::Result<std::unique_ptr<Server>> make_server(const RemoteServer& which) {
  if (which.kubeconfig == "sim") return make_simulated_server();
  return make_remote_server(which);
}

int compare(const Arguments& arguments) {
  k8s::Result<std::vector<Sequence>> sequences = load_sequences(arguments.folder, arguments.root);
  if (!sequences) {
    fmt::print(stderr, "conformance_sequences: {}\n", sequences.error().message);
    return 2;
  }
  std::erase_if(*sequences, [&arguments](const Sequence& sequence) {
    return (sequence.file + ": " + sequence.name).find(arguments.only) == std::string::npos;
  });
  RemoteServer at_a = arguments.server_b;
  at_a.kubeconfig = arguments.server_a;
  k8s::Result<std::unique_ptr<Server>> a = make_server(at_a);
  k8s::Result<std::unique_ptr<Server>> b = make_server(arguments.server_b);
  for (const auto* server : {&a, &b}) {
    if (*server) continue;
    fmt::print(stderr, "conformance_sequences: {}\n", server->error().message);
    return 2;
  }
  fmt::print("a: {}, b: {}, {} sequences\n", (*a)->name(), (*b)->name(), sequences->size());
  const std::vector<std::string> namespaces = make_namespaces(sequences->size());
  const std::vector<Performance> on_a = play_on(**a, *sequences, namespaces);
  // Two plays on one server must not meet in their namespaces; names of equal length keep limits of length equal.
  const bool same = (*a)->name() == (*b)->name();
  const std::vector<Performance> on_b =
      play_on(**b, *sequences, same ? make_namespaces(sequences->size()) : namespaces);
  int passed = 0;
  for (std::size_t i = 0; i < sequences->size(); ++i)
    passed += judge((*sequences)[i], on_a[i], on_b[i], arguments.show) ? 1 : 0;
  if (!arguments.record.empty()) write_record(arguments.record, *sequences, on_b);
  const int failed = static_cast<int>(sequences->size()) - passed;
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace
}  // namespace gso::conformance

int main(int argc, char** argv) {
  gso::conformance::Arguments arguments;
  CLI::App app("Plays request sequences on two Kubernetes API servers, a and b, and compares their answers.");
  app.add_option("--server-a", arguments.server_a, "sim, a kubeconfig, or an http:// address")->capture_default_str();
  app.add_option("--kubeconfig", arguments.server_b.kubeconfig,
                 "Of server b: a kubeconfig, or an http:// address, or sim")
      ->required();
  app.add_option("--etcd", arguments.server_b.etcd,
                 "Address of server b's etcd, for sequences about forgotten versions");
  app.add_option("--jobs", arguments.server_b.jobs, "Sequences played at the same time on a remote server")
      ->capture_default_str();
  app.add_option("--sequences", arguments.folder, "Folder of *.yaml files")->required();
  app.add_option("--root", arguments.root, "Folder that `file:` bodies are relative to")->required();
  app.add_option("--only", arguments.only, "Only sequences whose 'file: name' contains this");
  app.add_option("--record", arguments.record, "Writes b's answers to this file");
  app.add_flag("--show", arguments.show, "Prints all answers");
  CLI11_PARSE(app, argc, argv);
  return gso::conformance::compare(arguments);
}
