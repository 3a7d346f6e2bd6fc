# Everything a developer runs. `make help` lists it.
SHELL := /bin/bash
.DEFAULT_GOAL := help

BIN := $(CURDIR)/bin

# Programs, tests and tools are built in one way, so that they share what is built, also with another checkout: each variant of Kubernetes'
# packages takes minutes.
export CGO_ENABLED := 0
# go.mod names the version of Go: an older one fetches it, also where it is set to GOTOOLCHAIN=local, as in some images.
export GOTOOLCHAIN := $(patsubst local,auto,$(shell go env GOTOOLCHAIN))
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath)

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X kudo.dev/kudo/pkg/cli/command.Version=$(VERSION) -X kudo.dev/kudo/pkg/controllers.Version=$(VERSION)

# kudo-local holds a whole Kubernetes, whose build takes some minutes: it is kept outside of the tree, by its sources.
K8S_VERSION := v1.36.3
LOCAL_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kudo
LOCAL_KEY = $(shell { find cmd/kudo-local '(' -name '*.go' -o -name 'go.*' -o -name '*.yaml' ')' ! -name '*_test.go' | LC_ALL=C sort | xargs cat; GOTOOLCHAIN=$(GOTOOLCHAIN) go version; } | sha256sum | cut -c1-16)
LOCAL_LDFLAGS := -s -w -X k8s.io/component-base/version.gitVersion=$(K8S_VERSION) -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36
# FROM_CACHE puts files of the folder $$cached into bin/, if they differ from what is there: $(call FROM_CACHE,files).
FROM_CACHE = for file in $(1); do \
	  cmp -s $$cached/$$file $(BIN)/$$file || { cp $$cached/$$file $(BIN)/$$file.new && mv $(BIN)/$$file.new $(BIN)/$$file; } || exit; \
	done

CONTROLLER_GEN := go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.20.0
# The cache of golangci-lint holds paths: two checkouts cannot share one.
GOLANGCI_LINT := GOLANGCI_LINT_CACHE=$(CURDIR)/dist/lint go tool -modfile=$(CURDIR)/hack/tools/go.mod golangci-lint
# LINTED_MODULES are linted like the tree; LARGE_MODULES too, but for linters that need types: for these, the linter reads most of
# Kubernetes, or of other tools, which takes ten minutes and 7 GB without a cache.
LINTED_MODULES := hack/diagrams hack/images hack/monitoring hack/release test/ui
LARGE_MODULES := cmd/kudo-dns cmd/kudo-local test/bench/compare

GINKGO := go tool -modfile=hack/tools/go.mod ginkgo

# RESULTS gets what each test did, for testcount, and as JUnit.
RESULTS := dist/test
UNIT_RESULTS := $(addprefix $(RESULTS)/,unit.json release.json diagrams.json monitoring.json)
SUITE_RESULTS := $(addprefix $(RESULTS)/,suites.json chart.json local.json browser.json)
# TESTSUM runs go test in a folder and names its results: $(call TESTSUM,folder,name). What has failed is printed again at the end.
TESTSUM = @mkdir -p $(RESULTS); cd $(1) && go tool -modfile=$(CURDIR)/hack/tools/go.mod gotestsum --format pkgname-and-test-fails \
	--format-hide-empty-pkg --hide-summary=skipped --jsonfile $(CURDIR)/$(RESULTS)/$(2).json --junitfile $(CURDIR)/$(RESULTS)/$(2).xml \
	--post-run-command "go -C $(CURDIR) run ./hack/testcount -failures $(RESULTS)/$(2).json"

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## Start a local control plane, install kudo and a package on it, and show its plans.
	@hack/demo.sh

.PHONY: demo-down
demo-down: ## Stop the demo's control plane and delete its data.
	@$(BIN)/kudo-local down --name demo --delete

.PHONY: build
build: kudo-local ## Build manager, kubectl-kudo, kudo-local and kubectl into bin/.
	@echo "building manager and kubectl-kudo…"
	@mkdir -p $(BIN)
	@go build -ldflags "$(LDFLAGS)" -o $(BIN)/ ./cmd/manager ./cmd/kubectl-kudo

.PHONY: kudo-local
kudo-local: ## Build the local control plane, and kubectl, into bin/, unless they are in the cache.
	@mkdir -p $(BIN) $(LOCAL_CACHE); \
	cached=$(LOCAL_CACHE)/control-plane-$(LOCAL_KEY); \
	if [ ! -d $$cached ]; then \
	  echo "building the local control plane (a whole Kubernetes: some 10 minutes, once)…"; \
	  (cd cmd/kudo-local && go build -ldflags "$(LOCAL_LDFLAGS)" -o $$cached.$$$$/ . ./kubectl) && mv $$cached.$$$$ $$cached || exit; \
	fi; \
	$(call FROM_CACHE,kudo-local kubectl)

