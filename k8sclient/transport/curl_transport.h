// The transport over libcurl: HTTP/2 with TLS against an API server (HTTP/1.1 on http:// addresses), driven by Asio.
//
// How many unary requests are on their way at once is a matter of the client's lanes (request_lane.h), which are
// narrower than the 100 streams of an API server's connection. They share one multiplexed connection, every stream
// (watch) has one of its own, and so has the lease channel: a flood of writes or one broken connection never delays the
// others.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "k8sclient/auth/connection.h"
#include "k8sclient/clock.h"
#include "k8sclient/transport/transport.h"

namespace k8s {

// What the transport has done so far; plain counters, read on the transport's thread.
struct TransportStats {
  std::uint64_t retries = 0;              // Sent again by us: after a 401, or a read whose kept connection had ended.
  std::uint64_t connections_opened = 0;   // TCP connections, over the transport's life.
  std::uint64_t connections_retired = 0;  // Shared connections given up after a timeout or a break.
};

struct CurlTransportOptions {
  std::chrono::milliseconds connect_timeout{10'000};   // DNS, TCP and TLS together.
  std::chrono::seconds tcp_keepalive_idle{30};         // A silent connection is probed after this long…
  std::chrono::seconds tcp_keepalive_interval{10};     // …and then this often.
  std::chrono::milliseconds tcp_user_timeout{30'000};  // Sent bytes unacknowledged for this long: broken.
  std::size_t max_header_bytes = 128U << 10U;          // Of one answer.
  std::size_t max_body_bytes = 32U << 20U;             // Of one unary answer, unpacked.
  std::size_t max_unread_stream_bytes = 16U << 20U;    // A consumer this far behind loses its stream.
  std::shared_ptr<TransportStats> stats = nullptr;     // Filled when given.
};

// `clock` must outlive the transport and every coroutine that came from it. Destroying the transport ends requests
// and streams in flight with Reason::cancelled. Guarantees beyond Transport's:
//  * A request is on the wire at most once, except: reads (GET) are sent again when a kept-alive connection was
//    dead or refused them, and everything is sent once more after a 401 with a re-read token.
//  * Certificates from files are looked at again every minute and after every refusal; a new one is used from the next
//    request on, by new connections.
//  * A request that timed out or broke never leaves its connection to the next one.
//  * Redirects are not followed. Messages name host and port, never a token or a proxy's password.
[[nodiscard]] std::unique_ptr<Transport> make_curl_transport(boost::asio::any_io_executor executor,
                                                             Connection connection, Clock* clock,
                                                             CurlTransportOptions options = {});

}  // namespace k8s
