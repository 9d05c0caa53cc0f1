// What commands print and complete: YAML, tar, redaction, completion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "controller/cli/cli.h"
#include "controller/commands/shared/archive.h"
#include "controller/commands/shared/print.h"
#include "controller/commands/shared/session.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/resources.h"

namespace gso::output_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using OrderedJson = nlohmann::ordered_json;

std::string yaml_of(const OrderedJson& value) {
  std::ostringstream out;
  print_document(value, OutputForm::yaml, out);
  return out.str();
}

TEST(Yaml, IsReadBackAsWhatItWas) {
  const char* documents[] = {
      R"({"a":1,"b":"text","c":[],"d":{},"e":null,"f":true,"g":-1.5})",
      R"({"words":["true","no","null","~","1","-","a: b","# x","","yes","v1-00","nvidia.com/gpu"]})",
      R"([{"a":[{"b":[1,[2,3]]},"x"],"c":{"d":{"e":"f"}}},[],[[]]])",
      R"({"multi":"line\nline\t\"quoted\"","key with: colon":"x","on":"off"})",
      R"([])",
  };
  for (const char* text : documents) {
    const auto back = yaml_to_json(yaml_of(OrderedJson::parse(text)));
    ASSERT_TRUE(back.has_value()) << text << "\n" << yaml_of(OrderedJson::parse(text));
    EXPECT_EQ(nlohmann::json::parse(*back), nlohmann::json::parse(text)) << yaml_of(OrderedJson::parse(text));
  }
}

TEST(Yaml, LooksAsKubectlPrintsIt) {
  EXPECT_EQ(yaml_of(OrderedJson::parse(R"({"kind":"Pod","items":[{"name":"a","tags":["x"]}]})")),
            "kind: Pod\nitems:\n- name: a\n  tags:\n  - x\n");
}

// What a terminal would not show, or would obey: C1, marks of direction, and what has no width.
TEST(Documents, HaveNoCharacterThatATerminalDoesNotShow) {
  const std::string hostile =
      "a\x7f\u009b31m \u202eevil\u202c \u2066x\u2069 \u200e\u200f\u061c\u200b\u2028\ufeff \x1b[2J \\\u202e";
  const OrderedJson document{{"label", hostile}, {hostile, "key"}, {"list", OrderedJson::array({hostile})}};
  std::ostringstream json;
  print_document(document, OutputForm::json, json);
  const std::string yaml = yaml_of(document);
  for (const std::string& text : {json.str(), yaml}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_THAT(text, HasSubstr("\\u009b31m \\u202eevil\\u202c \\u2066x\\u2069 \\u200e\\u200f\\u061c\\u200b\\u2028"));
    EXPECT_THAT(text, HasSubstr("\\\\\\u202e")) << "behind a backslash of the text itself";
  }
  EXPECT_EQ(OrderedJson::parse(json.str()), document);
  const auto back = yaml_to_json(yaml);
  ASSERT_TRUE(back.has_value()) << yaml;
  EXPECT_EQ(nlohmann::json::parse(*back), nlohmann::json(document));
  const OrderedJson plain{{"text", "Grüße, 日本 😀"}};
  EXPECT_EQ(yaml_of(plain), "text: \"Grüße, 日本 😀\"\n");
}

TEST(Tar, HasHeadersThatAddUpAndBlocksThatAreFull) {
  TarArchive archive(*k8s::parse_rfc3339("2026-01-01T00:00:00Z"));
  archive.add("one.txt", "hello");
  archive.add(std::string(150, 'n'), std::string(512, 'x'));
  const std::string bytes = std::move(archive).finish();
  ASSERT_EQ(bytes.size(), 512U * 6);
  EXPECT_EQ(bytes.substr(0, 7), "one.txt");
  EXPECT_EQ(bytes.substr(124, 11), "00000000005");
  EXPECT_EQ(bytes.substr(257, 8), std::string("ustar\0"
                                              "00",
                                              8));
  EXPECT_EQ(bytes.substr(512, 5), "hello");
  unsigned sum = 0;
  for (std::size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(bytes[i]);
  EXPECT_EQ(std::stoul(bytes.substr(148, 6), nullptr, 8), sum);
}

TEST(Redaction, TakesWhatIsNamedOrLooksLikeASecret) {
  OrderedJson object = OrderedJson::parse(R"({"kind":"Pod","metadata":{"name":"p","managedFields":[{}],
    "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","team/access-key":"A1","note":"fine"}},
    "spec":{"serviceAccountToken":"t","tokenExpirationSeconds":3600,"secretName":"keeps-its-name","containers":[{"env":[
      {"name":"DB_PASSWORD","value":"p1"},{"name":"LEVEL","value":"info"},
      {"name":"URL","value":"https://user:p2@host/x"}]}]}})");
  redact(object);
  const std::string text = object.dump();
  for (const char* gone : {"managedFields", "last-applied", "A1", "p1", "p2", "user:"})
    EXPECT_THAT(text, Not(HasSubstr(gone)));
  for (const char* kept : {"fine", "info", "keeps-its-name", "DB_PASSWORD", "@host/x"})
    EXPECT_THAT(text, HasSubstr(kept));
  EXPECT_EQ(redacted("Authorization: Bearer abc.def-1 end"), "Authorization: Bearer (redacted) end");
  EXPECT_EQ(redacted("got eyJhbGciOiJSUzI1NiIsImtpZCI6 here"), "got (redacted) here");
  EXPECT_EQ(redacted("a -----BEGIN KEY-----\nxyz\n-----END KEY----- b"), "a (redacted) b");
  EXPECT_EQ(redacted(R"x({"auths":{"r.example":{"auth":"dXNlcjpwdw=="}}})x"),
            R"x({"auths":{"r.example":{"auth":"(redacted)"}}})x");
  EXPECT_TRUE(is_secret_name("AUTH") && is_secret_name("REGISTRY_AUTH") && is_secret_name(".dockerconfigjson"));
  EXPECT_FALSE(is_secret_name("AUTH_MODE") || is_secret_name("author"));
  EXPECT_EQ(redacted("nothing of the kind: eyJ, bearer"), "nothing of the kind: eyJ, bearer");
  OrderedJson container = OrderedJson::parse(R"({"args":["--api-key","k1","--token=k2","--level","info"]})");
  redact(container);
  EXPECT_EQ(container.dump(), R"x({"args":["--api-key","(redacted)","--token=(redacted)","--level","info"]})x");
  OrderedJson secret = OrderedJson::parse(R"({"kind":"Secret","data":{"a":"b"}})");
  redact(secret);
  EXPECT_EQ(secret["data"], kRedacted);
}

