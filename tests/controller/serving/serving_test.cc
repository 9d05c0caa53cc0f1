// Metrics text, log lines, and the health server over a real loopback socket.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "controller/config/logging.h"
#include "controller/serving/http_server.h"
#include "controller/serving/metrics.h"
#include "controller/serving/process_metrics.h"
#include "controller/serving/routes.h"
#include "tests/controller/sim_time.h"

namespace gso::serving_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

// The complaints of a strict reader of the Prometheus text format.
std::vector<std::string> complaints(const std::string& page) {
  static const std::regex kSample(R"(^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-zA-Z_][a-zA-Z0-9_]*="(\\.|[^"\\])*",?)*\})? )"
                                  R"((-?[0-9.]+(e[+-]?[0-9]+)?|NaN|[+-]Inf)$)");
  static const std::regex kType(R"(^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram)$)");
  std::vector<std::string> out;
  std::set<std::string> seen;
  std::set<std::string> families;
  std::string family;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (line.starts_with("# HELP ") || line == "# EOF") continue;
    if (std::regex_match(line, match, kType)) {
      family = match[1];
      if (!families.insert(family).second) out.push_back("family twice: " + family);
    } else if (!std::regex_match(line, match, kSample)) {
      out.push_back("no sample: " + line);
    } else if (!std::string(match[1]).starts_with(family)) {
      out.push_back("outside its family: " + line);
    } else if (!seen.insert(std::string(match[1]) + std::string(match[2])).second) {
      out.push_back("series twice: " + line);
    }
  }
  if (!page.empty() && page.back() != '\n') out.emplace_back("no line feed at the end");
  return out;
}

TEST(MetricsTest, CountersGaugesAndHistogramsAreValidText) {
  Metrics metrics;
  metrics.add("workqueue_adds_total", {{"name", "fleet"}, {"controller", "fleet"}});
  metrics.add("workqueue_adds_total", {{"name", "fleet"}, {"controller", "fleet"}}, 2);
  metrics.set("gpusharing_nodes", {{"state", "odd \"quotes\"\\ and\nline"}}, 3);
  metrics.observe("workqueue_work_duration_seconds", {{"name", "fleet"}, {"controller", "fleet"}}, 0.5);
  metrics.observe("workqueue_work_duration_seconds", {{"name", "fleet"}, {"controller", "fleet"}}, 1e9);
  fill_process_metrics(metrics);
  const std::string page = metrics.render(Metrics::Format::prometheus);
  EXPECT_THAT(complaints(page), testing::IsEmpty()) << page;
  EXPECT_THAT(page, HasSubstr("workqueue_adds_total{name=\"fleet\",controller=\"fleet\"} 3\n"));
  for (const char* line :
       {R"(bucket{name="fleet",controller="fleet",le="0.1"} 0)", R"(bucket{name="fleet",controller="fleet",le="1"} 1)",
        R"(bucket{name="fleet",controller="fleet",le="+Inf"} 2)", R"(count{name="fleet",controller="fleet"} 2)"})
    EXPECT_THAT(page, HasSubstr(std::string("workqueue_work_duration_seconds_") + line + "\n"));
  EXPECT_THAT(page, Not(HasSubstr("gpusharing_rollouts"))) << "a family without series is left out";
  EXPECT_GT(metrics.value("process_resident_memory_bytes"), 1e6);
  metrics.observe("gpusharing_plan_seconds", {}, 0.005);
  EXPECT_THAT(metrics.render(Metrics::Format::prometheus),
              HasSubstr("gpusharing_plan_seconds_bucket{le=\"0.005\"} 1\n"))
      << "a bucket holds its upper bound";

  const std::string other = metrics.render(Metrics::Format::openmetrics);
  EXPECT_THAT(other,
              HasSubstr("# TYPE workqueue_adds counter\nworkqueue_adds_total{name=\"fleet\",controller=\"fleet\"} 3\n"))
      << "OpenMetrics drops total from the family";
  EXPECT_TRUE(other.ends_with("# EOF\n"));
  EXPECT_THAT(complaints(other), testing::IsEmpty());
}

