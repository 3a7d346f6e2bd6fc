package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/preview"
)

// printUpgrade prints what an upgrade would create, change and delete, in the form of all previews; or that it would be refused, if its
// preparation has failed so.
func (o *initOptions) printUpgrade(ctx context.Context, c client.Client, live *kudoinit.InstalledState, change *kudoinit.Change,
	failed error) error {
	var objects []preview.Known
	if failed == nil {
		objects, failed = o.previewUpgrade(ctx, c, live, change)
	}
	p := &preview.Preview{Verb: "upgrade to " + o.Version, Subject: "kudo in namespace " + o.Namespace}
	if o.dryRun.IsLocal() {
		p.UnknownReasons = []string{preview.NotAsked}
	}
	return o.printPreview(ctx, c, p, objects, failed)
}

// previewUpgrade returns what an upgrade would do to each object.
func (o *initOptions) previewUpgrade(ctx context.Context, c client.Client, live *kudoinit.InstalledState,
	change *kudoinit.Change) ([]preview.Known, error) {
	deleted, err := kudoinit.PreviewReplace(ctx, c, live)
	if err != nil {
		return nil, err
	}
	written, err := change.Preview(ctx, o.previewClient(c))
	if err != nil {
		return nil, err
	}
	pruned, err := kudoinit.PreviewPrune(ctx, c, o.Version)
	if err != nil {
		return nil, err
	}
	var objects []preview.Known
	for _, d := range slices.Concat(written, deleted, pruned) {
		id := apply.ID{GroupVersionKind: schema.FromAPIVersionAndKind(d.APIVersion, d.Kind)}
		id.Namespace, id.Name = d.Namespace, d.Name
		objects = append(objects, preview.Known{ID: id, Before: d.Before, After: d.After})
	}
	made, err := historyKey(c, o.Namespace).Exists(ctx)
	if err != nil {
		return nil, err
	}
	if !made {
		id := apply.ID{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}}
		id.Namespace, id.Name = o.Namespace, keyring.SecretName
		objects = append(objects, preview.Known{ID: id, After: map[string]any{}})
	}
	return objects, nil
}

// previewClient returns the client that questions are asked with: by dry runs, or by reads alone.
func (o *initOptions) previewClient(c client.Client) client.Client {
	if o.dryRun.IsLocal() {
		return kudoinit.NewLocalClient(c)
	}
	return c
}

// removalPreview is the preview of a removal of kudo. Its add takes what the removal does to each object.
type removalPreview struct {
	preview.Preview
	objects []preview.Known
}

// add takes what becomes of an object.
func (r *removalPreview) add(f kudoinit.RemovalResult) {
	if !f.Deleted {
		r.Stays = append(r.Stays, preview.Stay{Object: f.ID.String(), Why: f.Reason})
		return
	}
	r.objects = append(r.objects, preview.Known{ID: f.ID, Why: f.Reason, Lost: f.Lost})
}

// printPreview prints the preview of a change of kudo that has failed with an error, or has not. One that is refused is shown as such, and
// ends with ExitFailed.
func (o *initOptions) printPreview(ctx context.Context, c client.Client, p *preview.Preview, objects []preview.Known, failed error) error {
	switch {
	case kudoinit.IsRefusal(failed):
		p.Refused = append(p.Refused, strings.Split(failed.Error(), "\n")...) // a line for each conflict
	case failed != nil:
		return failed
	}
	p.As = act.WhoAmI(ctx, c)
	p, err := preview.Of(p, objects)
	if err != nil {
		return err
	}
	err = command.PrintPreview(o.env, p, o.output)
	if p.Fails() {
		return errors.Join(err, command.WithCode(command.ExitFailed, fmt.Errorf("the %s of %s would be refused: see what is marked with ✗ "+
			"above", p.Verb, p.Subject)))
	}
	return err
}
