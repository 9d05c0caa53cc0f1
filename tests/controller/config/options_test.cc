// Settings from flags, environment and file: equal names, precedence, complaints; the command line around them, and
// what other commands learn of them.
#include "controller/config/options.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "controller/cli/cli.h"
#include "controller/commands/commands.h"

namespace gso::options_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Sets an environment variable for one test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) { std::ofstream(path) << text; }
  ~ConfigFile() { std::filesystem::remove(path); }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  const std::string path =
      std::filesystem::temp_directory_path() / ("gso-options-" + std::to_string(getpid()) + ".yaml");
};

struct Parsed {
  ParsedArguments invocation;
  std::string out;
  std::string err;
};

Parsed parse(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  ParsedArguments invocation = parse_arguments(arguments, out, err);
  return {std::move(invocation), out.str(), err.str()};
}

TEST(OptionsTest, EveryOneHasANameOfItsOwnADefaultThatItsParserAcceptsAndARangeThatTheHelpShows) {
  const Options defaults;
  std::set<std::string> names;
  const Parsed help = parse({"run", "--help"});
  EXPECT_EQ(help.invocation.exit_code, 0);
  for (const OptionSpec& spec : option_specs()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_EQ(spec.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string::npos) << spec.name;
    EXPECT_THAT(help.out, HasSubstr("--" + spec.name));
    EXPECT_THAT(help.out, HasSubstr(spec.environment()));
    EXPECT_FALSE(spec.doc.empty()) << spec.name;
    Options other;
    const std::string text = spec.get(defaults);
    EXPECT_EQ(spec.set(other, text), "") << spec.name;
    EXPECT_EQ(spec.get(other), text) << spec.name;
    if (spec.type == "DURATION") {
      for (const char* wild : {"-1s", "9000h"})
        EXPECT_THAT(spec.set(other, wild), testing::ContainsRegex("must be (0 or )?from .+ to ")) << spec.name;
      EXPECT_THAT(spec.doc, testing::ContainsRegex("[(](0 or )?.+ to .+[)]$")) << spec.name;
    }
    if (spec.type == "NUMBER") {
      for (const char* wild : {"-1", "9999999999", "1.5", ""})
        EXPECT_THAT(spec.set(other, wild), HasSubstr("is not a whole number from")) << spec.name;
    }
  }
  EXPECT_EQ(option_specs().front().environment(), "GSO_KUBECONFIG");
  EXPECT_TRUE(names.contains("lease-duration"));
}

TEST(OptionsTest, FlagWinsOverEnvironmentOverFileOverDefault) {
  const ConfigFile file(
      "settle-period: 3s\nlog-level: debug\nmax-in-flight: 4\nleader-elect: false\nwatch-list: false\n");
  const Variable settle("GSO_SETTLE_PERIOD", "2s");
  const Variable level("GSO_LOG_LEVEL", "error");
  const Variable dry("GSO_DRY_RUN", "true");
  const Variable config("GSO_CONFIG", "/there-is/none");
  const Parsed parsed = parse({"run", "--config", file.path, "--settle-period=1s", "--watch-list"});
  ASSERT_EQ(parsed.invocation.exit_code, std::nullopt) << parsed.err;
  const Options& options = parsed.invocation.options;
  EXPECT_EQ(options.settle, 1s) << "flag";
  EXPECT_EQ(options.log_level, LogLevel::error) << "environment";
  EXPECT_EQ(options.max_in_flight, 4) << "file";
  EXPECT_EQ(options.lease_duration, 15s) << "default";
  EXPECT_TRUE(options.watch_list) << "a flag alone means true";
  EXPECT_TRUE(options.dry_run);
  EXPECT_FALSE(options.leader_elect);
  const Variable from_the_environment("GSO_CONFIG", file.path.c_str());
  EXPECT_FALSE(parse({"run"}).invocation.options.leader_elect);
  EXPECT_FALSE(parse({"run", "--watch-list=false"}).invocation.options.watch_list);
}

