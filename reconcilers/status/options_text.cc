// The operator's options in its state ConfigMap, so that the commands of people judge nodes by the same limits.
#include <string>

#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/status/status.h"

namespace gso {

void plan_options_text(Pass& pass) {
  const std::optional<std::string>& wanted = pass.s.settings.options_text;
  const ConfigMap* state = pass.s.world.configmaps.find(state_key(pass.s.settings));
  if (!wanted || state == nullptr) return;
  const auto present = state->data.find(std::string(kOptionsKey));
  const bool none = present == state->data.end() || !present->second;
  if (none ? wanted->empty() : *present->second == *wanted) return;
  pass.add(write_state(pass.s.settings, {{std::string(kOptionsKey), *wanted}}), "OptionsChanged",
           "commands judge by the options of the operator");
}

}  // namespace gso
