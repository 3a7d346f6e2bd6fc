package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/kudoinit"
)

// printDiff prints how an installation would change the objects on the cluster.
func (o *initOptions) printDiff(ctx context.Context, c client.Client, live *kudoinit.InstalledState, change *kudoinit.Change) error {
	replaced, err := kudoinit.PreviewReplace(ctx, c, live)
	if err != nil {
		return err
	}
	written, err := change.Preview(ctx, c)
	if err != nil {
		return err
	}
	pruned, err := kudoinit.PreviewPrune(ctx, c, o.Version)
	if err != nil {
		return err
	}
	created, changed, deleted := 0, 0, len(replaced)+len(pruned)
	for _, d := range written {
		if d.Before == nil { // --dry-run prints it
			created++
			o.env.Printf("%s would be created", objectName(d))
			continue
		}
		changed++
		text, err := diffText(d)
		if err != nil {
			return err
		}
		if err := o.env.Print(text); err != nil {
			return err
		}
	}
	for _, d := range slices.Concat(replaced, pruned) {
		o.env.Printf("%s would be deleted", objectName(d))
	}
	if !o.CRDsOnly {
		made, err := historyKey(c, o.Namespace).Exists(ctx)
		if err != nil {
			return err
		}
		if !made {
			created++
			o.env.Printf("Secret %s/%s would be created, with a new key", o.Namespace, keyring.SecretName)
		}
	}
	if !o.External && !o.CRDsOnly {
		o.env.Printf("image of the manager: %s", o.Image)
	}
	o.env.Printf("kudo %s in namespace %s: objects to create: %d, to change: %d, to delete: %d", o.Version, o.Namespace, created, changed,
		deleted)
	return nil
}

// objectName is kind and name.
func objectName(d kudoinit.Difference) string {
	return d.Kind + " " + strings.TrimPrefix(d.Namespace+"/"+d.Name, "/")
}

// diffText is a change as a unified diff of YAML.
func diffText(d kudoinit.Difference) (string, error) {
	var texts [2]string
	for n, content := range []map[string]any{d.Before, d.After} {
		text, err := yaml.Marshal(content)
		if err != nil {
			return "", fmt.Errorf("%s: %w", objectName(d), err)
		}
		texts[n] = string(text)
	}
	return udiff.Unified(objectName(d)+", on the cluster", objectName(d)+", after init", texts[0], texts[1]), nil
}