TEST(OptionsTest, AVariableThatIsNoSettingIsNamedWithTheNearestOne) {
  EXPECT_EQ(unknown_variables({"GSO_LOG_LEVLE=debug", "GSO_LOG_LEVEL=debug", "GSO_CONFIG=/f", "PATH=/bin", "GSOX=1",
                               "GSO_METRICS_SERVICE_HOST=10.0.0.1", "GSO_METRICS_SERVICE_PORT_HTTP=80",
                               "GSO_METRICS_PORT=tcp://10.0.0.1:80", "GSO_METRICS_PORT_80_TCP_ADDR=10.0.0.1",
                               "GSO_SOMETHING_ELSE_ALTOGETHER="}),
            (std::vector<std::string>{
                "GSO_LOG_LEVLE in the environment is not a setting and is ignored; did you mean 'GSO_LOG_LEVEL'?",
                "GSO_SOMETHING_ELSE_ALTOGETHER in the environment is not a setting and is ignored"}));
  for (const OptionSpec& spec : option_specs()) EXPECT_TRUE(unknown_variables({spec.environment() + "=1"}).empty());
  const Variable wrong("GSO_SETTEL_PERIOD", "1s");
  EXPECT_THAT(parse({"plan", "f.yaml"}).err, HasSubstr("did you mean 'GSO_SETTLE_PERIOD'?"));
  EXPECT_THAT(parse({"lint", "f.yaml"}).err, testing::Not(HasSubstr("GSO_SETTEL_PERIOD")));
}

TEST(OptionsTest, MistakesInTheFileNameFileLineKeyAndWhatWouldBeRight) {
  struct Case {
    const char* name;
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"typing error", "log-level: info\nsetle-period: 3s\n",
       "c.yaml:2:1: unknown setting 'setle-period'; did you mean 'settle-period'?"},
      {"nothing like it", "wombat: 3s\n", "c.yaml:1:1: unknown setting 'wombat'"},
      {"not a duration", "settle-period: fast\n",
       "c.yaml:1:1: settle-period: 'fast' is not a duration such as 500ms, 10s or 1h30m"},
      {"a list", "- settle-period\n", "c.yaml:1:1: expected a mapping of settings, such as 'settle-period: 10s'"},
      {"nested", "settle-period: {a: b}\n", "c.yaml:1:1: settle-period: expected a single value (DURATION)"},
      {"twice", "settle-period: 1s\nsettle-period: 2s\n", "c.yaml:2:1: 'settle-period' is set twice"},
      {"no YAML", "settle-period: [\n", "c.yaml:2:1: "},
      {"out of range", "max-in-flight: 0\n", "c.yaml:1:1: max-in-flight: '0' is not a whole number from 1 to 64"},
      {"no percentage", "max-unavailable: 120%\n",
       "c.yaml:1:1: max-unavailable: '120%' is neither a count of at least 1 nor a percentage from 1% to 100%"},
      {"no node at all", "max-unavailable: 0\n",
       "c.yaml:1:1: max-unavailable: '0' is neither a count of at least 1 nor a percentage from 1% to 100%"},
      {"no time at all", "verify-timeout: 0s\n", "c.yaml:1:1: verify-timeout: '0s' must be from 1s to 24h0m0s"},
      {"below zero", "settle-period: -1s\n", "c.yaml:1:1: settle-period: '-1s' must be from 0s to 24h0m0s"},
      {"too often", "resync-period: 1ms\n", "c.yaml:1:1: resync-period: '1ms' must be 0 or from 1s to 24h0m0s"},
  };
  for (const Case& c : cases) {
    Options options;
    const k8s::Result<void> applied = apply_config_file(options, "c.yaml", c.text, {});
    ASSERT_FALSE(applied.has_value()) << c.name;
    EXPECT_THAT(applied.error().message, testing::StartsWith(c.message)) << c.name;
  }
  Options options;
  for (const char* text : {"", "# nothing\n"}) EXPECT_TRUE(apply_config_file(options, "c.yaml", text, {}).has_value());
  EXPECT_FALSE(apply_config_file(options, "c.yaml", "settle-period: soon\n", {"settle-period"}).has_value())
      << "a value that a flag overrides is still checked";
}

