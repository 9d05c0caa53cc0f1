// ApiClient: the Kubernetes verbs (reader.h, writer.h) over a Transport. Builds paths and bodies, retries what is safe
// to retry, decodes metav1.Status into Error. Objects go in and out as JSON text; nothing here knows a kind's fields.
//
//   auto node = co_await client.get(nodes, {"", "n1"});
//   if (!node) co_return std::unexpected(node.error());
//
// Retries (waiting on Clock, jittered, Retry-After honoured, bounded by ClientOptions and by the call's deadline):
//   reads   429, 5xx, no answer
//   writes  429 (never executed), 503 with Retry-After; nothing else, since the write may have happened
// Reads, and each kind of writes, wait for their turn in a lane of their own, whose width follows the server's answers
// to them (request_lane.h). What is sent again gives up its place meanwhile. Requests on Channel::lease and watches
// never wait. One-thread only. The Transport and the Clock must outlive the client, the client its calls.
#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "k8sclient/api/reader.h"
#include "k8sclient/api/request_lane.h"
#include "k8sclient/api/writer.h"
#include "k8sclient/backoff.h"
#include "k8sclient/clock.h"
#include "k8sclient/transport/transport.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"

namespace k8s {

// One finished exchange, for metrics; the views live for the call only. `status` is 0 when there was no HTTP answer.
// A hook here and no Reader or Writer around this one: those see a call as a whole, and a call can be many exchanges
// (pages, attempts, the requests of a watch). Faults are injected below, in the Transport, for the same reason: the
// retries and lanes of this client then meet them, as a real server's.
struct RequestRecord {
  std::string_view verb;  // "GET", "LIST", "WATCH", "POST", "PUT", "PATCH", "APPLY", "DELETE"
  std::string_view resource;
  int status = 0;
  Duration took{0};
  bool retry = false;     // Not the first attempt of its call.
  std::string_view date;  // The answer's header; empty: there is no answer, or it has none.
};

struct ClientOptions {
  std::string field_manager = "k8sclient";             // Of every write; at most 128 characters.
  int page_limit = 100;                                // Objects in one LIST page, and
  std::size_t max_page_bytes = 8U << 20U;              // its bytes: where objects are large, a page has fewer of them.
  std::size_t max_object_bytes = 16U << 20U;           // A listed object beyond is skipped: ItemSink::skipped().
  std::chrono::milliseconds request_timeout{30'000};   // One attempt; a nearer deadline shortens it.
  int max_retries = 5;                                 // After the first attempt.
  Duration max_retry_wait = std::chrono::seconds(60);  // Waited in all between the attempts of one call.
  Duration call_timeout = Duration::max();             // One call with its attempts and all its waits.
  Duration longest_pause = std::chrono::seconds(8);    // Of a lane, while the server refuses what is sent.
  Duration first_backoff = std::chrono::milliseconds(200);  // Doubled each time, up to last_backoff, times 1..1.5.
  Duration last_backoff = std::chrono::seconds(10);
  std::uint64_t seed = 0;   // Of the jitter.
  bool reads_only = false;  // Each write ends with `cancelled`, unsent: no mistake of a dry run can change anything.
  int most_reads = 16;      // Open at once, without watches and the Lease.
  int most_writes = 32;     // Of WriteKind::object open at once, without the Lease. Of the other kinds fewer, beside.
  std::function<void(const RequestRecord&)> on_request = {};  // Metrics hook, after each exchange.
};

class ApiClient final : public Reader, public Writer {
 public:
  ApiClient(Transport* transport, Clock* clock, ClientOptions options);
  ~ApiClient() override;
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  boost::asio::awaitable<Result<std::string>> get(Gvr gvr, ObjectKey key, CallOptions options = {}) override;
  boost::asio::awaitable<Result<std::string>> get_path(std::string path, CallOptions options = {}) override;
  boost::asio::awaitable<Result<std::string>> list(Gvr gvr, ListOptions options, ItemSink* sink) override;
  boost::asio::awaitable<Result<ListPage>> list_page(Gvr gvr, ListOptions options, std::string continue_token,
                                                     ItemSink* sink) override;
  boost::asio::awaitable<Result<std::unique_ptr<ByteStream>>> open_watch(Gvr gvr, WatchOptions options) override;
  boost::asio::awaitable<Result<bool>> served(Gvr gvr, CallOptions options = {}) override;
  boost::asio::awaitable<Result<ServedKinds>> discover(CallOptions options = {}) override;

