// Package manifests holds what `kubectl kudo init` puts on a cluster: generated CRDs, rights, webhooks and the manager.
package manifests

import "embed"

// Files are the manifests by name.
//
//go:embed crds/*.yaml *.yaml
var Files embed.FS
