#include "tests/sim/fleet/config_manager.h"

#include <algorithm>
#include <utility>

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

std::expected<std::string, std::string> ConfigManager::choose(const std::string& label) const {
  const auto keys = host().list_files(host().env("CONFIG_FILE_SRCDIR"));
  const auto exists = [&keys](const std::string& key) { return std::ranges::find(keys, key) != keys.end(); };
  if (!label.empty()) {
    if (!exists(label)) return std::unexpected("specified config " + label + " does not exist");
    return label;
  }
  if (const std::string fallback = host().env("DEFAULT_CONFIG"); !fallback.empty()) {
    // The message names the (empty) label instead of the default; upstream formats the wrong variable.
    if (!exists(fallback)) return std::unexpected("specified config  does not exist");
    return fallback;
  }
  std::string strategies = host().env("FALLBACK_STRATEGIES");
  while (!strategies.empty()) {
    const auto comma = strategies.find(',');
    const std::string strategy = strategies.substr(0, comma);
    strategies = comma == std::string::npos ? "" : strategies.substr(comma + 1);
    if (strategy == "named" && exists("default")) return "default";
    if (strategy == "single" && keys.size() == 1) return keys.front();
    if (strategy == "empty") return "";
    if (strategy != "named" && strategy != "single") return std::unexpected("unknown fallback strategy: " + strategy);
  }
  return std::unexpected("no config available");
}

void ConfigManager::apply(const std::string& label) {
  applied_ = label;
  const auto key = choose(label);
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
    if (host().version().panics_on_kernel_threads() && host().host_pid()) {
      return host().exit(2, "panic: runtime error: index out of range [0] with length 0");
    }
    if (!host().hang_up(host().env("PROCESS_TO_SIGNAL"))) {
      return host().exit(1, "error: error signaling process: error finding pid to signal: no process found");
    }
  }
  if (oneshot()) host().exit(0, "");
}

}  // namespace gso::sim