TEST(OptionsTest, RelationsBetweenDurationsAreUsageErrors) {
  const Parsed blind = parse({"run", "--verify-timeout=12s"});
  EXPECT_EQ(blind.invocation.exit_code, 2);
  EXPECT_THAT(blind.err, HasSubstr("verify-timeout 12s must be greater than node-status-lag 12s"));
  const Parsed parsed = parse({"run", "--lease-duration=5s"});
  EXPECT_EQ(parsed.invocation.exit_code, 2);
  EXPECT_THAT(parsed.err, HasSubstr("lease-duration 5s must be greater than renew-deadline 10s"));
  EXPECT_EQ(parse({"run", "--lease-duration=5s", "--leader-elect=false"}).invocation.exit_code, std::nullopt);
}

TEST(OptionsTest, PlannerSettingsFollowTheOptions) {
  const Parsed parsed = parse({"run", "--namespace=ops", "--mode=Observe", "--max-unavailable=3", "--label-mode=verify",
                               "--workloads=Evict", "--cluster-max-unavailable=7%", "--mps-signal-fixed"});
  const PlannerSettings settings = parsed.invocation.options.planner_settings();
  EXPECT_EQ(settings.operator_namespace, "ops");
  EXPECT_EQ(settings.mode, PolicyMode::observe);
  EXPECT_EQ(settings.rollout.max_unavailable, (IntOrPercent{3, false}));
  EXPECT_EQ(settings.label_mode, PlannerSettings::LabelMode::verify);
  EXPECT_EQ(settings.rollout.workloads, WorkloadMode::evict);
  EXPECT_TRUE(settings.mps_signal_fixed);
  EXPECT_EQ(settings.cluster_max_unavailable, (IntOrPercent{7, true}));
}

TEST(CommandLineTest, TheShortFormOfNamespaceIsTheOperatorsAndThatOfAPodNamedAlone) {
  EXPECT_EQ(parse({"status", "-n", "ops"}).invocation.options.namespace_, "ops");
  EXPECT_EQ(parse({"rollout", "pause", "-n", "ops"}).invocation.options.namespace_, "ops");
  EXPECT_EQ(parse({"explain", "pod", "p", "-n", "team"}).invocation.options.namespace_, "team");
  EXPECT_TRUE(names_a_pod_alone({"pod", "p"}));
  EXPECT_FALSE(names_a_pod_alone({"pod", "team/p"}));
  EXPECT_FALSE(names_a_pod_alone({"node"}));
}

TEST(CommandLineTest, PeopleChooseHowLongARequestMayTake) {
  EXPECT_EQ(parse({"status"}).invocation.options.request_timeout, 30s);
  for (std::vector<std::string> command :
       {std::vector<std::string>{"status"}, {"rollout", "undo"}, {"check"}, {"cleanup"}}) {
    command.emplace_back("--request-timeout=2m");
    EXPECT_EQ(parse(command).invocation.options.request_timeout, 2min) << command.front();
  }
}

TEST(CliTest, WrongUsageIsExitStatusTwo) {
  struct Case {
    const char* name;
    std::vector<std::string> arguments;
    const char* complaint;
  };
  const Case cases[] = {
      {"unknown verb", {"rollout", "foo"}, "rollout: unknown command 'foo'. Commands: status, history"},
      {"unknown command", {"frobnicate"}, "unknown command 'frobnicate'. Commands: run, lint"},
      {"bad request timeout",
       {"status", "--request-timeout", "0s"},
       "--request-timeout: '0s' is not a duration from 1s"},
      {"no setting of the operator", {"run", "--request-timeout", "5s"}, "--request-timeout"},
      {"expect without GPUs", {"expect", "--config", "c"}, "exactly one of --devices and --node"},
      {"a config file that is not there", {"run", "--config", "/does/not/exist"}, "/does/not/exist: cannot be read"},
  };
  for (const Case& c : cases) {
    const Parsed parsed = parse(c.arguments);
    EXPECT_EQ(parsed.invocation.exit_code, 2) << c.name;
    EXPECT_THAT(parsed.err, HasSubstr(c.complaint)) << c.name;
  }
}

TEST(CliTest, APlanOfNothingThatCanBeReadByAnUnknownReconcilerOrForNoTimeIsWrongUsage) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"plan", "-"},
                                                    {"plan", "--only", "node.nonsense", "-"},
                                                    {"plan", "--now", "yesterday", "-"}}) {
    std::istringstream in(arguments.size() == 2 ? "{" : "");
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(run_cli(arguments, in, out, err), 2);
    EXPECT_NE(err.str(), "");
  }
}

