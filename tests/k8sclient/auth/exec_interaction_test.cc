// Exec credential plugins that talk to a person: on a pseudo terminal, with the plugin built for tests.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "k8sclient/auth/kubeconfig.h"
#include "tests/k8sclient/scripted_transport.h"

namespace k8s::test::exec_interaction_test {
namespace {

using testing::HasSubstr;

// One end is for the plugin; at the other the test types and reads the screen.
class Terminal {
 public:
  Terminal() {
    EXPECT_EQ(openpty(&person_, &plugin_, nullptr, nullptr, nullptr), 0);
    EXPECT_EQ(fcntl(person_, F_SETFL, O_NONBLOCK), 0);
  }
  ~Terminal() {
    close(person_);
    close(plugin_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  [[nodiscard]] Interaction interaction() const { return {plugin_, plugin_}; }
  void type(const std::string& text) {
    EXPECT_EQ(write(person_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  // What is shown, once it contains `text` or after five seconds: the kernel hands a line over a little later.
  std::string screen_with(const std::string& text) {
    std::string out;
    for (int i = 0; i < 50 && out.find(text) == std::string::npos; ++i) {
      pollfd readable{person_, POLLIN, 0};
      poll(&readable, 1, 100);
      std::array<char, 4096> chunk{};
      const ssize_t got = read(person_, chunk.data(), chunk.size());
      if (got > 0) out.append(chunk.data(), static_cast<std::size_t>(got));
    }
    return out;
  }

 private:
  int person_ = -1;
  int plugin_ = -1;
};

Result<Connection> connection_with(const std::string& mode, const std::string& args, Clock* clock,
                                   Interaction interaction) {
  const auto config = parse_kubeconfig(
      "current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u}}\n"
      "clusters:\n- {name: c, cluster: {server: https://c}}\nusers:\n- name: u\n  user:\n    exec:\n"
      "      apiVersion: client.authentication.k8s.io/v1\n      command: " +
          std::string(std::getenv("K8SCLIENT_EXEC_PLUGIN")) + "\n      args: [" + args +
          "]\n      interactiveMode: " + mode + "\n",
      "config");
  if (!config) return std::unexpected(config.error());
  return connection_from(*config, "", clock, interaction);
}

// Real processes need real waiting.
struct ExecInteractionTest : testing::Test {
  boost::asio::io_context io;
  std::unique_ptr<Clock> clock = make_real_clock(io.get_executor());
  Terminal terminal;

  std::string token(const std::string& mode, Interaction interaction) {
    const auto connection = connection_with(mode, "ask", clock.get(), interaction);
    if (!connection) return connection.error().message;
    std::string out;
    boost::asio::co_spawn(io, connection->credentials->token(MonoTime::never()),
                          [&out](const std::exception_ptr&, const Result<std::string>& answer) {
                            out = answer ? *answer : answer.error().message;
                          });
    io.restart();
    io.run();
    return out;
  }
};

TEST_F(ExecInteractionTest, a_plugin_shows_a_code_and_reads_an_answer_at_the_terminal_unless_it_must_never) {
  for (const char* mode : {"IfAvailable", "Always", "Never"}) {
    const bool never = std::string(mode) == "Never";
    terminal.type("yes\n");
    EXPECT_EQ(token(mode, terminal.interaction()), never ? "typed-" : "typed-yes");
    EXPECT_THAT(terminal.screen_with("stderr=1"), HasSubstr(never ? "code ABCD: interactive=false stdin=0 stderr=1"
                                                                  : "code ABCD: interactive=true stdin=1 stderr=1"))
        << mode;
  }
}

TEST_F(ExecInteractionTest, a_keyboard_alone_leaves_what_it_says_captured) {
  terminal.type("yes\n");
  Interaction keyboard = terminal.interaction();
  keyboard.messages = -1;
  EXPECT_EQ(token("IfAvailable", keyboard), "typed-yes");
}

TEST_F(ExecInteractionTest, without_a_terminal_nothing_is_asked_and_always_is_refused) {
  EXPECT_EQ(token("IfAvailable", {}), "typed-");
  Interaction screen = terminal.interaction();
  screen.input = -1;
  for (const Interaction& none : {Interaction{}, screen})
    EXPECT_THAT(token("Always", none), HasSubstr("there is no terminal here"));
}

// Simulated time jumps while a process runs, so the limit comes at once.
struct SimulatedInteractionTest : ClientFixture {
  Terminal terminal;
  std::string failure(Interaction interaction) {
    const auto connection = connection_with("IfAvailable", "wait_for, /no/such/file, /dev/null", &clock, interaction);
    if (!connection) return connection.error().message;
    const auto token = await(connection->credentials->token(MonoTime::never()));
    return token ? "" : token.error().message;
  }
};

TEST_F(SimulatedInteractionTest, a_person_has_the_life_of_a_device_code_and_nobody_one_minute) {
  EXPECT_THAT(failure(terminal.interaction()), HasSubstr("did not end within 15m0s; what it wrote to stderr is above"));
  EXPECT_EQ(seconds(), 900);
  EXPECT_THAT(failure({}), HasSubstr("did not end within 1m0s; it wrote nothing to stderr"));
}

}  // namespace
}  // namespace k8s::test::exec_interaction_test