# What a real node needs beside containerd and Debian's other packages. kudo-node shares most of its packages with kudo-local.
NODE_KEY = $(LOCAL_KEY)-$(shell cat cmd/kudo-dns/*.go cmd/kudo-dns/go.* hack/images/*.go hack/images/go.* | sha256sum | cut -c1-8)
NODE_FILES := kudo-node kudo-dns kudo-pause.tar

.PHONY: kudo-node
kudo-node: ## Build what kudo-local needs for a real node (up --nodes real) into bin/, unless it is in the cache.
	@mkdir -p $(BIN) $(LOCAL_CACHE); \
	cached=$(LOCAL_CACHE)/kudo-node-$(NODE_KEY); \
	if [ ! -d $$cached ]; then \
	  echo "building the node's programs (some minutes, once)…"; \
	  rm -rf $$cached.new && mkdir $$cached.new && \
	  (cd cmd/kudo-local && go build -ldflags "$(LOCAL_LDFLAGS)" -o $$cached.new/kudo-node ./kudo-node) && \
	  (cd cmd/kudo-local && go build -ldflags "-s -w" -o $$cached.new/kudo-pause ./kudo-pause) && \
	  (cd cmd/kudo-dns && go build -ldflags "-s -w" -o $$cached.new/kudo-dns .) && \
	  (cd hack/images && PAUSE=$$cached.new/kudo-pause go run . -o $$cached.new kudo-pause) && \
	  mv $$cached.new $$cached || exit; \
	fi; \
	$(call FROM_CACHE,$(NODE_FILES))

IMAGES := dist/images

.PHONY: images
images: build ## Make the images that the suites on real pods need, as archives in dist/images.
	@mkdir -p $(IMAGES)/programs
	@cd hack/images/programs && go build -ldflags "-s -w" -o $(CURDIR)/$(IMAGES)/programs/ github.com/restic/restic/cmd/restic github.com/restic/rest-server/cmd/rest-server
	@go build -ldflags "-s -w" -o $(IMAGES)/programs/ ./cmd/explore-sample
	@cd hack/images && go build -ldflags "-s -w" -o $(CURDIR)/$(IMAGES)/programs/ github.com/google/go-containerregistry/cmd/registry
	@cd hack/images && go run . -o $(CURDIR)/$(IMAGES) manager busybox explore-sample servers

E2E_PACKAGES := containerd runc containernetworking-plugins iptables nftables iproute2 busybox-static mmdebstrap

.PHONY: e2e-packages
e2e-packages: ## Print the packages of Debian that make e2e needs.
	@echo $(E2E_PACKAGES)

# E2E=optional makes a machine pass that cannot run pods.
.PHONY: e2e
e2e: ## Run the suites on real pods: on Linux, as root, with containerd, runc and what else kudo-local up --nodes real names.
	@if [ "$$(id -u)" != 0 ] || ! command -v containerd >/dev/null || ! command -v mmdebstrap >/dev/null || [ ! -x /bin/busybox ]; then \
	  echo "real pods need Linux, root, and: apt-get install $(E2E_PACKAGES)"; \
	  [ "$$E2E" = optional ]; exit; \
	fi; \
	$(MAKE) --no-print-directory kudo-node images e2e-release && echo "suites on real pods…" && \
	$(MAKE) --no-print-directory e2e-suites

# Two processes share the cluster: more than that wait for the machine.
.PHONY: e2e-suites
e2e-suites: export KUDO_E2E = $(CURDIR)
e2e-suites:
	@cd hack/monitoring && go build -o $(BIN)/firing ./firing
	$(call TESTSUM,.,e2e) --raw-command -- go run ./hack/suites -procs 2 -timeout 60m ./test/e2e
	@go run ./hack/testcount $(RESULTS)/e2e.json

.PHONY: catalog-e2e
catalog-e2e: export KUDO_E2E = $(CURDIR)
catalog-e2e: kudo-node images ## Run all that the packages of the catalog do, with data, on real pods (90 minutes).
	KUDO_CATALOG=all $(GINKGO) run --procs=2 --timeout=150m --label-filter=catalog --fail-on-empty --require-suite ./test/e2e

.PHONY: test
test: build lint unit suites ## Run all tests: unit tests, and suites on a real control plane.
	@go run ./hack/testcount -all -except kudo.dev/kudo/test/e2e $(UNIT_RESULTS) $(SUITE_RESULTS)
	@grep -o -m 1 'SKIP test/ui: [^"\\]*' $(RESULTS)/browser.json || true

.PHONY: unit
unit: ## Run the tests that need no cluster.
	@echo "unit tests…"
	$(call TESTSUM,.,unit) -- $$(go list ./... | grep -v /test/) ./test/layers
	$(call TESTSUM,hack/release,release) -- -timeout 30m $$(go list ./... | grep -v /integration)
	$(call TESTSUM,hack/diagrams,diagrams) -- ./...
	$(call TESTSUM,hack/monitoring,monitoring) -- ./...
	@go run ./hack/testcount $(UNIT_RESULTS)

# The longest suites begin first, so that none of them runs alone at the end.
LONGEST := ./test/faults ./test/upgrade ./test/integration ./test/hub ./test/installplan ./test/docs ./test/testsuite ./test/explore

# kuttl comes from others. Where its module cannot be had, the specs that need kuttl are skipped.
KUTTL_VERSION := v0.22.0
KUTTL = $(LOCAL_CACHE)/kuttl-$(KUTTL_VERSION)-$(shell { cat hack/kuttl.sh; GOTOOLCHAIN=$(GOTOOLCHAIN) go version; } | sha256sum | cut -c1-8)

.PHONY: kuttl
kuttl: ## Build kuttl, which runs suites beside our own runner, into bin/, unless it is in the cache.
	@mkdir -p $(BIN) $(LOCAL_CACHE); \
	if [ ! -f $(KUTTL) ]; then \
	  echo "building kuttl (some 2 minutes, once)…"; \
	  hack/kuttl.sh $(KUTTL_VERSION) $(KUTTL).$$$$ && mv $(KUTTL).$$$$ $(KUTTL) || code=$$?; \
	  case $${code:-0} in 0);; 2) rm -f $(BIN)/kubectl-kuttl; echo "no suite is run by kuttl" >&2; exit 0;; *) exit $$code;; esac; \
	fi; \
	cmp -s $(KUTTL) $(BIN)/kubectl-kuttl || { cp $(KUTTL) $(BIN)/kubectl-kuttl.$$$$ && mv $(BIN)/kubectl-kuttl.$$$$ $(BIN)/kubectl-kuttl; }

.PHONY: suites
suites: export KUDO_LOCAL_BIN = $(BIN)/kudo-local
suites: kuttl ## Run the suites, each on a real control plane of its own, three at a time, Ginkgo suites on four processes.
	@cd hack/release && go tool -n helm >/dev/null # builds it once, before processes that would each do so at the same time
	@echo "suites on a real control plane…"
	$(call TESTSUM,.,suites) --raw-command -- go run ./hack/suites -p 3 -procs 4 $$(go list $(LONGEST) ./test/... | grep -v -e /test/layers -e /test/bench -e /test/e2e)
	@echo "the Helm chart on a control plane…"
	$(call TESTSUM,hack/release,chart) -- -count=1 -timeout 20m ./integration
	@echo "the parts of the local control plane…"
	$(call TESTSUM,cmd/kudo-local,local) -- -count=1 -timeout 15m ./...
	@echo "the page of kubectl kudo ui in a browser…"
	$(call TESTSUM,test/ui,browser) -- -mod=mod -count=1 -timeout 15m ./...
	@go run ./hack/testcount $(SUITE_RESULTS)

.PHONY: docs
docs: export KUDO_LOCAL_BIN = $(BIN)/kudo-local
docs: build ## Run the commands of all pages on a control plane, and compare what they print with the pages (make suites does, too).
	$(call TESTSUM,.,docs) -- -count=1 -timeout 40m ./test/docs

.PHONY: counts
counts: ## Record how many tests each package has run last, for make test to compare with.
	@go run ./hack/testcount -write $(wildcard $(UNIT_RESULTS) $(SUITE_RESULTS) $(RESULTS)/e2e.json)

# The servers of another Kubernetes are kept in the cache, by their modules.
SERVERS = $(LOCAL_CACHE)/kubernetes-$(VERSION)-$(shell { cat hack/kubernetes/$(VERSION)/go.*; GOTOOLCHAIN=$(GOTOOLCHAIN) go version; } 2>/dev/null | sha256sum | cut -c1-16)

.PHONY: kubernetes-servers
kubernetes-servers: ## Build the servers of Kubernetes VERSION, such as 1.30, unless they are in the cache, and print their folder.
	@test -d hack/kubernetes/$(VERSION) || { echo "name a version: VERSION=1.30, or another of $$(ls hack/kubernetes | xargs)" >&2; exit 1; }
	@if [ ! -d $(SERVERS) ]; then \
	  echo "building the servers of Kubernetes $(VERSION) (some 10 minutes, once)…" >&2; \
	  rm -rf $(SERVERS).new && mkdir -p $(SERVERS).new && cd hack/kubernetes/$(VERSION) && \
	  go build -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$(go list -m -f '{{.Version}}' k8s.io/kubernetes) \
	    -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(patsubst 1.%,%,$(VERSION))" -o $(SERVERS).new/ tool && mv $(SERVERS).new $(SERVERS); \
	fi; echo $(SERVERS)

.PHONY: kubernetes
kubernetes: build kubernetes-servers ## Run the main suites on Kubernetes VERSION, such as 1.30 (15 minutes, and the first time as many to build it).
	@KUDO_TEST_KUBERNETES=$(SERVERS) KUDO_LOCAL_BIN=$(BIN)/kudo-local $(GINKGO) run --procs=4 --timeout=40m --fail-on-empty --fail-on-pending --require-suite ./test/integration ./test/installplan ./test/apply ./test/explore

CHAOS_TIME ?= 10m
# EACH are the tests that go through all writes of all scenarios.
EACH = AtEachWrite|ClockJumps

.PHONY: faults
faults: build ## Run every scenario with every fault in each of its writes (an hour or more).
	@KUDO_FAULTS=all go test -count=1 -v -timeout 1h -skip '$(EACH)' ./test/faults
	@KUDO_FAULTS=all go test -count=1 -v -timeout 3h ./test/hub
	@KUDO_PREVIEWS=200 go test -count=1 -timeout 2h ./test/preview
	@KUDO_FAULTS=all KUDO_LOCAL_BIN=$(BIN)/kudo-local $(GINKGO) run --label-filter=catalog --timeout=2h --fail-on-empty --require-suite ./test/restore
	@for n in 1 2 3 4 5 6; do KUDO_FAULTS=$$n/6 go test -count=1 -v -timeout 2h -run '$(EACH)' ./test/faults || exit; done

.PHONY: each-write
each-write: build kudo-local ## Run the suites of the catalog with a manager that is killed after each of its writes (ten minutes).
	@$(BIN)/kubectl-kudo test $(wildcard operators/catalog/*/tests) --local --fault each-write

