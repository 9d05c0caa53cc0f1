// The command `lint`: files and stdin in, JSON or text for people out.
#include "controller/commands/lint.h"

#include <algorithm>
#include <filesystem>
#include <istream>
#include <map>
#include <memory>
#include <ostream>

#include <fmt/format.h>

#include "controller/commands/codes.h"
#include "controller/commands/shared/arguments.h"
#include "controller/reading/input_file.h"
#include "reconcilers/lint/lint.h"

namespace gso {
namespace {

namespace fs = std::filesystem;

bool is_document_file(const fs::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml" || path.extension() == ".json";
}

// Directories opened up, in the order of names; everything else as given. False when a directory cannot be read.
bool expand(const std::vector<std::string>& given, std::vector<std::string>& files, std::ostream& err) {
  bool fine = true;
  for (const std::string& name : given) {
    std::error_code failed;
    if (name == "-" || !fs::is_directory(name, failed)) {
      files.push_back(name);
      continue;
    }
    std::vector<std::string> found;
    fs::recursive_directory_iterator entry(name, failed);
    for (; !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
      std::error_code ignored;
      if (entry->is_regular_file(ignored) && is_document_file(entry->path())) {
        found.push_back(entry->path().string());
      }
    }
    if (failed) {
      err << fmt::format("{}: cannot be read: {}\n", name, failed.message());
      fine = false;
    } else if (found.empty()) {
      err << fmt::format("{}: no .yaml, .yml or .json file found in this directory\n", name);
      fine = false;
    }
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return fine;
}

struct Totals {
  std::size_t documents = 0;
  std::size_t invalid = 0;
  std::size_t warnings = 0;
  std::size_t not_checked = 0;

  // True for a document of a kind that lint does not check.
  bool add(const LintedDocument& document) {
    const bool warned = std::any_of(document.diagnostics.begin(), document.diagnostics.end(),
                                    [](const Diagnostic& d) { return d.severity == Diagnostic::Severity::warning; });
    const bool skipped = !document.diagnostics.empty() && document.diagnostics.front().code == kNotChecked;
    ++documents;
    not_checked += skipped ? 1 : 0;
    invalid += document.valid() ? 0 : 1;
    warnings += warned ? 1 : 0;
    return skipped;
  }
};

std::string summary(const Totals& totals) {
  const std::string skipped =
      totals.not_checked == 0 ? "" : fmt::format("; {} of kinds that lint does not check", totals.not_checked);
  return fmt::format("{} {}: {} with errors, {} with warnings{}\n", totals.documents,
                     totals.documents == 1 ? "document" : "documents", totals.invalid, totals.warnings, skipped);
}

}  // namespace

int run_lint(const LintOptions& options, std::istream& in, std::ostream& out, std::ostream& err) {
  if (options.codes) {
    print_codes(options.json, out);
    return 0;
  }
  if (options.files.empty()) {
    err << "lint: give a file, a directory, or - for stdin\n";
    return 2;
  }
  std::vector<std::string> files;
  bool readable = expand(options.files, files, err);
  const KaiPodRules rules{options.kai_gpu_sharing};
  std::vector<LintedDocument> all;
  std::map<std::string, std::string> texts;  // By file: for people.
  std::vector<ClusterObject> objects;
  for (const std::string& file : files) {
    auto text = read_written_input(file, in);
    if (!text) {
      err << text.error().message << '\n';
      readable = false;
      continue;
    }
    for (LintedDocument& document : lint_text(file, *text, rules, &objects)) {
      if (options.json) {
        document.value.clear();  // Texts are for people only.
      }
      all.push_back(std::move(document));
    }
    if (!options.json) {
      texts[file] = *std::move(text);
    }
  }
  lint_cluster(objects, all);
  lint_nos(objects, all);
  lint_kai(objects, rules, all);
  lint_memory(objects, all);
  Totals totals;
  for (const LintedDocument& document : all) {
    const bool skipped = totals.add(document);
    if (!options.json && !skipped) {
      out << lint_report(document, texts[document.source.substr(0, document.source.rfind('#'))]);
    }
  }
  out << (options.json ? lint_json(all) : summary(totals));
  return !readable ? 2 : totals.invalid > 0 ? 1 : 0;
}

Command make_lint_command() {
  const auto lint = std::make_shared<LintOptions>();
  const auto describe = [lint](CLI::App& app, OptionFlags& /*settings*/) {
    app.add_option("FILE", lint->files, "YAML or JSON files, folders, or - for stdin");
    app.add_flag("--codes", lint->codes, "List every diagnostic code, with what it means and what to do");
    app.footer(
        exit_status_of_findings() +
        "\nAn empty file is a profile without sharing, as for the plugin; nothing at all from stdin is unreadable.");
    app.add_option_function<std::string>(
           "--kai-gpu-sharing", [lint](const std::string& text) { lint->kai_gpu_sharing = text == "true"; },
           "Whether KAI's GPU sharing is on, for Pods")
        ->check(CLI::IsMember({"true", "false"}))
        ->type_name("true|false");
    add_output(app, lint->json);
  };
  return {.name = "lint",
          .summary = "Check profiles, ConfigMaps that hold them, SharingPolicies and Pods",
          .describe = describe,
          .run = [lint](const Invocation& i) { return run_lint(*lint, i.in, i.out, i.err); }};
}

}  // namespace gso
