// kubeconfig, in-cluster configuration, token files: what they resolve to, and what their errors say.
#include "k8sclient/auth/kubeconfig.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "k8sclient/auth/connection.h"
#include "tests/k8sclient/scripted_transport.h"

namespace k8s::test::kubeconfig_test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

// A folder of its own for each test, removed at the end.
struct ConfigTest : ClientFixture {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("k8sclient-" + std::to_string(getpid()) + "-" + testing::UnitTest::GetInstance()->current_test_info()->name());
  ConfigTest() { std::filesystem::create_directories(folder); }
  ~ConfigTest() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  Result<Connection> connect(const std::string& text, const std::string& context = {}) {
    const auto config = load_kubeconfig({write("config", text)}, MissingFile::error);
    if (!config) return std::unexpected(config.error());
    return connection_from(*config, context, &clock);
  }
  std::string token_of(const Connection& connection) {
    if (connection.credentials == nullptr) return "(none)";
    const auto token = await(connection.credentials->token(MonoTime::never()));
    return token ? *token : "error: " + token.error().message;
  }
};

// A kubeconfig of one cluster, user and context, with extra lines in the first two.
std::string config(const std::string& cluster_lines, const std::string& user_lines) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: main\n"
         "contexts:\n- name: main\n  context: {cluster: c, user: u, namespace: gpu}\n"
         "clusters:\n- name: c\n  cluster:\n    server: https://10.0.0.1:6443/\n" +
         cluster_lines + "users:\n- name: u\n  user:\n    x: 1\n" + user_lines;
}

TEST_F(ConfigTest, reads_every_field_of_a_cluster_and_a_user) {
  const auto connection =
      connect(config("    certificate-authority-data: Q0E=\n    tls-server-name: kubernetes\n"
                     "    proxy-url: socks5://proxy:1080\n",
                     "    client-certificate-data: Q0VSVA==\n    client-key-data: S0VZ\n"
                     "    token: secret\n"));
  ASSERT_TRUE(connection) << connection.error().message;
  EXPECT_EQ(connection->server, "https://10.0.0.1:6443");
  EXPECT_EQ(connection->ca_pem, "CA");
  EXPECT_EQ(connection->tls_server_name, "kubernetes");
  EXPECT_EQ(connection->proxy_url, "socks5://proxy:1080");
  EXPECT_EQ(connection->client_cert_pem, "CERT");
  EXPECT_EQ(connection->client_key_pem, "KEY");
  EXPECT_EQ(connection->ca_file + connection->client_cert_file + connection->client_key_file, "");
  EXPECT_EQ(connection->namespace_name, "gpu");
  EXPECT_FALSE(connection->insecure_skip_tls_verify);
  EXPECT_EQ(token_of(*connection), "secret");
}

TEST_F(ConfigTest, the_as_fields_become_headers_of_every_request) {
  const auto connection = connect(config("",
                                         "    token: secret\n    as: jane@example.com\n    as-uid: u-1\n"
                                         "    as-groups: [dev, system:masters]\n"
                                         "    as-user-extra: {acme.com/100%: [a, \"\"], reason: [debug]}\n"));
  ASSERT_TRUE(connection) << connection.error().message;
  EXPECT_THAT(connection->headers,
              testing::ElementsAre(testing::Pair("Impersonate-User", "jane@example.com"),
                                   testing::Pair("Impersonate-Uid", "u-1"), testing::Pair("Impersonate-Group", "dev"),
                                   testing::Pair("Impersonate-Group", "system:masters"),
                                   testing::Pair("Impersonate-Extra-acme.com%2F100%25", "a"),
                                   testing::Pair("Impersonate-Extra-acme.com%2F100%25", ""),
                                   testing::Pair("Impersonate-Extra-reason", "debug")));
  EXPECT_EQ(token_of(*connection), "secret");
  EXPECT_TRUE(connect(config("", "    token: secret\n"))->headers.empty());
}

TEST_F(ConfigTest, paths_are_relative_to_the_file_they_stand_in) {
  write("pki/ca.crt", "THE CA");
  write("pki/me.crt", "MY CERT");
  write("pki/me.key", "MY KEY");
  const auto connection = connect(
      config("    certificate-authority: pki/ca.crt\n",
             "    client-certificate: ./pki/me.crt\n    client-key: " + (folder / "pki/me.key").string() + "\n"));
  ASSERT_TRUE(connection) << connection.error().message;
  EXPECT_EQ(connection->ca_pem, "THE CA");
  EXPECT_EQ(connection->client_cert_pem, "MY CERT");
  EXPECT_EQ(connection->client_key_pem, "MY KEY");
  EXPECT_EQ(connection->ca_file, (folder / "pki/ca.crt").string());
  EXPECT_EQ(connection->client_cert_file, (folder / "./pki/me.crt").string());
  EXPECT_EQ(connection->client_key_file, (folder / "pki/me.key").string());
  EXPECT_EQ(token_of(*connection), "(none)");
}