.PHONY: chaos
chaos: build ## Run scenarios amid a random mix of faults for CHAOS_TIME (10m); CHAOS_SEED repeats a mix.
	@CHAOS_TIME=$(CHAOS_TIME) go test -count=1 -v -timeout 3h -run TestChaos ./test/faults

FUZZ_TIME ?= 30s

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZ_TIME (30s); FUZZ=PATTERN runs those whose folder or name matches.
	@hack/fuzz.sh $(FUZZ_TIME) $(FUZZ)

.PHONY: race
race: build ## Run the unit tests, and the suites of concurrent parts, with the race detector.
	@CGO_ENABLED=1 go test -race $$(go list ./... | grep -v /test/)
	@CGO_ENABLED=1 $(GINKGO) run --race --procs=4 --timeout=40m --fail-on-empty --fail-on-pending --require-suite ./test/apply ./test/installplan

.PHONY: bench
bench: benchmarks compare ## Run all benchmarks; for figures that count, on a machine that does nothing else.

.PHONY: benchmarks
benchmarks: build ## Run the Go benchmarks: of packages, and on a real control plane, with requests and times.
	@go test -run '^$$' -bench . ./pkg/explore/... ./pkg/repository ./pkg/crdtarball/... ./operators/...
	@go test -run '^$$' -bench . -benchtime 1x -timeout 40m -p 1 ./test/bench ./test/crdtarball

