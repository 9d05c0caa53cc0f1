// DryRunWriter: what a dry run is given in place of the client's Writer. No mistake of a caller can write anything
// then.
#pragma once

#include "k8sclient/api/writer.h"

namespace k8s {

// Sends nothing: each verb ends with `cancelled`, whatever its options are.
class DryRunWriter final : public Writer {
 public:
  boost::asio::awaitable<Result<std::string>> create(Gvr gvr, std::string ns, std::string json,
                                                     WriteOptions options) override;
  boost::asio::awaitable<Result<std::string>> update(Gvr gvr, ObjectKey key, std::string json,
                                                     WriteOptions options) override;
  boost::asio::awaitable<Result<std::string>> merge_patch(Gvr gvr, ObjectKey key, std::string json,
                                                          WriteOptions options) override;
  boost::asio::awaitable<Result<std::string>> apply(Gvr gvr, ObjectKey key, std::string json,
                                                    WriteOptions options) override;
  boost::asio::awaitable<Result<void>> remove(Gvr gvr, ObjectKey key, DeleteOptions preconditions,
                                              WriteOptions options) override;
  boost::asio::awaitable<Result<void>> evict(ObjectKey pod, DeleteOptions preconditions, WriteOptions options) override;
};

}  // namespace k8s