// Lines of logs, and what remains of them: programs print their environment and their requests when they end.
TEST(Redaction, TakesTheValuesBehindTheNamesOfSecretsInALog) {
  const std::pair<const char*, const char*> lines[] = {
      {"AWS_SECRET_ACCESS_KEY=a/b+c= REGION=eu", "AWS_SECRET_ACCESS_KEY=(redacted) REGION=eu"},
      {"level=info db_password=p@ss!word, user=me", "level=info db_password=(redacted) user=me"},
      {R"x({"msg":"login","password":"two words","user":"me"})x",
       R"x({"msg":"login","password":"(redacted)","user":"me"})x"},
      {R"x({"password": "a\"b", "user": "me"})x", R"x({"password": "(redacted)", "user": "me"})x"},
      {R"x("body":"{\"apiKey\":\"k\",\"user\":\"me\"}")x", R"x("body":"{\"apiKey\":\"(redacted)\",\"user\":\"me\"}")x"},
      {"args: --client-credential c --node n", "args: --client-credential (redacted) --node n"},
      {"token: 'quoted one' next", "token: '(redacted)' next"},
      {"password: \"never closed\nnext line", "password: \"(redacted)\nnext line"},
      {R"x({"secret":{"secretName":"kept"}})x", R"x({"secret":{"secretName":"kept"}})x"},
      {"secret \"tls\" not found; the token\nexpired", "secret \"tls\" not found; the token\nexpired"},
      {"https://me:pw@host/x?token=t&watch=1 200", "https://(redacted)@host/x?token=(redacted) 200"},
  };
  for (const auto& [line, left] : lines) EXPECT_EQ(redacted(line), left);
}

std::string complete(const std::vector<std::string>& words) {
  std::ostringstream out;
  EXPECT_EQ(print_completions(words, out), 0);
  return out.str();
}

TEST(Completion, OffersSubcommandsOptionsAndValuesWhereTheyBelong) {
  EXPECT_THAT(complete({""}), testing::AllOf(HasSubstr("status\t"), HasSubstr("rollout\t"), HasSubstr("\n:4\n")));
  EXPECT_THAT(complete({"st"}), testing::AllOf(HasSubstr("status\t"), Not(HasSubstr("rollout"))));
  EXPECT_THAT(complete({"rollout", "u"}), testing::AllOf(HasSubstr("undo\t"), Not(HasSubstr("audit"))));
  EXPECT_THAT(complete({"status", "--w"}), HasSubstr("--watch\t"));
  EXPECT_THAT(complete({"status", "-o", ""}), testing::AllOf(HasSubstr("wide\t"), HasSubstr("yaml\t")));
  EXPECT_THAT(complete({"status", "--output=y"}), HasSubstr("--output=yaml\t"));
  EXPECT_THAT(complete({"status", "--output", "=", "y"}), HasSubstr("yaml\t"));
  EXPECT_THAT(complete({"plan", "--only", ""}), testing::AllOf(HasSubstr("sharing.rollout\t"), HasSubstr("pod.reser")));
  EXPECT_THAT(complete({"plan", "--only", "pod."}), testing::AllOf(HasSubstr("pod.reser"), Not(HasSubstr("sharing."))));
  EXPECT_THAT(complete({"status", "--watch="}),
              testing::AllOf(HasSubstr("--watch=true\t"), HasSubstr("--watch=false\t")));
  EXPECT_EQ(complete({"lint", ""}), ":0\n");
  EXPECT_EQ(complete({"rollout", "diff", "--file", ""}), ":0\n");
  EXPECT_THAT(complete({"completion", ""}), HasSubstr("zsh\t"));
  EXPECT_EQ(complete({"status", "--context", "x", "unknown", "--nothing="}), ":4\n");
  EXPECT_EQ(complete({"--", "=", "=", "-"}).find("Segmentation"), std::string::npos);
}