.PHONY: compare
compare: build ## Measure kudo beside others, into docs/benchmarks.md; fail if it became slower (an hour or two; COMPARE=-quick for minutes).
	@cd test/bench/compare && go test -mod=mod ./... && go run -mod=mod . $(COMPARE)

.PHONY: mutants
mutants: kudo-local ## Plant faults one after another, and check that their suites find them (20 minutes); MUTANT=TEXT takes those whose name has it.
	@KUDO_LOCAL_BIN=$(BIN)/kudo-local go run ./hack/mutants "$(MUTANT)"

.PHONY: lint
lint: ## Check formatting, vet, golangci-lint, and that generated files are up to date.
	@echo "lint…"
	@test -z "$$(gofmt -l apis operators plans pkg cmd test hack manifests)" || { gofmt -l apis operators plans pkg cmd test hack manifests; echo "run gofmt -w on these"; exit 1; }
	@go vet ./... && cd test/bench/compare && go vet ./...
	@$(GOLANGCI_LINT) run --allow-parallel-runners ./...
	@for module in $(LINTED_MODULES); do (cd $$module && $(GOLANGCI_LINT) run --allow-parallel-runners ./...) || exit; done
	@for module in $(LARGE_MODULES); do (cd $$module && $(GOLANGCI_LINT) run --fast-only --allow-parallel-runners ./...) || exit; done
	@hack/lint-fixtures.sh
	@go test ./test/layers
	@$(MAKE) --no-print-directory verify

