package main

import (
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// writeKrew writes the manifest by which krew installs the plugin.
func (r *release) writeKrew() error {
	var list []map[string]any
	for _, p := range platforms {
		digest, err := sum(filepath.Join(r.out, r.archiveName(p)))
		if err != nil {
			return err
		}
		list = append(list, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]string{"os": p.system, "arch": p.processor}},
			"uri":      r.url + "/" + r.archiveName(p),
			"sha256":   digest,
			"bin":      filepath.Base(r.commandFile(p)),
			"files": []map[string]string{
				{"from": filepath.Base(r.commandFile(p)), "to": "."},
				{"from": "LICENSE", "to": "."},
			},
		})
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]any{"name": "kudo"},
		"spec": map[string]any{
			"version":          r.krewVersion(),
			"homepage":         r.url,
			"shortDescription": "Install and run operators written as plans",
			"description":      "kudo installs operator packages and runs their plans: deploy, update, upgrade, backup and whatever a package has.",
			"platforms":        list,
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "kudo.yaml"), text, 0o644)
}
