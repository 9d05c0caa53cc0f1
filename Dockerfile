# The operator's image: the binary, glibc, time zones, certificates; no shell, no package manager, not root. The same
# root filesystem comes from `./dev image` without a container engine. docs/releasing.md says how BUILD_BASE is raised, and
# `./dev test image` builds this file.
# BASE may also be a distroless image with glibc, by digest.
ARG BUILD_BASE=debian:bookworm-20260824-slim@sha256:88200866dfff7ea7f5cbcb6ec7c8a701889efe6fe859fe64d6990e4b07ea4171
ARG BASE=scratch

FROM ${BUILD_BASE} AS build
ARG SOURCE_DATE_EPOCH=0
ENV SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH}
# Path in the build context of a binary that has been built on the same Debian release; empty: it is built here.
ARG BINARY=
# An archive of all that Debian published, for packages that its mirrors have replaced (docs/releasing.md).
ARG GSO_DEBIAN_SNAPSHOT=
WORKDIR /src
COPY . .
# ./dev reads the lists of Debian's packages and installs what is missing.
RUN GSODEV_CACHE=/var/cache/gpu-sharing-operator GSODEV_IMAGE_BINARY=${BINARY} ./dev image --rootfs /rootfs

FROM ${BASE}
COPY --from=build /rootfs/ /
USER 65532:65532
ENTRYPOINT ["/usr/bin/gpu-sharing-operator"]
CMD ["run"]
