#include "tests/sim/story/restart_ledger.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "reconcilers/model/labels.h"
#include "tests/change_words/change_words.h"
#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

using nlohmann::json;

namespace {

// Creation times and managedFields of different API servers may differ by three seconds, and both are whole seconds.
constexpr k8s::Duration kClocksOfServers = std::chrono::seconds(5);

}  // namespace

void RestartLedger::attach(ApiServer* server) {
  server_ = server;
  server_->add_audit_listener([this](const AuditEntry& entry) { on_write(entry); });
}

void RestartLedger::excuse_for(k8s::Duration length) {
  lost_at_ = server_->clock().now();
  excused_until_ = *lost_at_ + std::chrono::duration_cast<std::chrono::milliseconds>(length);
}

void RestartLedger::violated(const std::string& what) {
  if (violation_.empty() && server_->clock().now() >= excused_until_) violation_ = what;
}

void RestartLedger::on_write(const AuditEntry& entry) {
  if (entry.dry_run || entry.status >= 300) return;
  if (entry.gvr.resource == "pods" && entry.before == nullptr && entry.after != nullptr)
    created_[uid_of(*entry.after)] = entry.time;
  if (entry.gvr.resource == "configmaps") note_content(entry);
  if (entry.user != user_ || entry.gvr.resource == "events") return;
  if (entry.gvr.resource == "leases") {
    if (entry.after == nullptr) return;
    holder_ = entry.user_agent;
    renewed_ = entry.time;
    lease_ = std::chrono::seconds((*entry.after)["spec"].value("leaseDurationSeconds", 0));
    return;
  }
  const std::string what = entry.verb + " " + entry.gvr.resource + " " + k8s::to_string(entry.key);
  if (!entry.changed()) {
    ++idle_writes_;
    idle_write_ = what + " " + entry.body;
  }
  if (entry.user_agent != holder_)
    violated("S4: " + entry.user_agent + " did " + what + ", but the lease is " + holder_ + "'s");
  if (entry.time - renewed_ > lease_) violated("S4: " + what + " came after the lease had run out");
  if (entry.gvr.resource == "pods" && entry.verb == "delete") note_deletion(entry);
  if (entry.gvr.resource == "nodes") note_failure(entry);
}

// What people write there; the operator's own keys have names of their own.
void RestartLedger::note_content(const AuditEntry& entry) {
  if (entry.user == user_ || entry.after == nullptr) return;
  const json was = entry.before == nullptr ? json() : entry.before->value("data", json());
  if (was != entry.after->value("data", json())) content_changed_ = entry.time;
}

// What failed may be tried again.
void RestartLedger::note_failure(const AuditEntry& entry) {
  if (entry.after == nullptr) return;
  if (text(labels(*entry.after), kStateLabel) != kStateFailed) return;
  std::erase_if(deleted_, [&](const auto& one) { return std::get<0>(one.first) == entry.key.name; });
}

void RestartLedger::note_deletion(const AuditEntry& entry) {
  if (entry.before == nullptr) return;
  const json& pod = *entry.before;
  const std::string node = node_of(pod);
  const json owners = pod["metadata"].value("ownerReferences", json::array());
  const std::optional<json> on = server_->get(kNodes, {"", node});
  if (!on || owners.empty()) return;
  const std::string target = test::read_change(*on).to;
  if (target.empty()) return;
  ++deletions_;
  // The same pod again is harmless: a restarted operator might not have seen that it is going.
  Way& way = deleted_[{node, target, owners[0].value("name", "")}];
  const std::string uid = uid_of(pod);
  const bool again = way.uids.insert(uid).second && way.uids.size() > 1;
  const k8s::WallTime before = std::exchange(way.last, entry.time);
  if (!again) {
    // The plugin is replaced after its MPS daemon.
    const bool is_daemon = owners[0].value("name", "").ends_with("mps-control-daemon");
    std::erase_if(deleted_, [&](const auto& one) {
      return is_daemon && std::get<0>(one.first) == node && std::get<2>(one.first).ends_with("plugin-daemonset");
    });
    return;
  }
  // Who deletes a pod for a text waits until the pod that follows proves something.
  const bool is_doubtful = created_[uid] <= content_changed_ + kClocksOfServers && before <= content_changed_;
  // The begin, with the list of the first pod, can be among the writes that the server lost: then the node begins anew.
  const bool is_unwritten = lost_at_ && before >= *lost_at_ && before < excused_until_;
  if (!is_doubtful && !is_unwritten) {
    violated("Again: " + k8s::to_string(entry.key) + " came for one that was deleted on " + node + "'s way to " +
             target + ", after the last change of the profiles, and was deleted as well");
    return;
  }
  // The way begins anew: what hangs on that pod is replaced after it, as the plugin after its MPS daemon.
  std::erase_if(deleted_, [&](const auto& one) { return std::get<0>(one.first) == node; });
  deleted_[{node, target, owners[0].value("name", "")}] = {{uid}, entry.time};
}

}  // namespace gso::sim
