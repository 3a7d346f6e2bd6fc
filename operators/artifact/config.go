package artifact

import (
	"bytes"
	"encoding/json"
	"fmt"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/content"
	"kudo.dev/kudo/pkg/text"
)

// config describes a package to those who do not unpack it, such as the page of a registry.
type config struct {
	Name              string               `json:"name"`
	AppVersion        string               `json:"appVersion,omitempty"`
	OperatorVersion   string               `json:"operatorVersion"`
	Description       string               `json:"description,omitempty"`
	Maintainers       []v1beta1.Maintainer `json:"maintainers,omitempty"`
	URL               string               `json:"url,omitempty"`
	KubernetesVersion string               `json:"kubernetesVersion,omitempty"`
	KudoVersion       string               `json:"kudoVersion,omitempty"`
	InstallPlan       bool                 `json:"installPlan"`
	Dependencies      []dependency         `json:"dependencies,omitempty"`
	// Content is the content digest of the OperatorVersion that the package becomes.
	Content string `json:"content,omitempty"`
}

// dependency describes a KudoOperator task of the package.
type dependency struct {
	Task            string `json:"task"`
	Package         string `json:"package"`
	AppVersion      string `json:"appVersion,omitempty"`
	OperatorVersion string `json:"operatorVersion,omitempty"`
}

func describe(pkg *operators.Package) (config, error) {
	o := pkg.Operator
	c := config{
		Name: o.Name, AppVersion: o.AppVersion, OperatorVersion: o.OperatorVersion, Description: o.Description, Maintainers: o.Maintainers,
		URL: o.URL, KubernetesVersion: o.KubernetesVersion, KudoVersion: o.KudoVersion, InstallPlan: o.InstallPlan != "",
	}
	for _, d := range pkg.Dependencies() {
		c.Dependencies = append(c.Dependencies, dependency{d.Task, d.Package, d.AppVersion, d.OperatorVersion})
	}
	_, version, err := operators.Convert(pkg, "")
	if err != nil {
		return c, err
	}
	c.Content, err = content.Digest(version)
	return c, err
}

// encodeConfig returns the config of a package.
func encodeConfig(pkg *operators.Package) ([]byte, error) {
	c, err := describe(pkg)
	if err != nil {
		return nil, err
	}
	return encode(c)
}

// compareConfig compares what a config says with the package. Fields that this version does not know are not read, and nothing relies on
// them.
func compareConfig(said []byte, pkg *operators.Package) error {
	if len(said) > MaxConfig {
		return fmt.Errorf("the config has %d bytes, more than the %d allowed", len(said), MaxConfig)
	}
	var c, want config
	if err := json.Unmarshal(said, &c); err != nil {
		return fmt.Errorf("the config cannot be read: %w", err)
	}
	described, err := encodeConfig(pkg)
	if err == nil {
		err = json.Unmarshal(described, &want) // so that an empty list is what it is in a config: absent
	}
	if err != nil {
		return err
	}
	for _, field := range []struct {
		name       string
		said, want any
	}{
		{"name", c.Name, want.Name}, {"appVersion", c.AppVersion, want.AppVersion}, {"operatorVersion", c.OperatorVersion, want.OperatorVersion},
		{"description", c.Description, want.Description}, {"maintainers", c.Maintainers, want.Maintainers}, {"url", c.URL, want.URL},
		{"kubernetesVersion", c.KubernetesVersion, want.KubernetesVersion}, {"kudoVersion", c.KudoVersion, want.KudoVersion},
		{"installPlan", c.InstallPlan, want.InstallPlan}, {"dependencies", c.Dependencies, want.Dependencies},
	} {
		a, errA := encode(field.said)
		b, errB := encode(field.want)
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			return fmt.Errorf("the config says %s %s, and the package %s", field.name, text.Plain(string(a), maxShown),
				text.Plain(string(b), maxShown))
		}
	}
	if c.Content != "" && c.Content != want.Content { // one from before there were content digests has none
		return fmt.Errorf("the config says content %s, and this version of kudo reads the package as %s: use the one that the package was "+
			"made for, which kudoVersion names, or push the package again", text.Plain(c.Content, len(want.Content)), want.Content)
	}
	return nil
}
