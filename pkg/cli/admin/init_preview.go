package admin

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/preview"
)

// printUpgrade prints what an upgrade would create, change and delete, in the form of all previews.
func (o *initOptions) printUpgrade(ctx context.Context, c client.Client, live *kudoinit.InstalledState, change *kudoinit.Change) error {
	deleted, err := kudoinit.PreviewReplace(ctx, c, live)
	if err != nil {
		return err
	}
	written, err := change.Preview(ctx, o.previewClient(c))
	if err != nil {
		return err
	}
	pruned, err := kudoinit.PreviewPrune(ctx, c, o.Version)
	if err != nil {
		return err
	}
	var objects []preview.Known
	for _, d := range slices.Concat(written, deleted, pruned) {
		id := apply.ID{GroupVersionKind: schema.FromAPIVersionAndKind(d.APIVersion, d.Kind)}
		id.Namespace, id.Name = d.Namespace, d.Name
		objects = append(objects, preview.Known{ID: id, Before: d.Before, After: d.After})
	}
	made, err := historyKey(c, o.Namespace).Exists(ctx)
	if err != nil {
		return err
	}
	if !made {
		id := apply.ID{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}}
		id.Namespace, id.Name = o.Namespace, keyring.SecretName
		objects = append(objects, preview.Known{ID: id, After: map[string]any{}})
	}
	p := &preview.Preview{Verb: "upgrade to " + o.Version, Subject: "kudo in namespace " + o.Namespace, As: command.WhoAmI(ctx, c)}
	if o.dryRun.IsLocal() {
		p.UnknownReasons = []string{preview.NotAsked}
	}
	p, err = preview.Of(p, objects)
	if err != nil {
		return err
	}
	return command.PrintPreview(o.env, p, o.output)
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
	if !f.Goes {
		r.Stays = append(r.Stays, preview.Stay{Object: f.ID.String(), Why: f.Reason})
		return
	}
	r.objects = append(r.objects, preview.Known{ID: f.ID, Why: f.Reason, Lost: f.Lost})
}

// print prints the preview of a removal that ended with an error. One that is refused is shown as such.
func (r *removalPreview) print(ctx context.Context, env *command.Env, c client.Client, output string, failed error) error {
	var used *kudoinit.InUse
	switch {
	case errors.As(failed, &used):
		r.Refused = append(r.Refused, used.Error())
	case failed != nil:
		return failed
	}
	r.Verb, r.Subject, r.As = "removal", "kudo", command.WhoAmI(ctx, c)
	p, err := preview.Of(&r.Preview, r.objects)
	if err != nil {
		return err
	}
	err = command.PrintPreview(env, p, output)
	if p.Fails() {
		return errors.Join(err, command.WithCode(command.ExitFailed, errors.New("the removal of kudo would be refused: see what is marked "+
			"with ✗ above")))
	}
	return err
}
