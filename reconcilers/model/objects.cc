// Member functions of the projected objects.
#include "reconcilers/model/objects.h"

#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"

namespace gso {

bool is_held(const Node& node) {
  return is_switched_on(node.meta.annotations.get(kHoldAnnotation)) ||
         is_switched_on(node.meta.labels.get(kHoldAnnotation));
}

std::string hold_of(const Node& node) {
  if (!is_held(node)) return {};
  const bool annotated = is_switched_on(node.meta.annotations.get(kHoldAnnotation));
  return std::string(annotated ? "annotation " : "label ").append(kHoldAnnotation);
}

bool same_data(const ConfigMap& a, const ConfigMap& b) {
  return std::ranges::equal(a.data, b.data, [](const auto& x, const auto& y) {
    return x.first == y.first && (x.second == y.second || (x.second && y.second && *x.second == *y.second));
  });
}

bool operator==(const ConfigMap& a, const ConfigMap& b) {
  return a.meta == b.meta && a.immutable == b.immutable && a.data_changed == b.data_changed &&
         a.data_time_known == b.data_time_known && a.data_managers == b.data_managers && a.our_keys == b.our_keys &&
         same_data(a, b);
}

std::shared_ptr<const std::string> key_text(const ConfigMap* config_map, std::string_view key) {
  if (config_map == nullptr) return nullptr;
  const auto text = config_map->data.find(std::string(key));
  return text == config_map->data.end() ? nullptr : text->second;
}

std::int64_t ContainerStatus::last_exit_code() const {
  if (terminated) return terminated->exit_code;
  return last_terminated ? last_terminated->exit_code : 0;
}

std::string_view ContainerStatus::last_message() const {
  if (terminated && !terminated->message.empty()) return terminated->message.view();
  return last_terminated ? last_terminated->message.view() : std::string_view();
}

std::vector<std::string> ContainerSpec::flag_values(std::string_view flag, bool boolean) const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string_view word = command[i];
    const std::string_view wanted = flag.substr(word.starts_with("--") ? 0 : 1);
    if (!word.starts_with(wanted)) continue;
    const std::string_view rest = word.substr(wanted.size());
    if (rest.empty() && boolean) out.emplace_back("true");
    if (rest.empty() && !boolean && i + 1 < command.size()) out.push_back(command[i + 1]);
    if (rest.starts_with('=')) out.emplace_back(rest.substr(1));
  }
  return out;
}

std::vector<const ContainerStatus*> Pod::all_containers() const {
  std::vector<const ContainerStatus*> out;
  for (const ContainerStatus& container : init_containers) out.push_back(&container);
  for (const ContainerStatus& container : containers) out.push_back(&container);
  return out;
}

std::int64_t& ResourceCounts::operator[](const Interned& resource) {
  auto it = std::ranges::lower_bound(entries_, resource, {}, &Entry::first);
  if (it == entries_.end() || it->first != resource) it = entries_.insert(it, {resource, 0});
  return it->second;
}

ResourceCounts::Entries::const_iterator ResourceCounts::find(const Interned& resource) const {
  return std::ranges::find(entries_, resource, &Entry::first);
}

}  // namespace gso