TEST_F(ConfigTest, json_and_a_context_by_name_and_no_user_work_too) {
  const auto connection =
      connect(R"({"contexts":[{"name":"a","context":{"cluster":"c"}},{"name":"b","context":{"cluster":"d"}}],
    "clusters":[{"name":"c","cluster":{"server":"http://c"}},{"name":"d","cluster":{"server":"http://d","insecure-skip-tls-verify":true}}],
    "current-context":"a"})",
              "b");
  ASSERT_TRUE(connection) << connection.error().message;
  EXPECT_EQ(connection->server, "http://d");
  EXPECT_TRUE(connection->insecure_skip_tls_verify);
  EXPECT_EQ(connection->namespace_name, "default");
}

TEST_F(ConfigTest, of_several_files_the_first_wins_entry_by_entry) {
  const std::string first = write("first/config",
                                  "contexts:\n- name: x\n  context: {cluster: c, user: u}\n"
                                  "users:\n- name: u\n  user: {token: from-first}\n");
  const std::string second =
      write("second/config",
            "current-context: x\ncontexts:\n- name: x\n  context: {cluster: other}\n"
            "clusters:\n- name: c\n  cluster: {server: 'https://second', certificate-authority: ca}\n"
            "users:\n- name: u\n  user: {token: from-second}\n");
  write("second/ca", "CA OF SECOND");
  const auto merged = load_kubeconfig({(folder / "missing").string(), first, second}, MissingFile::skip);
  ASSERT_TRUE(merged) << merged.error().message;
  const auto connection = connection_from(*merged, "", &clock);
  ASSERT_TRUE(connection) << connection.error().message;
  EXPECT_EQ(connection->server, "https://second");
  EXPECT_EQ(connection->ca_pem, "CA OF SECOND");
  EXPECT_EQ(connection->ca_file, (folder / "second/ca").string());
  EXPECT_EQ(token_of(*connection), "from-first");
}

TEST_F(ConfigTest, errors_name_the_file_the_entry_the_field_and_what_exists) {
  const auto of_user = [](const std::string& line) { return config("", "    " + line + "\n"); };
  const auto exec = [&](const std::string& fields) {
    return of_user("exec: {apiVersion: client.authentication.k8s.io/" + fields + "}");
  };
  const struct {
    std::string text;
    std::string message;
    const char* context = "";
  } cases[] = {
      {config("", ""), "context \"prod\" does not exist; there are: main", "prod"},
      {"contexts:\n- name: a\n- name: b\n", "has no current-context; choose one of its contexts: a, b"},
      {"", "choose one of its contexts: none"},
      {"current-context: a\ncontexts:\n- {name: a, context: {cluster: x}}\n",
       "names cluster \"x\", which does not exist"},
      {"current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: x}}\nclusters:\n- {name: c, cluster: "
       "{server: https://c}}\n",
       "names user \"x\", which does not exist; there are: none"},
      {"current-context: a\ncontexts:\n- {name: a, context: {cluster: c}}\nclusters:\n- {name: c}\n",
       "server of cluster \"c\" is \"\", it must begin with https:// or http://"},
      {config("    certificate-authority-data: '%%%'\n", ""),
       "certificate-authority-data of cluster \"c\" is not valid base64"},
      {config("    certificate-authority: nowhere/ca.crt\n", ""), "nowhere/ca.crt: No such file"},
      {config("    certificate-authority: .\n", ""), "Is a directory"},
      {config("    certificate-authority-data: Q0E=\n    insecure-skip-tls-verify: true\n", ""),
       "has both a certificate-authority and insecure-skip-tls-verify"},
      {of_user("client-key-data: S0VZ"), "user \"u\" has client-key without client-certificate"},
      {of_user("tokenFile: tok"), "tokenFile of user \"u\": cannot read"},
      {of_user("username: me\n    password: x"), "username and password were removed from Kubernetes"},
      {of_user("auth-provider: {name: gcp}"), "use an exec plugin"},
      {of_user("token: x\n    as-groups: [admins]"), "user \"u\": as-uid, as-groups and as-user-extra need `as`"},
      {of_user("as-user-extra: {reason: [x]}"), "need `as`"},
      {of_user("as: \"root\\r\\nX: y\""), "user \"u\": the value for Impersonate-User has a control character"},
      {of_user("as: root\n    as-groups: admins"), "as-groups must be a list, it is a scalar"},
      {of_user("as: root\n    as-user-extra: {reason: x}"), "reason must be a list, it is a scalar"},
      {"contexts:\n- name: a\n  context: {cluster: [}\n", "line 3"},
      {"contexts:\n\t- name: a\n", "line 2"},
      {"contexts: 7\n", "line 1, column 11: contexts must be a list, it is a scalar"},
      {"users:\n- name: u\n  user: [x]\n", "line 3, column 9: user of \"u\" must be a mapping, it is a list"},
      {"clusters:\n- cluster: {}\n", "an entry of clusters has no name"},
      {config("    insecure-skip-tls-verify: maybe\n", ""), "insecure-skip-tls-verify must be true or false"},
      {"kind: Pod\n", "kind is Pod, a kubeconfig has kind Config"},
      {"- a\n", "a kubeconfig must be a mapping"},
      {exec("v1alpha1, command: x"), "use client.authentication.k8s.io/v1 or"},
      {exec("v1, interactiveMode: Never"), "exec of user \"u\": command is missing"},
      {exec("v1, command: x, interactiveMode: Always"), "there is no terminal here"},
      {exec("v1, command: x"), "interactiveMode \"\" is not one of"},
      {exec("v1beta1, command: x, env: [{value: x}]"), "an entry of env has no name"},
  };
  for (const auto& c : cases) {
    const auto connection = connect(c.text, c.context);
    ASSERT_FALSE(connection) << c.message;
    EXPECT_EQ(connection.error().reason, Reason::invalid) << c.message;
    EXPECT_THAT(connection.error().message, AllOf(HasSubstr((folder / "config").string()), HasSubstr(c.message)));
  }
}

