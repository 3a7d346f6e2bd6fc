package library

import (
	"embed"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore/lua"
)

//go:embed hub/*/*/*/customizations.yaml
var hubFiles embed.FS

// InstanceRules returns the rules for Instances that a hub places on clusters: how a parameter is divided, what a cluster keeps and
// reports, and what it needs beside the Instance. The interpreter of a cluster has none of them: only its manager judges an Instance.
// There is no rule for StatusAggregating: on a hub, only the manager writes the status of an Instance.
func InstanceRules() ([]v1alpha1.Config, error) { return configsOf(hubFiles, "hub") }

// NewForHub returns the layer of a hub: that of New, and the rules of InstanceRules.
func NewForHub(host *lua.Host) (*Layer, error) {
	rules, err := InstanceRules()
	if err != nil {
		return nil, err
	}
	bundled, err := Configs()
	if err != nil {
		return nil, err
	}
	return compile(host, append(bundled, rules...))
}