  boost::asio::awaitable<Result<std::string>> create(Gvr gvr, std::string ns, std::string json,
                                                     WriteOptions options = {}) override;
  boost::asio::awaitable<Result<std::string>> update(Gvr gvr, ObjectKey key, std::string json,
                                                     WriteOptions options = {}) override;
  boost::asio::awaitable<Result<std::string>> merge_patch(Gvr gvr, ObjectKey key, std::string json,
                                                          WriteOptions options = {}) override;
  boost::asio::awaitable<Result<std::string>> apply(Gvr gvr, ObjectKey key, std::string json,
                                                    WriteOptions options = {}) override;
  boost::asio::awaitable<Result<void>> remove(Gvr gvr, ObjectKey key, DeleteOptions preconditions = {},
                                              WriteOptions options = {}) override;
  boost::asio::awaitable<Result<void>> evict(ObjectKey pod, DeleteOptions preconditions = {},
                                             WriteOptions options = {}) override;

  [[nodiscard]] std::uint64_t answers() const override { return answers_; }
  [[nodiscard]] const ClientOptions& options() const { return options_; }
  [[nodiscard]] const RequestLane& reads() const { return *reads_; }
  [[nodiscard]] const RequestLane& writes(WriteKind kind) const { return *writes_.at(static_cast<std::size_t>(kind)); }
  [[nodiscard]] Clock* clock() const override { return clock_; }

 private:
  // One call: what is sent and how its attempts are retried.
  struct Call {
    Call() = default;
    HttpRequest request;
    std::string_view verb;  // A literal.
    std::string resource;   // For metrics.
    std::string what;       // "patch nodes n1", leads error messages.
    MonoTime deadline = MonoTime::never();
    std::optional<WriteKind> write;  // Empty: a read.
    bool retry_429 = true;
    int max_retries = 0;
    std::function<Result<void>()> before_send;
  };
  struct Attempt {
    Result<HttpResponse> answer;  // A status of 300 and more is an error.
    bool sent = true;             // It had its turn.
  };
  // One attempt, from the lane to the answer.
  boost::asio::awaitable<Attempt> attempt(std::shared_ptr<const Call> call, bool retry);
  boost::asio::awaitable<Result<HttpResponse>> execute(Call call);
  // The body of its answer.
  boost::asio::awaitable<Result<std::string>> body_of(Call call);
  boost::asio::awaitable<Result<std::string>> read(std::string_view verb, std::string resource, HttpRequest request,
                                                   std::string what, CallOptions options);
  // A write to one object; `word` leads error messages.
  [[nodiscard]] Call object_call(Method method, std::string_view verb, std::string_view word, const Gvr& gvr,
                                 const ObjectKey& key, const WriteOptions& options) const;
  boost::asio::awaitable<Result<std::string>> send_write(Call call, std::string json, WriteOptions options);
  boost::asio::awaitable<Result<void>> wait_before_retry(Duration delay);
  // One page of at most `limit` objects and `most` bytes. `accept` empty: the objects themselves.
  boost::asio::awaitable<Result<std::string>> read_page(Gvr gvr, ListOptions options, std::string continue_token,
                                                        int limit, std::size_t most, std::string accept);
  // The page of one object that is too large: what names it goes to the sink, and the list goes on behind it.
  boost::asio::awaitable<Result<ListPage>> skip_object(Gvr gvr, ListOptions options, std::string continue_token,
                                                       ItemSink* sink, Error why);
  // What was learnt of a collection whose pages were too large, or had room for more.
  void learn_page(const std::string& collection, int limit, int asked, std::size_t bytes);
  static bool may_retry(const Call& call, const Error& error);
  static bool is_overload(const Error& error);
  void record(const Call& call, int status, std::string_view date, MonoTime begun, bool retry);

  Transport* transport_;
  Clock* clock_;
  ClientOptions options_;
  Jitter jitter_;
  std::shared_ptr<RequestLane> reads_;
  std::array<std::shared_ptr<RequestLane>, kWriteKinds> writes_;  // By WriteKind.
  std::map<std::string, int> page_limits_;  // Of collections whose objects are large, by path; bounded.
  std::uint64_t answers_ = 0;
};

}  // namespace k8s