TEST_F(ConfigTest, an_extension_for_exec_plugins_may_hold_anything_that_ends) {
  const auto parsed = [](const std::string& extension) {
    return parse_kubeconfig(
        "x: &x [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
        "y: &y [*x, *x, *x, *x, *x, *x, *x, *x, *x, *x]\n"
        "z: &z [*y, *y, *y, *y, *y, *y, *y, *y, *y, *y]\n"
        "clusters: [{name: c, cluster: {server: \"https://h\", extensions: [{name: "
        "client.authentication.k8s.io/exec, extension: " +
            extension + "}]}}]\n",
        "f");
  };
  const auto fine = parsed("{a: [1, x, '1', true, ~]}");
  ASSERT_TRUE(fine.has_value()) << fine.error().message;
  EXPECT_EQ(fine->clusters.at("c").exec_extension_json, R"({"a":[1,"x","1",true,null]})");
  const auto latin = parsed("{a: \"\xfc\"}");
  ASSERT_TRUE(latin.has_value()) << latin.error().message;
  EXPECT_EQ(latin->clusters.at("c").exec_extension_json, "{\"a\":\"\ufffd\"}");
  for (const char* endless : {"&e [*e]", "&e {a: {b: *e}}", "[*z, *z, *z, *z, *z, *z, *z, *z, *z, *z]"}) {
    const auto refused = parsed(endless);
    ASSERT_FALSE(refused.has_value()) << endless;
    EXPECT_THAT(refused.error().message, HasSubstr("100 levels and 10000 values"));
  }
}

TEST_F(ConfigTest, any_prefix_of_a_kubeconfig_is_read_or_refused_but_never_crashes) {
  const std::string text =
      config("    certificate-authority-data: Q0E=\n    extensions: [{name: e, extension: {a: [1, x]}}]\n",
             "    exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: x, args: [a]}\n");
  int good = 0;
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const auto parsed = parse_kubeconfig(text.substr(0, size), "f");
    EXPECT_TRUE(parsed || parsed.error().reason == Reason::invalid);
    good += parsed ? 1 : 0;
  }
  EXPECT_GT(good, 0);
}

TEST_F(ConfigTest, a_token_file_is_read_again_every_minute_and_after_a_401) {
  const std::string path = write("token", "one\n");
  const auto source = make_token_file(path, &clock);
  EXPECT_EQ(await(source->token(MonoTime::never())).value(), "one");
  write("token", "two\n");
  clock.run_for(59s);
  EXPECT_EQ(await(source->token(MonoTime::never())).value(), "one");
  clock.run_for(1s);
  EXPECT_EQ(await(source->token(MonoTime::never())).value(), "two");
  write("token", "three");
  source->invalidate();
  EXPECT_EQ(await(source->token(MonoTime::never())).value(), "three");
  std::filesystem::remove(path);
  source->invalidate();
  EXPECT_EQ(await(source->token(MonoTime::never())).value(), "three")
      << "the last one is used on while the file is away";
}

