// libcurl's multi interface on an Asio executor: the only file that calls curl_multi_*. It owns the CURLM, its sockets'
// waits and its timer, and reports each transfer's end. Not for use above curl_transport.h.
#pragma once

#include <curl/curl.h>

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <memory>
#include <unordered_map>

#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace k8s {

// What a CurlMulti carries. The multi keeps it alive from add() until its end or remove().
class CurlTransfer {
 public:
  virtual ~CurlTransfer() = default;
  [[nodiscard]] virtual CURL* easy() const = 0;
  // Exactly one of the two is called, once, unless remove() came first. Never from inside libcurl: the handle has
  // left the multi already.
  virtual void on_done(CURLcode code) = 0;
  virtual void on_abandoned(Error error) = 0;
};

class CurlMulti : public std::enable_shared_from_this<CurlMulti> {
 public:
  enum class Sharing {
    multiplexed,          // Transfers to one server share an HTTP/2 connection.
    one_connection_each,  // No transfer shares a connection with another.
  };
  // `clock` must outlive the multi and the executor's last run.
  [[nodiscard]] static std::shared_ptr<CurlMulti> create(boost::asio::any_io_executor executor, Clock* clock,
                                                         Sharing sharing);
  CurlMulti(const CurlMulti&) = delete;
  CurlMulti& operator=(const CurlMulti&) = delete;
  // Transfers still here are dropped without a call.
  ~CurlMulti();

  // Not from inside libcurl, whose callbacks only store what arrived and notify; nor is remove().
  void add(std::shared_ptr<CurlTransfer> transfer);
  // Forgets the transfer.
  void remove(const std::shared_ptr<CurlTransfer>& transfer);
  // Abandons all transfers with Reason::cancelled, and every later one too.
  void stop();
  // libcurl declares all transfers undefined after an error of the multi itself: abandons them with Reason::transport,
  // and starts again with a new CURLM and no connections.
  void rebuild(CURLMcode why);

  [[nodiscard]] std::size_t transfers() const { return transfers_.size(); }
  // Sockets that libcurl waits for now (connections in use, and its resolver's).
  [[nodiscard]] std::size_t sockets() const { return sockets_.size(); }

 private:
  struct Socket;
  struct Timer;
  using Transfers = std::unordered_map<CURL*, std::shared_ptr<CurlTransfer>>;

  CurlMulti(boost::asio::any_io_executor executor, Clock* clock, Sharing sharing);
  void start();
  void close_multi();
  Transfers take_transfers();  // All of them, their handles removed.
  void act(curl_socket_t fd, int bits);
  void report_ended();
  void arm(const std::shared_ptr<Socket>& socket);
  // `bit`: CURL_POLL_IN or CURL_POLL_OUT.
  void wait(const std::shared_ptr<Socket>& socket, int bit);
  int update_socket(curl_socket_t fd, int what, Socket* known);
  static boost::asio::awaitable<void> run_timer(std::shared_ptr<Timer> timer, std::weak_ptr<CurlMulti> multi,
                                                boost::asio::any_io_executor executor);

  boost::asio::any_io_executor executor_;
  Sharing sharing_;
  CURLM* multi_ = nullptr;
  std::shared_ptr<Timer> timer_;
  Transfers transfers_;
  std::unordered_map<Socket*, std::shared_ptr<Socket>> sockets_;
  bool stopped_ = false;
};

}  // namespace k8s
