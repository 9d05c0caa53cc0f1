// libcurl's multi adapter with transfers of its own, and what becomes of an exception that nobody awaits.
#include <gmock/gmock.h>

#include <stdexcept>

#include "k8sclient/transport/curl_multi.h"
#include "k8sclient/value/error.h"
#include "tests/k8sclient/transport/transport_fixture.h"

namespace k8s::test::curl_multi_test {
namespace {

class MultiTest : public TransportTest {};

class CountingTransfer : public CurlTransfer {
 public:
  explicit CountingTransfer(const TcpServer& server) : easy_(curl_easy_init()) {
    curl_easy_setopt(easy_, CURLOPT_URL, local("http", server.port()).c_str());
    curl_easy_setopt(easy_, CURLOPT_PROXY, "");
    curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &CountingTransfer::discard);
  }
  ~CountingTransfer() override { curl_easy_cleanup(easy_); }
  CountingTransfer(const CountingTransfer&) = delete;
  CountingTransfer& operator=(const CountingTransfer&) = delete;
  CURL* easy() const override { return easy_; }
  void on_done(CURLcode code) override { ended.push_back(curl_easy_strerror(code)); }
  void on_abandoned(Error error) override { ended.push_back(error.message); }
  std::vector<std::string> ended;

 private:
  static std::size_t discard(char*, std::size_t size, std::size_t count, void*) { return size * count; }
  CURL* easy_;
};

// What is left out of libcurl when it is built (cmake/libraries/build.sh) has no faults, and needs no library.
TEST(Libcurl, SpeaksHttpAloneAndAllOfItThatApiServersAndProxiesSpeak) {
  const curl_version_info_data* const built = curl_version_info(CURLVERSION_NOW);
  std::vector<std::string> protocols;
  for (const char* const* name = built->protocols; *name != nullptr; ++name) protocols.emplace_back(*name);
  EXPECT_THAT(protocols, testing::ElementsAre("http", "https"));
  for (const int wanted : {CURL_VERSION_SSL, CURL_VERSION_HTTP2, CURL_VERSION_LIBZ, CURL_VERSION_IPV6,
                           CURL_VERSION_ASYNCHDNS, CURL_VERSION_HTTPS_PROXY}) {
    EXPECT_NE(built->features & wanted, 0) << wanted;
  }
  for (const int unwanted :
       {CURL_VERSION_BROTLI, CURL_VERSION_ZSTD, CURL_VERSION_PSL, CURL_VERSION_IDN, CURL_VERSION_NTLM}) {
    EXPECT_EQ(built->features & unwanted, 0) << unwanted;
  }
}

TEST_F(MultiTest, AfterAnErrorOfTheMultiEveryTransferIsNotifiedAndNewOnesWork) {
  bool answer = false;
  TcpServer server(io, [&](TcpConnection& from) {
    if (answer) answer_http(from);
  });
  const auto multi = CurlMulti::create(io.get_executor(), clock.get(), CurlMulti::Sharing::multiplexed);
  std::vector<std::shared_ptr<CountingTransfer>> lost;
  for (int i = 0; i < 3; ++i) {
    lost.push_back(std::make_shared<CountingTransfer>(server));
    multi->add(lost.back());
  }
  run_until([&] { return server.connections().size() == 3; });
  EXPECT_EQ(multi->sockets(), 3U);
  multi->rebuild(CURLM_INTERNAL_ERROR);
  for (const auto& one : lost) {
    ASSERT_EQ(one->ended.size(), 1U);
    EXPECT_THAT(one->ended[0], testing::HasSubstr("lost track"));
  }
  EXPECT_EQ(multi->sockets(), 0U);
  answer = true;
  const auto next = std::make_shared<CountingTransfer>(server);
  multi->add(next);
  run_until([&] { return !next->ended.empty(); });
  EXPECT_EQ(next->ended[0], curl_easy_strerror(CURLE_OK));
  EXPECT_EQ(multi->transfers(), 0U);
}

TEST_F(MultiTest, AMultiThatIsStoppedOrGoneNotifiesOrForgetsItsTransfers) {
  TcpServer silent(io);
  const auto transfer = std::make_shared<CountingTransfer>(silent);
  auto multi = CurlMulti::create(io.get_executor(), clock.get(), CurlMulti::Sharing::one_connection_each);
  multi->add(transfer);
  run_until([&] { return silent.connections().size() == 1; });
  multi->stop();
  EXPECT_EQ(transfer->ended.size(), 1U);
  multi->add(transfer);
  EXPECT_EQ(transfer->ended.size(), 2U);
  multi = CurlMulti::create(io.get_executor(), clock.get(), CurlMulti::Sharing::one_connection_each);
  multi->add(transfer);
  run_until([&] { return silent.connections().size() == 2; });
  multi.reset();
  settle();
  EXPECT_EQ(transfer->ended.size(), 2U);
  EXPECT_EQ(transfer.use_count(), 1);
}

boost::asio::awaitable<void> fail_loudly() {
  throw std::runtime_error("out of memory");
  co_return;
}

TEST_F(MultiTest, WhatACoroutineThrowsThatNobodyAwaitsLeavesThroughRun) {
  boost::asio::io_context own;
  boost::asio::co_spawn(own, fail_loudly(), kRethrow);
  EXPECT_THROW(own.run(), std::runtime_error);
}

}  // namespace
}  // namespace k8s::test::curl_multi_test