TEST_F(ConfigTest, a_token_file_must_hold_one_token) {
  for (const char* text : {"", " \n", "two words", "line\nbreak"}) {
    EXPECT_EQ(await(make_token_file(write("token", text), &clock)->token(MonoTime::never())).error().reason,
              Reason::invalid)
        << text;
  }
  EXPECT_THAT(await(make_token_file((folder / "none").string(), &clock)->token(MonoTime::never())).error().message,
              HasSubstr("none: No such file"));
  EXPECT_EQ(await(make_token_file((folder / "none").string(), &clock, "given")->token(MonoTime::never())).value(),
            "given");
  write("later", "from-file");
  const auto connection = connect(config("", "    token: inline\n    tokenFile: later\n"));
  EXPECT_EQ(token_of(*connection), "from-file");
}

Environment environment(std::map<std::string, std::string> variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    if (it == variables.end()) return std::nullopt;
    return it->second;
  };
}

TEST_F(ConfigTest, in_a_pod_the_service_account_is_used) {
  const std::string account = "var/run/secrets/kubernetes.io/serviceaccount/";
  const auto v6 = environment({{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}});
  EXPECT_THAT(in_cluster_connection(v6, &clock, folder.string()).error().message, HasSubstr("ca.crt: No such file"));
  write(account + "ca.crt", "CA");
  EXPECT_THAT(in_cluster_connection(v6, &clock, folder.string()).error().message, HasSubstr("/token: No such file"));
  write(account + "token", "tok\n");
  auto connection = in_cluster_connection(v6, &clock, folder.string());
  ASSERT_TRUE(connection) << connection.error().message;
  EXPECT_EQ(connection->server, "https://[fd00::1]:443");
  EXPECT_EQ(connection->ca_pem, "CA");
  EXPECT_EQ(connection->ca_file, folder.string() + "/" + account + "ca.crt");
  EXPECT_EQ(connection->namespace_name, "default");
  EXPECT_EQ(token_of(*connection), "tok");
  write(account + "namespace", "gpu-system\n");
  const auto v4 = environment({{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"KUBERNETES_SERVICE_PORT", "6443"}});
  connection = in_cluster_connection(v4, &clock, folder.string());
  EXPECT_EQ(connection->server, "https://10.96.0.1:6443");
  EXPECT_EQ(connection->namespace_name, "gpu-system");
  EXPECT_THAT(in_cluster_connection(environment({}), &clock).error().message, HasSubstr("KUBERNETES_SERVICE_HOST"));
}

TEST_F(ConfigTest, the_flag_wins_over_the_variable_over_the_pod_over_the_home_folder) {
  const auto with_server = [](const std::string& server) {
    return "current-context: a\ncontexts:\n- {name: a, context: {cluster: c}}\nclusters:\n- {name: c, cluster: "
           "{server: '" +
           server + "'}}\n";
  };
  const std::string flag = write("flag", with_server("https://flag"));
  const std::string variable = write("variable", with_server("https://variable"));
  write(".kube/config", with_server("https://home"));
  const std::string home = folder.string();
  const std::map<std::string, std::string> pod = {{"KUBERNETES_SERVICE_HOST", "h"}, {"KUBERNETES_SERVICE_PORT", "1"}};
  std::map<std::string, std::string> all = pod;
  all["HOME"] = home;
  all["KUBECONFIG"] = home + "/missing:" + variable;
  EXPECT_EQ(load_connection({flag, ""}, environment(all), &clock)->server, "https://flag");
  EXPECT_EQ(load_connection({"", ""}, environment(all), &clock)->server, "https://variable");
  all.erase("KUBECONFIG");
  EXPECT_THAT(load_connection({"", ""}, environment(all), &clock).error().message,
              HasSubstr("in-cluster configuration"));
  EXPECT_EQ(load_connection({"", "a"}, environment(all), &clock)->server, "https://home") << "a context is no pod's";
  EXPECT_EQ(load_connection({"", ""}, environment({{"HOME", home}}), &clock)->server, "https://home");
  EXPECT_THAT(load_connection({home + "/missing", ""}, environment(all), &clock).error().message,
              HasSubstr("missing: No such file"));
  EXPECT_THAT(load_connection({"", ""}, environment({{"KUBECONFIG", "/no/1:/no/2"}}), &clock).error().message,
              HasSubstr("no kubeconfig was found; looked for /no/1, /no/2"));
  EXPECT_THAT(load_connection({"", ""}, environment({{"HOME", "/no"}}), &clock).error().message,
              AllOf(HasSubstr("/no/.kube/config"), HasSubstr("neither --kubeconfig nor KUBECONFIG")));
  EXPECT_THAT(load_connection({"", ""}, environment({}), &clock).error().message, HasSubstr("give --kubeconfig"));
}

}  // namespace
}  // namespace k8s::test::kubeconfig_test
