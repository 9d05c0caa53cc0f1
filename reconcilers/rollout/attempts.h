// Attempts: if another revision replaces a rollout and the first one later returns, or if nodes wait for another
// template (OnDelete) than the one that a rollout ended with or its switches were set for, that is a new attempt with
// its own switches and times.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"

namespace gso {

// Another revision has replaced the rollout since it began. If one of its switches was set, the record decides;
// otherwise its status does.
[[nodiscard]] bool was_left(const Index& index, const SharingRollout& rollout);
[[nodiscard]] bool says_left(const SharingRollout& rollout);  // According to its status.
// DaemonSet ("namespace/name") -> hash of its newest template, as far as known. Whatever the updateStrategy is: it can
// be switched in the middle of a rollout, and that makes no template another one.
[[nodiscard]] std::map<std::string, std::string> templates_of(const PluginInstallation& installation);
// The same as one text, for the record.
[[nodiscard]] std::string templates_text(const PluginInstallation& installation);
// The operator replaces pods for another template (OnDelete) than the one that such a text names. A template that is
// unknown, then or now, is no reason.
[[nodiscard]] bool has_other_templates(const PluginInstallation& installation, std::string_view then);
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
