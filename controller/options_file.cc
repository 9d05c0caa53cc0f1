// The --config file: one YAML mapping of the names in option_specs().
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "controller/options.h"

namespace gso {
namespace {

// Edits between two words (Levenshtein), for "did you mean".
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

const OptionSpec* find(std::string_view name) {
  const auto& specs = option_specs();
  auto it = std::find_if(specs.begin(), specs.end(), [&](const OptionSpec& spec) { return spec.name == name; });
  return it == specs.end() ? nullptr : &*it;
}

std::string unknown_key(std::string_view name) {
  std::string_view nearest;
  std::size_t best = 4;  // Further away is no typing error.
  for (const OptionSpec& spec : option_specs()) {
    const std::size_t d = distance(name, spec.name);
    if (d < best) {
      best = d;
      nearest = spec.name;
    }
  }
  std::string text = fmt::format("unknown setting '{}'", name);
  if (!nearest.empty()) text += fmt::format(", did you mean '{}'?", nearest);
  return text;
}

std::string apply_entry(Options& options, const YAML::Node& key, const YAML::Node& value,
                        const std::vector<std::string>& keep) {
  if (!key.IsScalar()) return "a setting's name must be a word";
  const std::string& name = key.Scalar();
  const OptionSpec* spec = find(name);
  if (spec == nullptr) return unknown_key(name);
  if (!value.IsScalar()) return fmt::format("{}: expected a single value ({})", name, spec->type);
  Options unused;
  const bool kept = std::find(keep.begin(), keep.end(), name) != keep.end();
  const std::string wrong = spec->set(kept ? unused : options, value.Scalar());
  return wrong.empty() ? wrong : fmt::format("{}: {}", name, wrong);
}

}  // namespace

k8s::Result<void> apply_config_file(Options& options, std::string_view file_name, std::string_view text,
                                    const std::vector<std::string>& keep) {
  const auto fail = [&](const YAML::Mark& mark, const std::string& what) {
    return k8s::fail(k8s::Reason::invalid, fmt::format("{}:{}:{}: {}", file_name, std::max(mark.line, -1) + 1,
                                                       std::max(mark.column, -1) + 1, what));
  };
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (root.IsNull()) return {};
    if (!root.IsMap()) return fail(root.Mark(), "expected a mapping of settings, such as 'settle: 10s'");
    std::vector<std::string> seen;
    for (const auto& entry : root) {
      std::string wrong = apply_entry(options, entry.first, entry.second, keep);
      if (wrong.empty() && std::find(seen.begin(), seen.end(), entry.first.Scalar()) != seen.end()) {
        wrong = fmt::format("'{}' is set twice", entry.first.Scalar());
      }
      if (!wrong.empty()) return fail(entry.first.Mark(), wrong);
      seen.push_back(entry.first.Scalar());
    }
  } catch (const YAML::Exception& e) {
    return fail(e.mark, e.msg);
  }
  return {};
}

}  // namespace gso