.PHONY: verify
verify: ## Check that generated files are up to date: generate into a copy, and compare.
	@hack/generated.sh check "$(CONTROLLER_GEN)"

.PHONY: generate
generate: ## Generate deep copies and CRDs from the API types, the pages of docs/reference, health checks for Argo CD, and diagrams.
	@hack/generated.sh write "$(CONTROLLER_GEN)"

CATALOG := dist/catalog

.PHONY: catalog
catalog: $(BIN)/kubectl-kudo ## Make a repository of operators/catalog in dist/catalog (CATALOG): archives and index.yaml, and the folder layout in OCI layout.
	@rm -rf $(CATALOG) && mkdir -p $(CATALOG)
	@for dir in operators/catalog/*/operator; do $(BIN)/kubectl-kudo package create $$dir -d $(CATALOG) || exit 1; done
	@$(BIN)/kubectl-kudo repo index $(CATALOG)
	@for archive in $(CATALOG)/*.tgz; do $(BIN)/kubectl-kudo package push $$archive layout:$(CATALOG)/layout || exit 1; done

$(BIN)/kubectl-kudo:
	@$(MAKE) --no-print-directory build

# RELEASE builds the tool that makes releases, and runs it.
RELEASE = mkdir -p $(BIN) && (cd hack/release && go build -o $(BIN)/release .) && $(BIN)/release -image "$(IMAGE)" -url "$(URL)" -catalog "$(CATALOG_URL)" -vulndb "$(VULNDB)" \
	-sign-key "$$SIGN_KEY" -signer "$$SIGNER" -signer-key "$$SIGNER_KEY"

# Command lines are seen by all users of a machine.
ifeq ($(origin SIGN_PASSWORD),command line)
$(error SIGN_PASSWORD is taken from the environment only: leave it out to be asked for it)
endif

.PHONY: release
release: ## Build the release VERSION, the tag of the commit, into dist/release; IMAGE, URL and CATALOG_URL say where it is going to be published, VULNDB where the Go vulnerability database is, SIGN_KEY or SIGNER what signs it.
	@$(RELEASE) -version "$(VERSION)"

.PHONY: snapshot
snapshot e2e-release: IMAGE ?= registry.example.org/kudo/manager
snapshot e2e-release: URL ?= https://example.org/kudo
snapshot: ## Build what would be released, from a commit without a tag, into dist/release.
	@$(RELEASE) -snapshot

.PHONY: e2e-release
e2e-release: ## Build a snapshot for this machine only, which the suites on real pods install.
	@$(RELEASE) -snapshot -platforms linux/$$(go env GOARCH) -o dist/e2e-release

.PHONY: reproduce
reproduce: ## Build the release VERSION anew, without any cache, and compare it with the checksums in SUMS; takes IMAGE and URL as release does.
	@hack/reproduce.sh "$(VERSION)" "$(SUMS)" "$(IMAGE)" "$(URL)" "$(CATALOG_URL)" "$(VULNDB)"

.PHONY: publish
publish: ## Push the image of the release VERSION to IMAGE, if its files are those of another machine, whose checksums are in SUMS; builds nothing. PUBLISH_FLAGS are flags of kubectl kudo image push.
	@hack/publish.sh "dist/release/$(VERSION)" "$(SUMS)" "$(IMAGE)" $(PUBLISH_FLAGS)

.PHONY: outdated
outdated: ## Fail if the CA roots in the manager are older than 90 days, and list newer versions of the modules that go.mod requires.
	@go list -m -u -f '{{with .Update}}{{.Path}} {{.Version}} is newer{{end}}' $$(awk '/^\t.* v[0-9]/ && !/indirect/ {print $$1}' go.mod)
	@hack/outdated.sh

.PHONY: clean
clean: ## Delete bin/, dist/ and the cached control plane.
	@rm -rf $(BIN) dist $(LOCAL_CACHE)