TEST(ProcessMetrics, TheStartTimeIsThatOfTheProcessAndNotOfTheFirstScrape) {
  const std::string system = "cpu  1 2 3\nintr 5\nctxt 6\nbtime 1767225600\nprocesses 9\n";
  const std::string fields = " S 1 7 7 0 -1 4194560 300 0 0 0 5 2 0 0 20 0 1 0 12345 8000000 600\n";
  EXPECT_DOUBLE_EQ(start_time("7 (operator)" + fields, system, 100), 1767225600 + 123.45);
  EXPECT_DOUBLE_EQ(start_time("7 (a name) of (two) 1" + std::string(")") + fields, system, 100), 1767225600 + 123.45);
  EXPECT_EQ(start_time("7 (operator) S 1 7", system, 100), 0) << "too short";
  EXPECT_EQ(start_time("", system, 100), 0);
  EXPECT_EQ(start_time("7 (operator)" + fields, "cpu 1\n", 100), 0);
}

TEST(ProcessLimitTest, TheMemoryLimitIsThatOfEitherVersionOfControlGroups) {
  EXPECT_EQ(memory_limit("268435456\n", ""), 268435456U);
  EXPECT_EQ(memory_limit("", "134217728\n"), 134217728U);
  EXPECT_EQ(memory_limit("max\n", ""), std::nullopt);
  EXPECT_EQ(memory_limit("", "9223372036854771712\n"), std::nullopt) << "how version 1 says that none is set";
  EXPECT_EQ(memory_limit("", ""), std::nullopt);
  EXPECT_LE(largest_answer(), std::size_t{32} << 20U);
}

TEST(MetricsTest, TheCatalogFollowsTheNamingRules) {
  for (const Metrics::Family& family : metrics_catalog()) {
    EXPECT_EQ(family.type == Metrics::Type::counter, family.name.ends_with("_total")) << family.name;
    EXPECT_EQ(family.type == Metrics::Type::histogram, !family.buckets.empty()) << family.name;
    EXPECT_TRUE(std::is_sorted(family.buckets.begin(), family.buckets.end())) << family.name;
    EXPECT_FALSE(family.help.empty()) << family.name;
  }
}

// A slip in monitoring must not end the operator in the middle of a rollout.
TEST(MetricsTest, AnUndeclaredFamilyOrLabelIsDroppedAndReportedOnce) {
  Metrics metrics;
  std::vector<std::string> reports;
  metrics.on_misuse([&reports](const std::string& what) { reports.push_back(what); });
  for (int i = 0; i < 2; ++i) {
    metrics.add("nonsense_total");
    metrics.add("workqueue_adds_total", {{"queue", "fleet"}});
    metrics.set("workqueue_adds_total", {{"name", "fleet"}, {"controller", "fleet"}}, 1);
    metrics.observe("nonsense_seconds", {}, 1);
    metrics.clear("workqueue_adds_total");
  }
  EXPECT_THAT(reports, testing::ElementsAre(
                           "nonsense_total: no such family", "workqueue_adds_total: labels differ from the catalog",
                           "workqueue_adds_total: used as another type", "nonsense_seconds: no such family"));
  EXPECT_THAT(metrics.misuses(), testing::SizeIs(4));
  EXPECT_THAT(metrics.render(Metrics::Format::prometheus), Not(HasSubstr("nonsense")));
}

TEST(LoggingTest, JsonLinesParseWhateverTheTextsHoldTextLinesQuoteWhereNeededAndSecretsAreHidden) {
  const auto now = *k8s::parse_rfc3339("2026-01-02T03:04:05.678Z");
  const std::string odd = "quote \" backslash \\ newline \n tab \t bell \x07 bad utf8 \xff\xc3 é";
  const std::string line = format_record(LogFormat::json, LogLevel::warning, now, "Watch failed",
                                         {{"error", odd}, {"count", 3}, {"share", 0.5}, {"leading", true}});
  auto parsed = nlohmann::json::parse(line);
  EXPECT_THAT(parsed["error"].get<std::string>(), HasSubstr("newline \n tab \t bell"));
  parsed.erase("error");
  EXPECT_EQ(parsed, nlohmann::json::parse(R"({"time":"2026-01-02T03:04:05.678Z","level":"warn","msg":"Watch failed",
    "count":3,"share":0.5,"leading":true})"));
  EXPECT_EQ(line.find('\n'), std::string::npos);
  for (const char* key : {"token", "bearerToken", "clientSecret", "password"})
    EXPECT_THAT(format_record(LogFormat::json, LogLevel::info, now, "x", {{key, "s3cr3t"}}), Not(HasSubstr("s3cr3t")));
  EXPECT_EQ(format_record(LogFormat::text, LogLevel::info, now, "Wrote", {{"node", "n1"}, {"detail", "a b"}, {"n", 2}}),
            "2026-01-02T03:04:05.678Z INFO  Wrote node=n1 detail=\"a b\" n=2");
}

