package instances

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/share"
)

// sharing looks at shared objects on behalf of the user. It writes nothing.
func sharing(config *rest.Config, c client.Client) (*share.Engine, error) {
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	kinds := apply.NewKinds(c.RESTMapper(), disco, dyn)
	return share.New(share.Options{Objects: apply.New(dyn, meta, kinds, nil, nil), Kinds: kinds, Reader: c, Clock: clock.RealClock{}}), nil
}

// sharedObject is an object that OperatorVersions hold, and who they are.
type sharedObject struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Namespace  string   `json:"namespace,omitempty"`
	Name       string   `json:"name"`
	State      string   `json:"state"`
	Managed    bool     `json:"managed"`
	HeldBy     []string `json:"heldBy"`
	Owners     []string `json:"owners,omitempty"`
	Message    string   `json:"message,omitempty"`
}

// getShared lists the objects that OperatorVersions and Instances hold in the cluster.
func getShared(ctx context.Context, env *command.Env, output string) error {
	if output == "name" {
		return command.UsageError("get shared prints a table, yaml or json")
	}
	c, config, _, err := env.Connect()
	if err != nil {
		return err
	}
	list := &v1beta1.InstallationList{}
	if err := c.List(ctx, list); err != nil {
		return err
	}
	found, err := sharedObjects(ctx, config, c, list)
	if err != nil {
		return err
	}
	if output == "yaml" || output == "json" {
		return env.PrintValue(output, found)
	}
	if len(found) == 0 {
		_, err := fmt.Fprintln(env.Err, "No shared objects found.")
		return err
	}
	rows := [][]string{{"OBJECT", "STATE", "CREATED-BY-KUDO", "HELD-BY"}}
	if output == "wide" {
		rows[0] = append(rows[0], "OWNERS", "MESSAGE")
	}
	for _, o := range found {
		name := o.Name
		if o.Namespace != "" {
			name = o.Namespace + "/" + name
		}
		row := []string{o.Kind + " " + name, o.State, fmt.Sprint(o.Managed), strings.Join(o.HeldBy, ", ")}
		if output == "wide" {
			row = append(row, strings.Join(o.Owners, ", "), o.Message)
		}
		rows = append(rows, row)
	}
	return env.PrintTable(rows)
}

// sharedObjects merges the inventories, and looks each object up.
func sharedObjects(ctx context.Context, config *rest.Config, c client.Client, list *v1beta1.InstallationList) ([]*sharedObject, error) {
	engine, err := sharing(config, c)
	if err != nil {
		return nil, err
	}
	found := map[string]*sharedObject{}
	for _, i := range list.Items {
		holder := fmt.Sprintf("%s %s/%s", i.Spec.Subject.Kind, i.Spec.Subject.Namespace, i.Spec.Subject.Name)
		for _, r := range i.Status.Resources {
			id := share.IDOf(r)
			o := found[id.String()+id.Group]
			if o == nil {
				o = &sharedObject{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, State: "OK"}
				found[id.String()+id.Group] = o
				if err := o.look(ctx, engine, r); err != nil {
					return nil, err
				}
			}
			o.HeldBy = append(o.HeldBy, fmt.Sprintf("%s (%s)", holder, r.State))
			if r.State == v1beta1.HoldMismatch || r.State == v1beta1.HoldMissing {
				o.State, o.Message = string(r.State), r.Message
			}
		}
	}
	out := []*sharedObject{} // a program reads a list, even if it is empty
	for _, o := range found {
		slices.Sort(o.HeldBy)
		out = append(out, o)
	}
	sort.Slice(out, func(a, b int) bool {
		return out[a].Kind+"/"+out[a].Namespace+"/"+out[a].Name < out[b].Kind+"/"+out[b].Namespace+"/"+out[b].Name
	})
	return out, nil
}

// look reads the live object.
func (o *sharedObject) look(ctx context.Context, engine *share.Engine, r v1beta1.HeldResource) error {
	live, err := engine.Live(ctx, r)
	if err != nil {
		return err
	}
	switch {
	case live == nil:
		o.State = string(v1beta1.HoldMissing)
		return nil
	case live.GetDeletionTimestamp() != nil:
		o.State = "Terminating"
	}
	o.Managed = share.Managed(live)
	for _, owner := range live.GetOwnerReferences() {
		o.Owners = append(o.Owners, owner.Kind+" "+owner.Name)
	}
	return nil
}
