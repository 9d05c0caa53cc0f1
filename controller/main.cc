// Entry point of the gpu-sharing-operator binary: see cli.h for the commands.
int main() { return 0; }
