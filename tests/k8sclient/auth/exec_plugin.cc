// A credential plugin for tests. Its first argument says what it does; see exec_credential_test.cc.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

namespace {

// ExecCredential of v1 with these fields in status.
void print_credential(const std::string& fields) {
  std::printf(R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{%s}})",
              fields.c_str());
}

// Appends a line to the file, so that tests can count the runs.
void note_run(const char* path) {
  std::ofstream(path, std::ios::app) << "run\n";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const std::string second = argc > 2 ? argv[2] : "";
  if (what == "token") print_credential("\"token\":\"" + second + "\"");
  if (what == "status") print_credential(second);
  // WHAT FILE EXPIRATION: every run has a token of its own, token-1 first; FILE gets a line for each.
  const bool again = std::ifstream(second).good();
  if (what == "numbered" || what == "once" || what == "fails_later") {
    note_run(second.c_str());
    if (again && what == "once") sleep(1000);      // Only the first run ends.
    if (again && what == "fails_later") return 3;  // Only the first run has a credential.
    std::ifstream runs(second);
    int number = 0;
    for (std::string line; std::getline(runs, line);) ++number;
    print_credential("\"token\":\"token-" + std::to_string(number) + "\",\"expirationTimestamp\":\"" +
                     std::string(argc > 3 ? argv[3] : "") + "\"");
  }
  if (what == "wait_for") {  // wait_for FILE RUNS: until the file is there
    note_run(argc > 3 ? argv[3] : "");
    while (!std::ifstream(second).good()) usleep(1000);
    print_credential("\"token\":\"tok\"");
  }
  if (what == "print") std::fputs(second.c_str(), stdout);
  if (what == "environment") {
    const char* info = std::getenv("KUBERNETES_EXEC_INFO");
    const char* extra = std::getenv("EXTRA");
    std::ofstream(second) << (info == nullptr ? "" : info) << '\n' << (extra == nullptr ? "" : extra) << '\n';
    // Standard input is empty, and no descriptor but the standard three is inherited.
    char byte = 0;
    const bool no_input = read(0, &byte, 1) == 0;
    bool no_others = true;
    for (int fd = 3; fd < 64; ++fd) no_others = no_others && lseek(fd, 0, SEEK_CUR) < 0 && write(fd, "", 0) < 0;
    print_credential(no_input && no_others ? "\"token\":\"clean\"" : "\"token\":\"dirty\"");
  }
  if (what == "ask") {  // The token is what a person types.
    const char* info = std::getenv("KUBERNETES_EXEC_INFO");
    const bool interactive =
        info != nullptr && std::string_view(info).find("\"interactive\":true") != std::string_view::npos;
    std::fprintf(stderr, "code ABCD: interactive=%s stdin=%d stderr=%d\n", interactive ? "true" : "false", isatty(0),
                 isatty(2));
    std::string typed;
    std::getline(std::cin, typed);
    print_credential("\"token\":\"typed-" + typed + "\"");
  }
  if (what == "fail") {
    std::fputs("your session has expired, log in again\n", stderr);
    return 3;
  }
  if (what == "hang") {
    std::fputs("waiting for the browser\n", stderr);
    if (fork() == 0) {
      sleep(1000);
      return 0;
    }
    sleep(1000);
  }
  if (what == "orphan") {  // A child that keeps our pipes open.
    if (fork() == 0) {
      sleep(1000);
      return 0;
    }
    print_credential("\"token\":\"tok\"");
  }
  if (what == "flood") {
    const std::string block(65536, 'x');
    for (int i = 0; i < 64; ++i) std::fwrite(block.data(), 1, block.size(), stdout);
  }
  if (what == "die") std::abort();
  return 0;
}
