// The annotations of a change in progress and of a deferred change: written, read, and rejected with an error.
#include "reconcilers/node/node_change.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/objects.h"

namespace gso::node_change_test {
namespace {

TEST(NodeChangeAnnotation, IsReadAsItWasWritten) {
  NodeChange change;
  change.policy = "p";
  change.config_map = "ns/map";
  change.key = "any";
  change.product = "A100";
  change.from = "v1-a";
  change.to = "v1-b";
  change.kind = Transition::change_mps;
  change.cause = ChangeCause::policy;
  change.begun = *k8s::parse_rfc3339("2026-03-02T10:00:00Z");
  change.listed = *k8s::parse_rfc3339("2026-03-02T10:05:00Z");
  change.pods = {{Component::plugin, {"a", "b"}}, {Component::mps, {}}};
  change.served = change.self_loaded = change.cordoned = change.had_turn = true;
  change.touched = Touched::yes;
  change.guards = {"karpenter"};
  change.failed = ChangeFailure{"why", "retry"};
  const auto read = parse_change(print_change(change));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, change);
  NodeChange next = change;
  next.failed.reset();
  next.replaced = print_change(change);
  const auto after = parse_change(print_change(next));
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(*after, next);
  // Whose deletions they are, an annotation of an earlier release does not say.
  for (const Touched touched : {Touched::no, Touched::yes, Touched::unknown}) {
    change.touched = touched;
    const std::string text = print_change(change);
    EXPECT_EQ(text.contains("touched"), touched != Touched::unknown) << text;
    EXPECT_EQ(parse_change(text)->touched, touched) << text;
  }
}

TEST(NodeChangeAnnotation, SaysWhatIsWrongInItAndNeverReadsAsNoPods) {
  NodeChange change;
  change.to = "v1-b";
  const std::string good = print_change(change);
  ASSERT_TRUE(parse_change(good));
  using Row = std::pair<std::string, const char*>;
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const auto& [text, problem] :
       {Row{"{", "must be a JSON object"}, Row{"[]", "must be a JSON object"},
        Row{with("\"v\":1", "\"v\":2"), "written by another release"},
        Row{with("\"v\":1", "\"v\":\"1\""), "v must be a number"},
        Row{with("\"pods\":{}", "\"pods\":[]"), "pods must map"},
        Row{with("\"pods\":{}", "\"pods\":{\"plugin\":\"a\"}"), "pods must map"},
        Row{with("\"pods\":{}", "\"pods\":{\"dcgm\":[]}"), "unknown component"},
        Row{with("\"to\":\"v1-b\"", "\"to\":7"), "to must be a string"},
        Row{with("\"kind\":\"none\"", "\"kind\":\"sideways\""), "unknown value"},
        Row{with("\"served\":false", "\"served\":0"), "served must be true or false"},
        Row{with("\"touched\":false", "\"touched\":1"), "touched must be true or false"},
        Row{with("\"v\":1", "\"v\":1,\"replaced\":1"), "replaced must be an object"},
        Row{with("\"v\":1", "\"v\":1,\"replaced\":{}"), "replaced must be a change that has failed"},
        Row{with("\"v\":1", "\"v\":1,\"replaced\":" + good), "replaced must be a change that has failed"}}) {
    const auto read = parse_change(text);
    ASSERT_FALSE(read) << text;
    EXPECT_TRUE(read.error().message.contains(problem)) << read.error().message;
  }
}

TEST(DeferredAnnotation, IsReadAsItWasWrittenAndSaysWhatIsWrongWhereItCannotBe) {
  for (const auto by : {Deferral::By::person, Deferral::By::idle_timeout, Deferral::By::stop}) {
    const Deferral deferral{"v1-b", *k8s::parse_rfc3339("2026-03-02T10:00:00Z"), by, "retry-1"};
    Node node;
    EXPECT_EQ(deferral_on(node).problem, "");
    node.meta.annotations.set(kDeferredAnnotation, print_deferral(deferral));
    EXPECT_EQ(deferral_on(node).deferral, deferral);
    EXPECT_EQ(deferral_on(node).problem, "");
  }
  const std::pair<const char*, const char*> kUnreadable[] = {
      {"", "must be a JSON object"},
      {"[]", "must be a JSON object"},
      {R"({"v":2,"to":"v1-b"})", "version 2 was written by another release"},
      {R"({"v":1,"to":5,"until":"2026-03-02T10:00:00Z","by":"person"})", "to must be a string"},
      {R"({"v":1,"to":"v1-b","until":"soon","by":"person"})", "until must be a time"},
      {R"({"v":1,"to":"v1-b","until":"2026-03-02T10:00:00Z","by":"robot"})", "by has the unknown value"},
  };
  for (const auto& [text, problem] : kUnreadable) {
    Node node;
    node.meta.annotations.set(kDeferredAnnotation, text);
    EXPECT_EQ(deferral_of(node), std::nullopt) << text;
    const std::string said = deferral_on(node).problem;
    EXPECT_TRUE(said.starts_with("annotation gpusharing.dev/deferred: ") && said.contains(problem)) << text << said;
  }
}

}  // namespace
}  // namespace gso::node_change_test
