# An image of hugepage-sidecar alone: one static program. `./dev image` builds it, beside the files that it copies.
# As its own user it explains and sizes. To look at the servers of a node it has to be root there:
# monitoring/kubernetes/daemonset.yaml.
FROM scratch
ARG VERSION
ARG LICENCES
COPY licenses /licenses/
COPY hugepage-sidecar /usr/bin/
LABEL org.opencontainers.image.title="hugepage-sidecar $VERSION" \
      org.opencontainers.image.description="which PostgreSQL servers and Oracle instances of a host are in huge pages, and what to do" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.vendor="the pg_hugepages developers" \
      org.opencontainers.image.authors="the pg_hugepages developers" \
      org.opencontainers.image.licenses="$LICENCES" \
      org.opencontainers.image.base.name="scratch"
USER 65532:65532
ENTRYPOINT ["/usr/bin/hugepage-sidecar"]
CMD ["--help"]
