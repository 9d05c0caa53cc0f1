// metav1.Status and other answers: the reason that a caller acts on, and the words for people.
#include "k8sclient/api/status.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/k8sclient/scripted_transport.h"

namespace k8s::test::status_errors_test {
namespace {

using namespace std::chrono_literals;

TEST(StatusErrors, give_the_reason_that_the_caller_acts_on) {
  const std::pair<Reason, std::vector<std::pair<int, const char*>>> cases[] = {
      {Reason::not_found, {{404, "NotFound"}}},
      {Reason::already_exists, {{409, "AlreadyExists"}}},
      {Reason::conflict, {{409, "Conflict"}, {409, ""}}},
      {Reason::expired, {{410, "Expired"}, {410, "Gone"}, {410, ""}}},
      {Reason::invalid,
       {{422, "Invalid"},
        {400, "BadRequest"},
        {405, "MethodNotAllowed"},
        {413, "RequestEntityTooLarge"},
        {415, ""},
        {301, ""}}},
      {Reason::forbidden, {{403, "Forbidden"}}},
      {Reason::unauthorized, {{401, "Unauthorized"}}},
      {Reason::too_many_requests, {{429, "TooManyRequests"}}},
      {Reason::timeout, {{504, "Timeout"}, {504, ""}}},
      {Reason::unavailable, {{500, "ServerTimeout"}, {500, "InternalError"}, {503, "ServiceUnavailable"}, {502, ""}}},
  };
  for (const auto& [reason, answers] : cases)
    for (const auto& [code, text] : answers) EXPECT_EQ(reason_of(code, text), reason) << code << text;
}

TEST(StatusErrors, keep_their_causes_for_programs) {
  const Error error = error_from_answer(429, R"({"kind":"Status","message":"m","code":429,"details":{"causes":[
           {"reason":"DisruptionBudget","message":"b needs 2 and has 2"},{"reason":"FieldValueInvalid","field":"spec"}]}})",
                                        "", "evict");
  ASSERT_EQ(error.causes.size(), 2U);
  EXPECT_EQ(error.causes[0], (Cause{"DisruptionBudget", "", "b needs 2 and has 2"}));
  EXPECT_EQ(error.causes[1], (Cause{"FieldValueInvalid", "spec", ""}));
  EXPECT_TRUE(has_cause(error, "DisruptionBudget"));
  EXPECT_FALSE(has_cause(error, "FieldManagerConflict"));
}

TEST(StatusErrors, keep_a_bounded_number_of_causes) {
  std::string causes;
  for (int i = 0; i < 1000; ++i) causes += std::string(i == 0 ? "" : ",") + R"({"reason":"FieldValueInvalid"})";
  const std::string body = R"({"kind":"Status","code":422,"details":{"causes":[)" + causes + "]}}";
  EXPECT_EQ(error_from_answer(422, body, "", "patch").causes.size(), kMostCauses);
}

TEST(StatusErrors, show_message_causes_and_retry_after) {
  const Error error = error_from_answer(
      422, R"({"kind":"Status","message":"Node \"n\" is invalid","reason":"Invalid","code":422,"details":{"causes":[
        {"reason":"FieldValueInvalid","message":"must be short","field":"metadata.labels"},
        {"message":"Node \"n\" is invalid"}],"retryAfterSeconds":3}})",
      "", "patch nodes n");
  EXPECT_EQ(error.reason, Reason::invalid);
  EXPECT_EQ(error.http_status, 422);
  EXPECT_EQ(error.message, "patch nodes n: Node \"n\" is invalid (metadata.labels: must be short) (HTTP 422)");
  EXPECT_EQ(error.retry_after, 3s);
  EXPECT_EQ(error_from_answer(429, "", "7", "x").retry_after, 7s);
  EXPECT_EQ(error_from_answer(429, "", "Wed, 21 Oct 2026 07:28:00 GMT", "x").retry_after, std::nullopt);
}

TEST(StatusErrors, are_utf8_whatever_the_body_is) {
  EXPECT_EQ(error_from_answer(504,
                              "Zeit\xfc"
                              "berschreitung",
                              "", "list nodes")
                .message,
            "list nodes: HTTP 504: Zeit\ufffdberschreitung");
  const std::string start(199, 'x');
  const std::string long_text = fmt::format("{}\u20ac{}", start, std::string(50, 'x'));
  EXPECT_EQ(error_from_answer(502, long_text, "", "x").message, fmt::format("x: HTTP 502: {}\u20ac\u2026", start));
}

TEST(StatusErrors, quote_a_body_that_is_no_status_and_survive_any) {
  EXPECT_EQ(error_from_answer(502, "bad   gateway\n", "", "list nodes").message, "list nodes: HTTP 502: bad gateway");
  EXPECT_EQ(error_from_answer(503, "", "", "list nodes").message, "list nodes: HTTP 503");
  EXPECT_LT(error_from_answer(500, std::string(100'000, 'x'), "", "x").message.size(), 300U);
  for (const char* body : {"null", "[]", "{", R"({"kind":"Status"})", R"({"kind":"Status","code":"x","details":[]})",
                           R"({"kind":"Status","details":{"causes":[1,{}],"retryAfterSeconds":-1}})", "\xff\xfe"}) {
    EXPECT_EQ(error_from_answer(404, body, "", "x").reason, Reason::not_found) << body;
  }
  EXPECT_EQ(error_from_answer(0, R"({"kind":"Status","code":410,"reason":"Expired"})", "", "x").http_status, 410);
}

// Of a proxy between a person and the API server.
TEST(StatusErrors, tell_an_html_page_by_its_title_or_first_words) {
  const struct {
    int status;
    const char* body;
    const char* words;
  } cases[] = {
      {502,
       "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad "
       "Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n",
       "Bad Gateway "},
      {503, "<!DOCTYPE html><HTML><body><H1 class=\"x\">No <b>backend</b></H1>text</body>", "No backend "},
      {404, "\n<html><style>p {color: red}</style><script>a<b</script><p>wrong   door</p>", "wrong door "},
      {502, "<html><head><title>Sorry, we are", "Sorry, we are "},
      {502, "<html><p>busy<p", "busy "},
      {502, "<html></html>", ""},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(error_from_answer(c.status, c.body, "", "list nodes").message,
              fmt::format("list nodes: HTTP {}: {}(an HTML page: of a proxy or load balancer, not of the API server)",
                          c.status, c.words));
  }
}

}  // namespace
}  // namespace k8s::test::status_errors_test
