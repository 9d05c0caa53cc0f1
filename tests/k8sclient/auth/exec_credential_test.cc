// Exec credential plugins and the child processes below them, with a plugin built for the purpose.
#include "k8sclient/auth/exec_credential.h"

#include <gmock/gmock.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>

#include "k8sclient/auth/child_process.h"
#include "k8sclient/auth/kubeconfig.h"
#include "tests/k8sclient/scripted_transport.h"

namespace k8s::test::exec_credential_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kV1 = "client.authentication.k8s.io/v1";

std::string plugin() {
  return std::getenv("K8SCLIENT_EXEC_PLUGIN");
}

// Runs the plugin for real below a clock whose now() and monotonic() are moved by hand.
struct HandClock final : Clock {
  explicit HandClock(Clock* real) : real_clock(real) {}
  WallTime now() const override { return wall; }
  MonoTime monotonic() const override { return real_clock->monotonic() + passed; }
  boost::asio::awaitable<void> sleep_until(MonoTime deadline) override { return real_clock->sleep_until(deadline); }
  std::unique_ptr<Signal> make_signal() override { return real_clock->make_signal(); }
  Clock* real_clock;
  WallTime wall = *parse_rfc3339("2026-01-01T00:00:00Z");
  Duration passed{0};  // Beside real time, as monotonic() counts it.
};

// Real processes need real waiting: the io_context runs with the real clock until the coroutine ends. Where simulated
// time is used, it stands still while a process runs.
struct ExecTest : testing::Test {
  boost::asio::io_context io;
  std::unique_ptr<Clock> clock = make_real_clock(io.get_executor());
  HandClock hand{clock.get()};
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("k8sclient-exec-" + std::to_string(getpid()) + "-" +
                                                testing::UnitTest::GetInstance()->current_test_info()->name());
  ExecTest() { std::filesystem::create_directories(folder); }
  ~ExecTest() override { std::filesystem::remove_all(folder); }

  template <class T>
  T await(boost::asio::awaitable<T> operation) {
    std::optional<T> out;
    boost::asio::co_spawn(io, std::move(operation), [&out](std::exception_ptr thrown, T value) {
      if (thrown) std::rethrow_exception(thrown);
      out = std::move(value);
    });
    io.restart();
    io.run();
    return std::move(out).value_or(T{});
  }
  std::shared_ptr<CredentialSource> source(std::vector<std::string> args, Clock* by, std::string program = plugin()) {
    ExecConfig config;
    config.api_version = kV1;
    config.command = std::move(program);
    config.args = std::move(args);
    config.install_hint = "Install it from the vendor";
    return make_exec_credential(config, by);
  }
  std::shared_ptr<CredentialSource> source(std::vector<std::string> args) {
    return source(std::move(args), clock.get());
  }
  // By the clock that is moved by hand, with credentials that last until one o'clock.
  std::shared_ptr<CredentialSource> until_one(const std::string& what) {
    return source({what, (folder / "runs").string(), "2026-01-01T01:00:00Z"}, &hand);
  }
  std::size_t runs() const { return text_of("runs").size() / 4; }
  Result<std::string> token_of(const std::shared_ptr<CredentialSource>& of) {
    return await(of->token(MonoTime::never()));
  }
  // Its token as soon as it is there, whatever still runs then.
  Result<std::string> next_token(CredentialSource& of, MonoTime deadline = MonoTime::never()) {
    std::optional<Result<std::string>> got;
    boost::asio::co_spawn(io, of.token(deadline), [&](std::exception_ptr, Result<std::string> token) { got = token; });
    io.restart();
    while (!got && io.run_one() > 0) {
    }
    return got.value_or(fail(Reason::transport, "nothing happens any more"));
  }
  std::string failure(const std::shared_ptr<CredentialSource>& of) {
    const auto token = token_of(of);
    EXPECT_FALSE(token);
    return token ? "" : token.error().message;
  }
  std::string failure(std::vector<std::string> args) { return failure(source(std::move(args))); }
  std::string text_of(const std::string& name) const {
    std::ostringstream out;
    out << std::ifstream(folder / name).rdbuf();
    return out.str();
  }
};

TEST_F(ExecTest, a_plugin_gives_token_and_client_certificate) {
  EXPECT_EQ(token_of(source({"token", "abc"})), "abc");
  const auto with_cert = source({"status", R"("clientCertificateData":"CERT","clientKeyData":"KEY")"});
  EXPECT_EQ(token_of(with_cert).value(), "");
  EXPECT_EQ(with_cert->client_cert_pem(), "CERT");
  EXPECT_EQ(with_cert->client_key_pem(), "KEY");
}

TEST_F(ExecTest, arguments_reach_the_plugin_untouched_by_any_shell) {
  EXPECT_EQ(token_of(source({"token", "$(id);`id`|&*'>x"})), "$(id);`id`|&*'>x");
  EXPECT_FALSE(std::filesystem::exists("x"));
}

