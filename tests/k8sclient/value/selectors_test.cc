// Label and field selectors, URL paths and query encoding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "k8sclient/value/object.h"
#include "k8sclient/value/selectors.h"

namespace k8s::selectors_test {
namespace {

using testing::HasSubstr;

LabelSelector parsed(const std::string& text) {
  const auto selector = LabelSelector::parse(text);
  if (!selector) ADD_FAILURE() << text << ": " << selector.error().message;
  return selector ? *selector : LabelSelector{};
}

TEST(LabelSelectors, match_as_the_api_server_does) {
  const StringMap labels{{"app", "plugin"}, {"tier", ""}, {"nvidia.com/gpu.present", "true"}};
  for (const char* selector : {"", "app=plugin", "app==plugin", "tier=", "app!=other", "missing!=x",
                               "app in (a,plugin)", "app notin (a,b)", "missing notin (a)", "tier", "!missing",
                               "nvidia.com/gpu.present=true,app in (plugin),!missing", " app = plugin , tier "})
    EXPECT_TRUE(parsed(selector).matches(labels)) << selector;
  for (const char* selector :
       {"app=other", "missing=x", "app=", "app!=plugin", "app in (a,b)", "missing in (a)", "app notin (plugin)",
        "missing", "!app", "nvidia.com/gpu.present=true,app in (x)", "app=plugin,app=other"})
    EXPECT_FALSE(parsed(selector).matches(labels)) << selector;
}

TEST(LabelSelectors, print_sorted_and_read_back_what_they_print) {
  LabelSelector selector;
  selector.match_labels = {{"b", "2"}, {"a", "1"}, {"empty", ""}};
  selector.match_expressions = {{"z/z", LabelOperator::not_in, {"y", "x"}},
                                {"c", LabelOperator::in, {"v", "u"}},
                                {"gone", LabelOperator::does_not_exist, {}},
                                {"here", LabelOperator::exists, {}}};
  const std::string text = selector.to_string();
  EXPECT_EQ(text, "a=1,b=2,c in (u,v),empty=,!gone,here,z/z notin (x,y)");
  const LabelSelector again = parsed(text);
  EXPECT_EQ(again.to_string(), text);
  EXPECT_EQ(again.match_labels, selector.match_labels);
  for (const char* one : {"a in (,b)", "a notin (b)", "a=1,a in (2)", "x/y.z_w-1", "!x"})
    EXPECT_EQ(parsed(parsed(one).to_string()), parsed(one)) << one;
  EXPECT_EQ(LabelSelector{}.to_string(), "");
}

TEST(LabelSelectors, refuse_bad_text_with_what_would_be_right) {
  const struct {
    const char* selector;
    const char* message;
  } cases[] = {
      {"=x", "expected a label key"},
      {"a=b,", "expected a requirement after ','"},
      {"a=b c=d", "expected ','"},
      {"a in b", "expected '('"},
      {"a in (b", "expected ')'"},
      {"a within (b)", "expected one of =, ==, !=, in, notin"},
      {"a>1", "'<' and '>' are not supported"},
      {"a!b", "expected '!='"},
      {"-a=b", "begin and end with a letter or digit"},
      {"A_/b=c", "lower case DNS name"},
      {"a=b/c", "label value \"b/c\""},
  };
  for (const auto& c : cases) {
    const auto selector = LabelSelector::parse(c.selector);
    ASSERT_FALSE(selector) << c.selector;
    EXPECT_EQ(selector.error().reason, Reason::invalid);
    EXPECT_THAT(selector.error().message, HasSubstr(c.message)) << c.selector;
  }
}

TEST(LabelSelectors, validation_names_the_requirement) {
  LabelSelector selector;
  selector.match_expressions = {{"a", LabelOperator::in, {}}};
  EXPECT_THAT(selector.validate().error().message, HasSubstr("a In needs at least one value"));
  selector.match_expressions = {{"a", LabelOperator::exists, {"x"}}};
  EXPECT_THAT(selector.validate().error().message, HasSubstr("a Exists takes no values"));
  selector.match_expressions = {};
  selector.match_labels = {{"a", std::string(64, 'x')}};
  EXPECT_THAT(selector.validate().error().message, HasSubstr("64 characters, at most 63"));
  selector.match_labels = {{"a", std::string(63, 'x')}};
  EXPECT_TRUE(selector.validate());
}

TEST(LabelSyntax, keys_and_values_follow_the_api_servers_rules) {
  const std::string longest_name(63, 'k');
  const std::string longest_prefix(253, 'p');
  for (const std::string& key : {std::string("a"), std::string("nvidia.com/gpu.count"), std::string("A_b-C.9")})
    EXPECT_FALSE(label_key_problem(key)) << key;
  EXPECT_FALSE(label_key_problem(longest_name));
  EXPECT_FALSE(label_key_problem(longest_prefix + "/k"));
  for (const char* key : {"", "/a", "a/", "a b", ".a", "UPPER/a", "a..b/c", "a/b/c", "-x.y/a"})
    EXPECT_TRUE(label_key_problem(key)) << key;
  EXPECT_TRUE(label_key_problem(std::string(64, 'k')));
  for (const char* value : {"", "a", "A100-SXM4-80GB-SHARED", "1g.5gb", "a_b"})
    EXPECT_FALSE(label_value_problem(value));
  for (const char* value : {"-a", "a-", "a b", "a/b", "a:b", "ä"}) EXPECT_TRUE(label_value_problem(value)) << value;
}

TEST(LabelOperators, round_trip_and_unknown_is_nothing) {
  for (const auto op : {LabelOperator::in, LabelOperator::not_in, LabelOperator::exists, LabelOperator::does_not_exist})
    EXPECT_EQ(parse_label_operator(to_string(op)), op);
  EXPECT_FALSE(parse_label_operator("Gt"));
}

TEST(FieldSelectors, escape_what_the_query_form_means_otherwise) {
  FieldSelector selector = FieldSelector::equals("spec.nodeName", "n1");
  EXPECT_EQ(selector.to_string(), "spec.nodeName=n1");
  selector.terms.emplace_back("metadata.name", "a,b=c\\d");
  EXPECT_EQ(selector.to_string(), "spec.nodeName=n1,metadata.name=a\\,b\\=c\\\\d");
  EXPECT_EQ(FieldSelector().to_string(), "");
}

TEST(Paths, name_groups_namespaces_names_and_subresources) {
  const Gvr nodes{"", "v1", "nodes"};
  const Gvr sets{"apps", "v1", "daemonsets"};
  EXPECT_EQ(collection_path(nodes), "/api/v1/nodes");
  EXPECT_EQ(collection_path(sets, "gpu-operator"), "/apis/apps/v1/namespaces/gpu-operator/daemonsets");
  EXPECT_EQ(collection_path(sets), "/apis/apps/v1/daemonsets");
  EXPECT_EQ(object_path(nodes, {"", "n1"}, "status"), "/api/v1/nodes/n1/status");
  EXPECT_EQ(object_path({"", "v1", "pods"}, {"ns", "a/../b"}, "eviction"),
            "/api/v1/namespaces/ns/pods/a%2F..%2Fb/eviction");
}

TEST(Queries, encode_and_skip_empty_values) {
  EXPECT_EQ(query_text({{"labelSelector", "a in (x,y),!b=c&d"}, {"empty", ""}, {"limit", "100"}}),
            "?labelSelector=a%20in%20%28x%2Cy%29%2C%21b%3Dc%26d&limit=100");
  EXPECT_EQ(percent_encode("100%"), "100%25");
  EXPECT_EQ(query_text({}), "");
}

}  // namespace
}  // namespace k8s::selectors_test
