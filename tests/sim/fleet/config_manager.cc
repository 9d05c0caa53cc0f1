#include "tests/sim/fleet/config_manager.h"

#include "tests/sim/fleet/config_choice.h"

namespace gso::sim {
namespace {
constexpr const char* kNull = "/dev/null";
}  // namespace

bool ConfigManager::oneshot() const {
  return host().env("ONESHOT") == "true";
}

void ConfigManager::start() {
  if (host().version().default_first()) {
    // From v0.18.2 the first answer is "", before the node is known: the default (or the fallback) is applied on every
    // start, and the init container ends with that.
    host().after(std::chrono::milliseconds(50), [this] { apply(""); });
    if (oneshot()) return;
  }
  host().after(host().timing().informer, [this] {
    informed_ = true;
    observe();
  });
}

void ConfigManager::node_changed() {
  if (!informed_) return;
  host().after(std::chrono::milliseconds(50), [this] { observe(); });
}

void ConfigManager::observe() {
  const std::string label = host().node_label(host().env("NODE_LABEL"));
  // From v0.18.2 the default was applied already, as label "".
  const std::optional<std::string> last = applied_                           ? applied_
                                          : host().version().default_first() ? std::optional<std::string>("")
                                                                             : std::nullopt;
  if (last == label) return;
  apply(label);
}

void ConfigManager::apply(const std::string& label) {
  applied_ = label;
  const auto key = choose_config(label, host().env("DEFAULT_CONFIG"), host().env("FALLBACK_STRATEGIES"),
                                 host().list_files(host().env("CONFIG_FILE_SRCDIR")));
  if (!key) return host().exit(1, "error: " + key.error());
  const std::string target = key->empty() ? kNull : host().env("CONFIG_FILE_SRCDIR") + "/" + *key;
  if (const auto link = host().link()) {
    // os.Stat follows the link: with its target gone it says "no such file", and the symlink then fails on the link
    // that is there. Only a new pod (a new emptyDir) gets out of this.
    if (!host().readable(*link)) {
      return host().exit(
          1, "error creating symlink: symlink " + target + " " + host().env("CONFIG_FILE_DST") + ": file exists");
    }
    if (*link == target) {
      host().log("Already configured. Skipping update...");
      if (oneshot()) host().exit(0, "");
      return;
    }
  }
  host().set_link(target);
  host().log("Successfully updated to config: " + *key);
  if (host().env("SEND_SIGNAL") == "true") {
    if (host().version().panics_on_kernel_threads() && host().host_pid())
      return host().exit(2, "panic: runtime error: index out of range [0] with length 0");
    if (!host().hang_up(host().env("PROCESS_TO_SIGNAL")))
      return host().exit(1, "error: error signaling process: error finding pid to signal: no process found");
  }
  if (oneshot()) host().exit(0, "");
}

}  // namespace gso::sim