// What the names were asked for, and what is offered of the answers.
struct Offer {
  std::vector<std::string> words;
  std::string asked;  // "nodes, namespaces/"
  std::string offered;
};

std::string print(const NameQuestion& question) {
  return question.before + question.gvr.resource + question.after + (question.ns.empty() ? "" : " of " + question.ns);
}

std::vector<std::string> there_are(const k8s::Gvr& gvr) {
  if (gvr == resources::nodes) return {"gpu-1", "gpu-2"};
  if (gvr == resources::namespaces) return {"team"};
  if (gvr == resources::pods) return {"p"};
  return {gvr == resources::sharing_policies ? "default" : "r"};
}

TEST(Completion, NamesAreAskedForWhereAWordMayNameAnObject) {
  const std::vector<Offer> offers{
      {{"explain", ""}, "nodes, namespaces/", "gpu-1\t\ngpu-2\t\nteam/\t\n:6\n"},
      {{"explain", "g"}, "nodes, namespaces/", "gpu-1\t\ngpu-2\t\n:4\n"},
      {{"explain", "node", "gpu-2"}, "nodes", "gpu-2\t\n:4\n"},
      {{"explain", "pod", "-n", "x", "te"}, "pods of x, namespaces/", "team/\t\n:6\n"},
      {{"explain", "team/"}, "team/pods of team", "team/p\t\n:4\n"},
      {{"verify", ""}, "nodes", "gpu-1\t\ngpu-2\t\n:4\n"},
      {{"verify", "gpu-1", ""}, "", ":4\n"},
      {{"rollout", "start", ""}, "sharingpolicies", "default\t\n:4\n"},
      {{"rollout", "pause", "policy/"}, "sharingrollouts, policy/sharingpolicies", "policy/default\t\n:4\n"},
      {{"rollout", "diff", ""}, "", ":4\n"},
      {{"status", "--namespace", "t"}, "namespaces", "team\t\n:4\n"},
      {{"status", ""}, "", ":4\n"},
      {{"lint", ""}, "", ":0\n"},
  };
  for (const Offer& offer : offers) {
    std::string asked;
    const NameSource source = [&](const std::vector<NameQuestion>& questions, const NameConnection& connection) {
      EXPECT_EQ(connection.context, "");
      std::vector<std::string> names;
      for (const NameQuestion& question : questions) {
        asked += (asked.empty() ? "" : ", ") + print(question);
        for (const std::string& name : there_are(question.gvr))
          names.push_back(question.before + name + question.after);
      }
      return names;
    };
    std::ostringstream out;
    EXPECT_EQ(print_completions(offer.words, out, source), 0);
    EXPECT_EQ(asked, offer.asked);
    EXPECT_THAT(out.str(), testing::EndsWith(offer.offered)) << offer.asked;
  }
}

TEST(Completion, TheClusterIsTheOneThatTheWordsName) {
  NameConnection used;
  const NameSource source = [&](const std::vector<NameQuestion>&, const NameConnection& connection) {
    used = connection;
    return std::vector<std::string>();
  };
  std::ostringstream out;
  (void)print_completions({"explain", "--kubeconfig=/k", "--context", "c", ""}, out, source);
  EXPECT_EQ(used.kubeconfig, "/k");
  EXPECT_EQ(used.context, "c");
  EXPECT_EQ(out.str(), ":4\n");
}

TEST(Login, AHintNamesWhoseCredentialsAreRefused) {
  EXPECT_THAT(login_hint("https://h:6443", R"(user "a" of context "c" (kubeconfig /k))"),
              HasSubstr(R"(https://h:6443 rejected the credentials of user "a" of context "c" (kubeconfig /k))"));
  EXPECT_THAT(login_hint("https://h", ""), HasSubstr("none are given"));
}

TEST(Login, TheOperatorVerifiesTheServersCertificateUnlessKubeconfigAndFlagSayOtherwise) {
  for (const bool kubeconfig : {false, true}) {
    for (const bool flag : {false, true}) {
      k8s::Connection connection;
      connection.server = "https://h:6443";
      connection.insecure_skip_tls_verify = kubeconfig;
      Options options;
      options.insecure_skip_tls_verify = flag;
      const k8s::Result<void> allowed = check_verification(connection, options);
      EXPECT_EQ(allowed.has_value(), !kubeconfig || flag);
      const std::string said = allowed ? "" : allowed.error().message;
      EXPECT_EQ(said.find("--insecure-skip-tls-verify") != std::string::npos, !allowed);
    }
  }
}

TEST(Completion, EachShellHasAScriptThatAsksTheBinary) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    std::ostringstream out;
    EXPECT_EQ(print_completion_script(shell, out), 0);
    EXPECT_THAT(out.str(), HasSubstr("__complete")) << shell;
  }
}

}  // namespace
}  // namespace gso::output_test
