// Which SharingPolicy governs a node. Policies are matched here and nowhere else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/objects.h"
#include "reconcilers/model/policy.h"

namespace gso {

// Whether the policy's selector takes the node. Products (nvidia.com/gpu.product and its like) are compared without the
// suffix -SHARED, which sharing adds, on the node and in the selector: a node does not leave its policy because it got
// what the policy wants. A selector with a problem takes none.
[[nodiscard]] bool policy_selects(const SharingPolicy& policy, const Node& node);
// The first that selects the node; null where none does. One that is gone (SharingPolicy::gone) is passed over where a
// policy that was created after it went selects the node with at least its priority.
[[nodiscard]] const SharingPolicy* governing_policy(const std::vector<const SharingPolicy*>& policies,
                                                    const Node& node);

// Why a selector must not go by this label: sharing itself, or the operator, changes it, so that the policy would lose
// its nodes by changing them, and get them back by losing them. For people; empty where it may. `own_key`: the profile
// key that the policy itself puts into nvidia.com/device-plugin.config (empty: it chooses none), and `values`: those
// that the selector asks for.
[[nodiscard]] std::string sharing_label_problem(std::string_view label, const std::vector<std::string>& values,
                                                std::string_view own_key);
// The first such label of the policy's selector; empty: none.
[[nodiscard]] std::string selector_problem(const SharingPolicy& policy);

// A product as it is without sharing.
[[nodiscard]] std::string_view unshared_product(std::string_view product);
// nvidia.com/gpu.product, nvidia.com/mig-1g.5gb.product, …
[[nodiscard]] bool is_product_label(std::string_view label);

}  // namespace gso
