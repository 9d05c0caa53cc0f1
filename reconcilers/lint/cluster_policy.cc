// The fields of the GPU Operator's ClusterPolicy that choose the plugin's ConfigMap and default key. The API server
// drops a misspelt one, and the operator then sees a ClusterPolicy that chooses nothing.
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "reconcilers/lint/checks.h"
#include "reconcilers/lint/field_check.h"
#include "reconcilers/profile/document_path.h"
#include "reconcilers/profile/field_names.h"

namespace gso {
namespace {

constexpr std::array<std::string_view, 2> kConfigMembers{"name", "default"};

class ClusterPolicyCheck : private FieldCheck {
 public:
  explicit ClusterPolicyCheck(std::vector<Diagnostic>& diagnostics) : FieldCheck(diagnostics) {}

  void run(const DocumentValue& policy) {
    object(policy, "spec", [this](const DocumentValue& spec) {
      misspelt(spec, "devicePlugin");
      object(spec, "devicePlugin", [this](const DocumentValue& plugin) {
        misspelt(plugin, "config");
        object(plugin, "config", [this](const DocumentValue& config) { config_members(config); });
      });
    });
  }

 private:
  // Members that were probably meant to be this field; what the others are is for the GPU Operator to say.
  void misspelt(const DocumentValue& parent, std::string_view field) {
    constexpr std::size_t kMostEdits = 2;
    const std::array<std::string_view, 1> meant{field};
    for (const DocumentMember& member : parent.members) {
      const PathStep step(path_, member.key);
      if (member.key != field && within_edits(member.key, field, kMostEdits)) unknown_field(member, meant);
    }
  }

  // The CRD has two fields here.
  void config_members(const DocumentValue& config) {
    for (const DocumentMember& member : config.members) {
      const PathStep step(path_, member.key);
      if (std::ranges::find(kConfigMembers, member.key) == kConfigMembers.end()) unknown_field(member, kConfigMembers);
    }
  }
};

}  // namespace

void check_cluster_policy(const DocumentValue& policy, std::vector<Diagnostic>& diagnostics) {
  ClusterPolicyCheck(diagnostics).run(policy);
}

}  // namespace gso
