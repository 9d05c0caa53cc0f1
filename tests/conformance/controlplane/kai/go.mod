// KAI-Scheduler's CRDs, which the collection of its reservations is tried with. Only the module's files are used; nothing
// of it is built.
module gpusharing.dev/conformance/controlplane/kai

go 1.26.0

require github.com/NVIDIA/KAI-scheduler v0.12.0
