// Attempts: if another revision replaces a rollout and the first one later returns, or if nodes wait for another
// template (OnDelete) than the one that a rollout ended with or its switches were set for, that is a new attempt with
// its own switches and times.
#pragma once

#include <map>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

// Another revision has replaced the rollout since it began. If one of its switches was set, the record decides;
// otherwise its status does.
[[nodiscard]] bool was_left(const Index& index, const SharingRollout& rollout);
[[nodiscard]] bool says_left(const SharingRollout& rollout);  // According to its status.
// DaemonSet ("namespace/name") -> hash of its newest template, for those whose pods the operator replaces (OnDelete).
[[nodiscard]] std::map<std::string, std::string> templates_of(const PluginInstallation& installation);
// A hash of them; empty: the operator replaces no pods for their templates.
[[nodiscard]] std::string templates_hash(const PluginInstallation& installation);
// Its nodes wait for another template than the one that an approval or abort was set for. A template that is unknown,
// then or now, is no reason. A pause stays in effect until a person ends it, whatever template comes.
[[nodiscard]] bool is_of_other_templates(const Index& index, const ProfileRollout& profile_rollout,
                                         const SharingRollout& rollout);
// Nodes wait for the rollout although another revision had replaced it, or although it had ended, or its switches were
// set, before a new template arrived (OnDelete). An undo stays in effect.
[[nodiscard]] bool begins_anew(const Index& index, const ProfileRollout& profile_rollout,
                               const SharingRollout& rollout);
// The same without is_of_other_templates(): what the object and its status alone show.
[[nodiscard]] bool ended_earlier(const Index& index, const ProfileRollout& profile_rollout,
                                 const SharingRollout& rollout);

}  // namespace gso