// U+009B begins an escape sequence as ESC [ does, and U+202E shows what follows backwards.
TEST(LoggingTest, NoLineHasCharactersThatATerminalObeys) {
  const std::string odd = "a\u009b2J\u202eb\u2028c\x7f\x1b[2J\nd";
  for (const LogFormat format : {LogFormat::json, LogFormat::text}) {
    const std::string line = format_record(format, LogLevel::info, {}, "Found " + odd, {{"name", odd}});
    for (const char* raw : {"\u009b", "\u202e", "\u2028", "\x7f", "\x1b", "\n"}) EXPECT_THAT(line, Not(HasSubstr(raw)));
    EXPECT_TRUE(format == LogFormat::text || nlohmann::json::parse(line)["name"] == odd);
  }
  EXPECT_LT(format_record(LogFormat::json, LogLevel::info, {}, "x", {{"name", std::string(1 << 20, 'a')}}).size(),
            20'000U);
}

TEST(LoggingTest, LevelsBelowTheChosenOneAreDropped) {
  std::vector<std::string> lines;
  Logger log(
      LogFormat::text, LogLevel::warning, [] { return k8s::WallTime{}; },
      [&](const std::string& line) { lines.push_back(line); });
  log.info("no");
  log.warning("yes");
  log.error("yes");
  EXPECT_EQ(lines.size(), 2U);
  log.set_level(LogLevel::debug);
  log.debug("yes, from now on");
  EXPECT_EQ(lines.size(), 3U);
  Logger::silent()->error("nothing");
}

// A health server on the real clock and a loopback port, and clients on the same thread (asio is built for one).
class HttpServerTest : public testing::Test {
 protected:
  void start(HttpServerOptions options) {
    metrics->add("workqueue_adds_total", {{"name", "fleet"}, {"controller", "fleet"}});
    Routes routes;
    routes.ready = [this] { return ready; };
    routes.live = [] { return ProbeAnswer{}; };
    routes.metrics = metrics;
    routes.debug = debug;
    start(std::move(options), make_handler(std::move(routes)));
  }
  void start(HttpServerOptions options, HttpHandler handler) {
    options.address = "127.0.0.1:0";
    server = std::make_unique<HttpServer>(io.get_executor(), clock.get(), options, std::move(handler));
    ASSERT_TRUE(server->listen().has_value());
    port = static_cast<std::uint16_t>(server->port());
    ASSERT_GT(port, 0);
    boost::asio::co_spawn(io, server->run(), [this](const std::exception_ptr& error) { ended = error == nullptr; });
  }
  void TearDown() override {
    if (server == nullptr) return;
    server->stop();
    io.run();
    EXPECT_TRUE(ended);
  }
  // Sends bytes on a fresh connection and reads to its end.
  std::string exchange(const std::string& request) {
    std::string answer;
    bool done = false;
    begin(request, &answer, [&done] { done = true; });
    while (!done) io.run_one();
    return answer;
  }
  // As exchange(), in the background. `from`: the client's address.
  void begin(const std::string& request, std::string* answer, std::function<void()> at_its_end,
             const std::string& from = "127.0.0.1") {
    boost::asio::co_spawn(io, send_and_read(port, request, answer, from),
                          [at_its_end](const std::exception_ptr& error) {
                            EXPECT_EQ(error, nullptr);
                            at_its_end();
                          });
  }
  static boost::asio::awaitable<void> send_and_read(std::uint16_t port, std::string request, std::string* answer,
                                                    std::string from) {
    const auto executor = co_await boost::asio::this_coro::executor;
    boost::asio::ip::tcp::socket socket(executor, {boost::asio::ip::make_address(from), 0});
    const auto quiet = boost::asio::as_tuple(boost::asio::use_awaitable);
    const boost::asio::ip::tcp::endpoint server(boost::asio::ip::make_address("127.0.0.1"), port);
    co_await socket.async_connect(server, quiet);
    co_await boost::asio::async_write(socket, boost::asio::buffer(request), quiet);
    co_await boost::asio::async_read(socket, boost::asio::dynamic_buffer(*answer), quiet);
  }
  std::string get(const std::string& path, const std::string& headers = "") {
    return exchange("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers + "\r\n");
  }

  std::vector<std::string> answered;  // Of clients that still read when a test ends, until the server has closed them.
  std::vector<std::size_t> closed;    // Numbers of such clients.
  boost::asio::io_context io{1};
  std::unique_ptr<k8s::Clock> clock = k8s::make_real_clock(io.get_executor());
  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
  std::unique_ptr<HttpServer> server;
  ProbeAnswer ready;
  DebugHandler debug;  // Null: off.
  std::uint16_t port = 0;
  bool ended = false;
};

TEST_F(HttpServerTest, ProbesAnswerTheirStateAndMetricsComeInTheFormThatIsAskedFor) {
  ready = {false, "pods of gpu-operator not synced"};
  start({});
  EXPECT_THAT(get("/healthz"), HasSubstr("HTTP/1.1 200 OK"));
  EXPECT_THAT(get("/livez?verbose"), HasSubstr("HTTP/1.1 200 OK"));
  const std::string answer = get("/readyz");
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 500"));
  EXPECT_THAT(answer, HasSubstr("pods of gpu-operator not synced"));
  EXPECT_THAT(get("/metrics"), HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(get("/metrics"), HasSubstr("workqueue_adds_total{name=\"fleet\",controller=\"fleet\"} 1"));
  EXPECT_THAT(get("/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n"), HasSubstr("# EOF"));
}

// Whoever asks without end must not take the time in which the Lease is renewed.
TEST_F(HttpServerTest, PagesOfMetricsAreRenderedSoManyTimesASecond) {
  Sim sim;
  int renders = 0;
  metrics->on_render([&renders](Metrics&) { ++renders; });
  Routes routes;
  routes.metrics = metrics;
  routes.clock = &sim.clock;
  const HttpHandler handler = make_handler(std::move(routes));
  const auto get_page = [&] {
    HttpRequest request;
    request.method = "GET";
    request.path = "/metrics";
    return sim.run(handler(std::move(request))).body;
  };
  metrics->set("gpusharing_nodes_drifting", {}, 1);
  for (int i = 0; i < 50; ++i) EXPECT_THAT(get_page(), HasSubstr("gpusharing_nodes_drifting 1\n"));
  EXPECT_EQ(renders, 21);
  sim.clock.run_for(1s);
  metrics->set("gpusharing_nodes_drifting", {}, 2);
  EXPECT_THAT(get_page(), HasSubstr("gpusharing_nodes_drifting 2\n"));
}

TEST_F(HttpServerTest, AKeptAliveConnectionServesMoreThanOneRequestAndEverythingElseIsRefusedPolitely) {
  start({});
  const std::string one = "GET /healthz HTTP/1.1\r\nHost: x\r\n";
  const std::string three = exchange(one + "\r\n" + one + "\r\n" + one + "Connection: close\r\n\r\n");
  std::size_t answers = 0;
  for (std::size_t at = three.find("200 OK"); at != std::string::npos; at = three.find("200 OK", at + 1)) ++answers;
  EXPECT_EQ(answers, 3U);
  EXPECT_THAT(get("/debug"), HasSubstr("HTTP/1.1 404"));
  EXPECT_THAT(exchange("POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
              HasSubstr("HTTP/1.1 405"));
  EXPECT_THAT(exchange("nonsense\r\n\r\n"), HasSubstr("HTTP/1.1 400"));
  EXPECT_THAT(get("/" + std::string(20'000, 'a')), Not(HasSubstr("200 OK"))) << "a header without end";
  EXPECT_THAT(exchange("HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), HasSubstr("200 OK"));
  EXPECT_THAT(get("/healthz"), HasSubstr("HTTP/1.1 200 OK")) << "and it still serves";
}

TEST_F(HttpServerTest, DebugIsServedWhereItIsOnAndItsPutsAreNotOthers) {
  debug = [](const HttpRequest& request) {
    return HttpAnswer(request.method == "PUT" ? 201 : 200, "application/json", request.path + "\n");
  };
  start({});
  EXPECT_THAT(get("/debug/nodes/n?x=1"),
              testing::AllOf(HasSubstr("200 OK"), HasSubstr("application/json"), HasSubstr("\r\n/debug/nodes/n\n")));
  const std::string end = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
  EXPECT_THAT(exchange("PUT /debug/log-level/debug" + end), HasSubstr("HTTP/1.1 201"));
  EXPECT_THAT(exchange("PUT /metrics" + end), HasSubstr("HTTP/1.1 405"));
  EXPECT_THAT(exchange("DELETE /debug/cache" + end), HasSubstr("HTTP/1.1 405"));
}

TEST_F(HttpServerTest, MoreClientsThanConnectionsAreAllServed) {
  HttpServerOptions options;
  options.max_connections = 2;
  start(options);
  answered.resize(20);
  for (std::size_t i = 0; i < answered.size(); ++i) {
    // As the API server keeps its connections, and as curl does not.
    const std::string kept = i % 2 == 0 ? "" : "Connection: close\r\n";
    begin("GET /healthz HTTP/1.1\r\nHost: x\r\n" + kept + "\r\n", &answered[i], [] {});
  }
  const auto is_answered = [](const std::string& answer) { return answer.find("200 OK") != std::string::npos; };
  const auto until = std::chrono::steady_clock::now() + 5s;  // Less than the server waits for a next request.
  while (!std::ranges::all_of(answered, is_answered) && std::chrono::steady_clock::now() < until) io.run_one_for(100ms);
  EXPECT_THAT(answered, testing::Each(HasSubstr("200 OK")));
  EXPECT_LE(server->connections(), 2U);
}

TEST_F(HttpServerTest, AConnectionThatIsKeptForItsNextRequestGivesWay) {
  HttpServerOptions options;
  options.max_connections = 2;
  start(options);
  answered.resize(2);
  for (std::string& answer : answered) {
    begin("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", &answer, [this] { closed.push_back(0); });
    while (answer.find("200 OK") == std::string::npos) io.run_one();
  }
  ASSERT_EQ(server->connections(), 2U);
  EXPECT_THAT(get("/healthz"), HasSubstr("200 OK"));
  while (closed.empty()) io.run_one();
  EXPECT_EQ(closed.size(), 1U) << "the other one is kept";
  EXPECT_EQ(server->connections(), 1U);
}

TEST_F(HttpServerTest, ASilentClientIsClosedAtItsDeadline) {
  HttpServerOptions options;
  options.header_timeout = 100ms;
  start(options);
  EXPECT_EQ(exchange("GET /heal"), "") << "read ends because the server closed";
}

// The deadlines are far away: whoever is closed has given way.
TEST_F(HttpServerTest, TheOldestClientWithoutACompleteRequestGivesWay) {
  HttpServerOptions options;
  options.max_connections = 4;
  options.header_timeout = options.request_timeout = 10min;
  start(options);
  const auto hold = [this](const std::string& address, std::size_t number) {
    begin("GET /heal", &answered[number], [this, number] { closed.push_back(number); }, address);
    while (server->connections() < std::min<std::size_t>(number + 1, 4)) io.run_one();
  };
  answered.resize(4);
  hold("127.0.0.2", 0);  // Older than the others, but the only one of its address.
  for (std::size_t i = 1; i < 4; ++i) hold("127.0.0.1", i);
  EXPECT_THAT(get("/healthz"), HasSubstr("200 OK"));
  while (closed.empty()) io.run_one();
  EXPECT_THAT(closed, testing::ElementsAre(1));
}

TEST_F(HttpServerTest, ManyTimesMoreSilentClientsThanConnectionsCostNoAnswer) {
  HttpServerOptions options;
  options.max_connections = 8;
  options.header_timeout = options.request_timeout = 10min;
  start(options);
  answered.resize(100);
  for (std::string& answer : answered) begin("GET /livez HTTP/1.1\r\nX-A: ", &answer, [] {});
  for (int i = 0; i < 3; ++i) EXPECT_THAT(get("/livez"), HasSubstr("200 OK"));
}

// Bodies that are announced and not sent hold the memory of all bodies.
class HttpBodyTest : public HttpServerTest {
 protected:
  static constexpr std::size_t kSize = 200'000;
  void start_for_bodies() {
    HttpServerOptions options;
    options.header_timeout = options.request_timeout = 10min;
    options.body_limit = 1'000'000;
    options.body_kept = kSize;
    options.memory_budget = 2 * kSize;
    start(std::move(options), say_sizes);
  }
  static boost::asio::awaitable<HttpAnswer> say_sizes(HttpRequest request) {
    const std::string start = request.body.substr(0, 3);
    co_return text_answer(200, fmt::format("{} of {}: {}\n", request.body.size(), request.body_size, start));
  }
  static std::string post(std::size_t announced, std::size_t sent) {
    return "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " + std::to_string(announced) +
           "\r\n\r\n" + std::string(sent, 'x');
  }
};

TEST_F(HttpBodyTest, BodiesThatNeverEndGiveWayToOthers) {
  start_for_bodies();
  answered.resize(8);
  for (std::string& answer : answered) begin(post(kSize, kSize / 2), &answer, [this] { closed.push_back(0); });
  while (server->connections() < answered.size()) io.run_one();
  EXPECT_THAT(exchange(post(1000, 1000)), HasSubstr("\r\n\r\n1000 of 1000: xxx\n")) << "small ones need no budget";
  while (closed.size() < answered.size() - 2)
    io.run_one();  // Two fit into the budget; the others waited in vain, or gave way.
  EXPECT_THAT(exchange(post(kSize, kSize)), HasSubstr("\r\n\r\n200000 of 200000: xxx\n"));
}

TEST_F(HttpBodyTest, OfALongBodyOnlyTheBeginningIsKept) {
  start_for_bodies();
  EXPECT_THAT(exchange(post(kSize + 1, kSize + 1)), HasSubstr("\r\n\r\n65536 of 200001: xxx\n"));
  EXPECT_THAT(exchange(post(1'000'001, 0)), HasSubstr("HTTP/1.1 413"));
  EXPECT_THAT(exchange("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"),
              HasSubstr("HTTP/1.1 411"));
}

// A bug in the answer to one request. It must not use up a connection each time, nor end the operator.
TEST_F(HttpServerTest, ARequestWhoseHandlerThrowsEndsItsConnectionAndNothingElse) {
  debug = [](const HttpRequest&) -> HttpAnswer { throw std::runtime_error("no such node"); };
  HttpServerOptions options;
  options.request_timeout = options.answer_timeout = 200ms;
  std::vector<std::string> failures;
  options.request_failed = [&failures](const std::string& what) { failures.push_back(what); };
  start(options);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(get("/debug/nodes/n"), "");
  EXPECT_EQ(failures, std::vector<std::string>(3, "no such node"));
  EXPECT_EQ(server->connections(), 0U);
  EXPECT_THAT(get("/healthz"), HasSubstr("200 OK"));
}

TEST(HttpServerAddressTest, AddressesThatCannotBeServedAreNamed) {
  Sim sim;
  for (const char* address : {"", "8080", "127.0.0.1:x", "nowhere.example:1", "127.0.0.1:70000"}) {
    HttpServer server(sim.io.get_executor(), &sim.clock, {.address = address}, {});
    const k8s::Result<void> listening = server.listen();
    ASSERT_FALSE(listening.has_value()) << address;
    EXPECT_EQ(listening.error().reason, k8s::Reason::invalid) << address;
  }
  HttpServer first(sim.io.get_executor(), &sim.clock, {.address = "127.0.0.1:0"}, {});
  ASSERT_TRUE(first.listen().has_value());
  HttpServer second(sim.io.get_executor(), &sim.clock, {.address = "127.0.0.1:" + std::to_string(first.port())}, {});
  const k8s::Result<void> taken = second.listen();
  ASSERT_FALSE(taken.has_value());
  EXPECT_THAT(taken.error().message, HasSubstr("cannot listen on 127.0.0.1:"));
}

}  // namespace
}  // namespace gso::serving_test