TEST_F(ExecTest, the_plugin_sees_the_cluster_its_environment_and_nothing_of_the_operator) {
  const std::string file = (folder / "config").string();
  std::ofstream(file)
      << "current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u}}\n"
         "clusters:\n- name: c\n  cluster:\n    server: https://c:1\n    certificate-authority-data: Q0E=\n"
         "    tls-server-name: kube\n    extensions:\n    - name: client.authentication.k8s.io/exec\n"
         "      extension: {audience: \"7\", retries: 3, deep: [true, null, x]}\n"
         "users:\n- name: u\n  user:\n    exec:\n      apiVersion: " +
             kV1 + "\n      command: " + plugin() + "\n      args: [environment, " + (folder / "seen").string() +
             "]\n      env: [{name: EXTRA, value: more}]\n"
             "      provideClusterInfo: true\n      interactiveMode: IfAvailable\n";
  const auto config = load_kubeconfig({file}, MissingFile::error);
  ASSERT_TRUE(config) << config.error().message;
  const auto connection = connection_from(*config, "", clock.get());
  ASSERT_TRUE(connection) << connection.error().message;
  EXPECT_EQ(token_of(connection->credentials).value(), "clean");
  const std::string seen = text_of("seen");
  const json info = json::parse(seen.substr(0, seen.find('\n')));
  EXPECT_EQ(info["apiVersion"], kV1);
  EXPECT_EQ(info["kind"], "ExecCredential");
  EXPECT_EQ(info["spec"]["interactive"], false);
  EXPECT_EQ(info["spec"]["cluster"],
            json::parse(R"({"server":"https://c:1","certificate-authority-data":"Q0E=","tls-server-name":"kube",
                            "config":{"audience":"7","retries":3,"deep":[true,null,"x"]}})"));
  EXPECT_THAT(seen, HasSubstr("\nmore\n"));
}

TEST_F(ExecTest, a_relative_command_is_found_beside_its_kubeconfig) {
  std::filesystem::create_symlink(plugin(), folder / "plugin");
  const std::string file = (folder / "config").string();
  std::ofstream(file) << "current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u}}\nclusters:\n- "
                         "{name: c, cluster: {server: https://c}}\n"
                         "users:\n- {name: u, user: {exec: {apiVersion: " +
                             kV1 + ", command: ./plugin, args: [token, x], interactiveMode: Never}}}\n";
  const auto config = load_kubeconfig({file}, MissingFile::error);
  const auto connection = connection_from(*config, "", clock.get());
  ASSERT_TRUE(connection) << connection.error().message;
  EXPECT_EQ(token_of(connection->credentials).value(), "x");
}

TEST_F(ExecTest, failures_say_what_the_plugin_said_and_never_what_it_printed) {
  EXPECT_THAT(failure({"fail"}),
              AllOf(HasSubstr(plugin()), HasSubstr("exit code 3"), HasSubstr("your session has expired")));
  EXPECT_THAT(failure({"die"}), HasSubstr("was ended by signal 6"));
  EXPECT_THAT(failure({"flood"}), HasSubstr("printed too much"));
  EXPECT_THAT(failure({"print", "{\"secret-token\""}), AllOf(HasSubstr("not a JSON object"), Not(HasSubstr("secret"))));
  EXPECT_THAT(failure(source({})), HasSubstr("not a JSON object"));
  const auto missing = token_of(source({}, clock.get(), "/no/such/plugin"));
  EXPECT_EQ(missing.error().reason, Reason::unauthorized);
  EXPECT_THAT(missing.error().message,
              AllOf(HasSubstr("cannot run /no/such/plugin: No such file"), HasSubstr("Install it from the vendor")));
  EXPECT_THAT(failure(source({}, clock.get(), "/etc/passwd")), HasSubstr("Permission denied"));
}

TEST_F(ExecTest, a_bare_command_is_looked_up_in_path) {
  EXPECT_THAT(failure(source({}, clock.get(), "true")), HasSubstr("not a JSON object"));
}

TEST_F(ExecTest, a_child_that_keeps_the_pipes_open_delays_nothing_and_is_killed) {
  EXPECT_EQ(token_of(source({"orphan"})).value(), "tok");
}

TEST(ExecOutput, must_be_an_exec_credential_of_the_asked_version) {
  const std::string begin = R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1")";
  const struct {
    std::string status;
    const char* message;
  } cases[] = {
      {R"({"kind":"Pod"})", "kind \"Pod\", expected ExecCredential"},
      {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"})", "the kubeconfig says"},
      {begin + "}", "has no status"},
      {begin + R"(,"status":{}})", "neither token nor"},
      {begin + R"(,"status":{"token":1}})", "neither token nor"},
      {begin + R"(,"status":{"clientKeyData":"k"}})", "must have both"},
      {begin + R"(,"status":{"token":"a\r\nX: y"}})", "white space"},
      {begin + R"(,"status":{"token":"a\u0000b"}})", "control characters"},
      {begin + R"(,"status":{"token":"a","expirationTimestamp":"soon"}})", "\"soon\" is not an RFC 3339 time"},
      {"[]", "not a JSON object"},
  };
  for (const auto& c : cases) {
    const auto decoded = decode_exec_credential(c.status, kV1);
    ASSERT_FALSE(decoded) << c.status;
    EXPECT_THAT(decoded.error().message, HasSubstr(c.message)) << c.status;
  }
}

