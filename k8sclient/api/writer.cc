#include "k8sclient/api/writer.h"

#include <fmt/format.h>

#include <string_view>

namespace k8s {

namespace asio = boost::asio;

namespace {

std::unexpected<Error> refuse(std::string_view verb, const Gvr& gvr, std::string_view name) {
  return fail(Reason::cancelled, fmt::format("{} {} {}: a dry run writes nothing", verb, gvr.resource, name));
}

}  // namespace

asio::awaitable<Result<std::string>> DryRunWriter::create(Gvr gvr, std::string ns, std::string /*json*/,
                                                          WriteOptions /*options*/) {
  co_return refuse("create", gvr, ns);
}

asio::awaitable<Result<std::string>> DryRunWriter::update(Gvr gvr, ObjectKey key, std::string /*json*/,
                                                          WriteOptions /*options*/) {
  co_return refuse("update", gvr, to_string(key));
}

asio::awaitable<Result<std::string>> DryRunWriter::merge_patch(Gvr gvr, ObjectKey key, std::string /*json*/,
                                                               WriteOptions /*options*/) {
  co_return refuse("patch", gvr, to_string(key));
}

asio::awaitable<Result<std::string>> DryRunWriter::apply(Gvr gvr, ObjectKey key, std::string /*json*/,
                                                         WriteOptions /*options*/) {
  co_return refuse("apply", gvr, to_string(key));
}

asio::awaitable<Result<void>> DryRunWriter::remove(Gvr gvr, ObjectKey key, DeleteOptions /*preconditions*/,
                                                   WriteOptions /*options*/) {
  co_return refuse("delete", gvr, to_string(key));
}

asio::awaitable<Result<void>> DryRunWriter::evict(ObjectKey pod, DeleteOptions /*preconditions*/,
                                                  WriteOptions /*options*/) {
  const Gvr pods{"", "v1", "pods"};
  co_return refuse("evict", pods, to_string(pod));
}

}  // namespace k8s
