# The operator's image: the binary, the libraries it needs, time zones; no shell, no package manager, not root. The same
# root filesystem comes from `./dev image` without a container engine. Pin both by digest at a release:
#   docker build --build-arg BUILD_BASE=debian@sha256:… .
# BASE may also be a distroless image with glibc, by digest.
ARG BUILD_BASE=debian:bookworm
ARG BASE=scratch

FROM ${BUILD_BASE} AS build
ARG SOURCE_DATE_EPOCH=0
ENV SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH}
WORKDIR /src
COPY . .
RUN apt-get update && ./dev image --rootfs /rootfs

FROM ${BASE}
COPY --from=build /rootfs/ /
USER 65532:65532
ENTRYPOINT ["/usr/bin/gpu-sharing-operator"]
CMD ["run"]
