// Package manifests holds what `kubectl kudo init` puts on a cluster: generated CRDs, rights, webhooks, the manager, and what monitors it.
package manifests

import "embed"

// Files are the manifests by name.
//
//go:embed crds/*.yaml monitoring/*.yaml *.yaml
var Files embed.FS