// Simulated time jumps only when nothing else can run; a process counts as nothing, so the limit comes at once.
struct SimulatedExecTest : ClientFixture {};

TEST_F(SimulatedExecTest, a_plugin_over_its_time_limit_is_killed_with_its_children) {
  ExecConfig config;
  config.api_version = kV1;
  config.command = plugin();
  config.args = {"hang"};
  const auto token = await(make_exec_credential(config, &clock)->token(MonoTime::never()));
  EXPECT_THAT(token.error().message, HasSubstr("was killed: it did not end within 1m0s"));
  EXPECT_EQ(seconds(), 60);
}

TEST_F(ExecTest, one_run_serves_everybody_until_it_expires_or_is_refused) {
  const auto shared = until_one("numbered");
  int answered = 0;
  for (int i = 0; i < 10; ++i) {
    boost::asio::co_spawn(
        io, shared->token(MonoTime::never()),
        [&](std::exception_ptr, const Result<std::string>& token) { answered += token == "token-1"; });
  }
  io.run();
  EXPECT_EQ(answered, 10);
  EXPECT_EQ(runs(), 1U) << "concurrent requests share one run";
  hand.wall += 58min;
  EXPECT_EQ(token_of(shared), "token-1");
  shared->invalidate();
  EXPECT_EQ(token_of(shared), "token-2") << "a 401 has refused the first one";
  hand.wall += 2min;
  EXPECT_EQ(token_of(shared), "token-3") << "the second one has expired";
}

TEST_F(ExecTest, callers_that_waited_for_a_failing_run_fail_with_it) {
  const auto failing = source({"fail"});
  int answered = 0;
  int failed = 0;
  for (int i = 0; i < 3; ++i) {
    boost::asio::co_spawn(io, failing->token(MonoTime::never()),
                          [&](std::exception_ptr, const Result<std::string>& token) { ++(token ? answered : failed); });
  }
  io.run();
  EXPECT_EQ(answered, 0);
  EXPECT_EQ(failed, 3);
}

TEST_F(ExecTest, a_credential_near_its_end_is_used_on_while_the_plugin_makes_the_next) {
  auto shared = until_one("once");  // Hangs from the second run on.
  ASSERT_TRUE(token_of(shared));
  hand.wall += 59min;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(next_token(*shared), "token-1");
  while (runs() < 2) std::this_thread::yield();  // Until the second process has begun.
  shared.reset();
  io.restart();
  io.run();
  EXPECT_EQ(runs(), 2U) << "one run, not one a request";
}

// Every request of a fleet asks for a token.
TEST_F(ExecTest, a_plugin_that_fails_is_run_ever_more_seldom) {
  const auto shared = until_one("fails_later");
  ASSERT_TRUE(token_of(shared));
  hand.wall += 59min;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(token_of(shared), "token-1") << "still good";
  EXPECT_EQ(runs(), 2U) << "the renewal failed, and is not tried again at once";
  hand.wall += 1min;
  EXPECT_THAT(failure(shared), AllOf(HasSubstr("exit code 3"), HasSubstr("is run again after")));
  EXPECT_EQ(runs(), 2U);
  for (std::size_t minute = 1; minute <= 8; ++minute) {
    hand.passed += 61s;
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(token_of(shared));
    EXPECT_EQ(runs(), 2 + minute) << "once a minute, not once a request";
  }
}

TEST_F(ExecTest, a_caller_whose_deadline_passes_leaves_the_plugin_to_the_next_one) {
  const auto slow = source({"wait_for", (folder / "go").string(), (folder / "runs").string()});
  const auto first = next_token(*slow, clock->monotonic() + 1ms);
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().reason, Reason::timeout);
  EXPECT_THAT(first.error().message, AllOf(HasSubstr(plugin()), HasSubstr("is still running")));
  std::ofstream(folder / "go") << "go";
  EXPECT_EQ(next_token(*slow), "tok");
  EXPECT_EQ(runs(), 1U) << "both callers shared one run";
}

TEST_F(ExecTest, a_plugin_ends_with_its_source) {
  auto hanging = source({"hang"});
  bool ended = false;
  boost::asio::co_spawn(io, hanging->token(MonoTime::never()),
                        [&](std::exception_ptr, const Result<std::string>& token) { ended = !token; });
  io.poll();
  EXPECT_FALSE(ended);
  hanging.reset();
  io.run();
  EXPECT_TRUE(ended) << "run() came back, so nothing of the plugin is left to wait for";
}

TEST_F(ExecTest, a_process_reports_how_it_ended) {
  ProcessSpec spec;
  spec.program = plugin();
  spec.args = {"print", "hello"};
  spec.max_stdout = 3;
  const auto result = await(run_process(spec, clock.get()));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 0);
  EXPECT_EQ(result->out, "hel");
  EXPECT_TRUE(result->cut);
  EXPECT_FALSE(result->timed_out);
}

}  // namespace
}  // namespace k8s::test::exec_credential_test