TEST(OptionsTest, DebugIsServedOnLoopbackOnly) {
  const auto is_valid = [](const char* address) {
    Options options;
    options.debug_bind_address = address;
    return validate(options).has_value();
  };
  for (const char* address : {"", "0", "127.0.0.1:8082", "localhost:0", "[::1]:8082"})
    EXPECT_TRUE(is_valid(address)) << address;
  for (const char* address : {":8082", "0.0.0.0:8082", "10.0.0.1:8082", "[::]:8082", "127.0.0.1.example.com:1", "8082"})
    EXPECT_FALSE(is_valid(address)) << address;
}

TEST(OptionsTest, ATlsServerNeedsItsCertificate) {
  Options webhook;
  webhook.webhook_bind_address = ":9443";
  Options metrics;
  metrics.metrics_secure = true;
  for (const auto& [options, missing] :
       {std::pair(webhook, "webhook-cert-file"), std::pair(metrics, "tls-cert-file")}) {
    const k8s::Result<void> valid = validate(options);
    ASSERT_FALSE(valid.has_value()) << missing;
    EXPECT_NE(valid.error().message.find(missing), std::string::npos) << valid.error().message;
  }
  webhook.webhook_cert_file = metrics.tls_cert_file = "tls.crt";
  webhook.webhook_private_key_file = metrics.tls_private_key_file = "tls.key";
  EXPECT_TRUE(validate(webhook).has_value());
  webhook.webhook_client_ca = "clients.crt";
  EXPECT_TRUE(validate(webhook).has_value());
  webhook.webhook_bind_address = "0";
  EXPECT_THAT(validate(webhook).error().message, testing::HasSubstr("webhook-client-ca has no effect"));
  EXPECT_TRUE(validate(metrics).has_value());
}

// What commands learn of the running operator's options from its state ConfigMap.
World world_that_says(const std::string& text) {
  World world;
  ConfigMap state;
  state.meta.ns = k8s::Interned("gpu-sharing-operator");
  state.meta.name = "gpu-sharing-operator-state";
  state.data["options.json"] = std::make_shared<const std::string>(text);
  world.configmaps.apply(std::move(state));
  return world;
}

TEST(OperatorOptions, NameWhatDiffersFromTheDefaultsAndChangesPlans) {
  Options options;
  EXPECT_EQ(print_operator_options(options), "");
  options.settle = 1min;
  options.cluster_max_unavailable = {3, false};
  options.identity = "pod-1";
  options.kubeconfig = "/secret/path";
  options.max_in_flight = 4;
  EXPECT_EQ(print_operator_options(options), R"({"cluster-max-unavailable":"3","settle-period":"1m0s"})");
}

TEST(OperatorOptions, AreThoseByWhichCommandsJudge) {
  PlannerSettings own;
  own.operator_namespace = "gpu-sharing-operator";
  own.adopt_drift = true;
  own.kai.explain_all = true;
  const PlannerSettings read = settings_of_operator(
      world_that_says(R"({"cluster-max-unavailable":"3","settle-period":"1m0s","label-mode":"verify"})"), own);
  EXPECT_EQ(read.cluster_max_unavailable.of(1000), 3);
  EXPECT_EQ(read.settle, 1min);
  EXPECT_EQ(read.label_mode, PlannerSettings::LabelMode::verify);
  EXPECT_TRUE(read.adopt_drift) << "what only a command asks for";
  EXPECT_TRUE(read.kai.explain_all) << "what only a command asks for";
}

TEST(OperatorOptions, ThatCannotBeReadLeaveTheCommandItsOwn) {
  PlannerSettings own;
  own.settle = 7s;
  for (const char* text : {"", "{", "[]", "null"})
    EXPECT_EQ(settings_of_operator(world_that_says(text), own).settle, 7s);
  EXPECT_EQ(settings_of_operator(World(), own).settle, 7s);
  // Of a newer release: what this one knows counts.
  const PlannerSettings read = settings_of_operator(
      world_that_says(R"({"settle-period":"30s","no-such-option":"1","label-mode":"sometimes","kubeconfig":"/x"})"),
      own);
  EXPECT_EQ(read.settle, 30s);
  EXPECT_EQ(read.label_mode, PlannerSettings::LabelMode::automatic);
}

}  // namespace
}  // namespace gso::options_test
