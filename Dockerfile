# The daemon with only its production dependencies: no shell, no package manager, no tests.
#
#   docker build -t proxywarden .
#   docker run --read-only --stop-timeout 20 -p 127.0.0.1:9713:9713 -v ./config:/etc/proxywarden:ro -v state:/var/lib/proxywarden \
#     -e PROXYWARDEN_API_KEY proxywarden
#
# The daemon writes only to the volume. For a release, replace the tag of the last stage with its digest:
# docker buildx imagetools inspect gcr.io/distroless/nodejs24-debian13:nonroot

FROM node:24.21.0-trixie-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund
# Removes tests, sources, types and source maps of packages, which are not loaded at run time.
RUN find node_modules -depth \( \
      -type d \( -name test -o -name tests -o -name __tests__ -o -name benchmark -o -name benchmarks -o -name .github \) \
      -o -type f \( -name '*.map' -o -name '*.ts' -o -name '*.cts' -o -name '*.mts' -o -name '*.test.js' -o -name '*.md' \) \
    \) -exec rm -rf {} +

FROM node:24.21.0-trixie-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY src src
COPY scripts scripts
RUN npm run build
# The base image has no /usr/bin/env, so `docker exec … proxywarden explain node_42` needs an absolute path to the interpreter.
RUN sed -i '1s|.*|#!/nodejs/bin/node|' dist/main.js && chmod 755 dist/main.js \
 && mkdir -p /image/usr/local/bin && ln -s /app/dist/main.js /image/usr/local/bin/proxywarden \
 && install -d -m 700 /state/proxywarden

FROM gcr.io/distroless/nodejs24-debian13:nonroot
LABEL org.opencontainers.image.title="proxywarden" \
      org.opencontainers.image.description="Polls the rate-limited management API of a proxy network, exports its data to Prometheus, and remediates unhealthy nodes under YAML policies." \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="gcr.io/distroless/nodejs24-debian13:nonroot"
# The MALLOC_ variables keep glibc's allocator from retaining freed buffers, which saves a tenth of the memory with a large fleet.
# With more garbage collector threads than free cores, the event loop waits for threads that are not running.
ENV NODE_ENV=production MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=32768 \
    NODE_OPTIONS="--max-semi-space-size=4 --v8-pool-size=1"
# Root owns all files, so the daemon can't modify itself. Layers that change least come first.
COPY --from=dependencies --chown=0:0 /app/node_modules /app/node_modules
COPY --chown=0:0 package.json LICENSE /app/
COPY --chown=0:0 config /app/config
COPY --from=build --chown=0:0 /app/dist /app/dist
COPY --from=build --chown=0:0 /image /
# A new volume inherits owner and mode from this folder.
COPY --from=build --chown=65532:65532 /state /var/lib
VOLUME /var/lib/proxywarden
WORKDIR /app
# By number, so that Kubernetes can verify that it is not root.
USER 65532:65532
EXPOSE 9713
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=15s CMD ["/usr/local/bin/proxywarden", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/proxywarden"]
CMD ["run"]
