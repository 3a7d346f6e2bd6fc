package diagnostics

import (
	"context"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

// dependencies collects what the objects of the plan of an Instance that runs, else of the one that ran last, depend on and is missing. The
// OperatorVersion is nil if it could not be read.
func (c *Collector) dependencies(ctx context.Context, i *instance, ov *unstructured.Unstructured) {
	plan, _ := plans.LatestRun(i.Status.PlanStatus)
	if c.Dependencies == nil || ov == nil || plan == "" {
		return
	}
	what := "dependencies of instance " + i.Namespace + "/" + i.Name
	version := &v1beta1.OperatorVersion{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(ov.Object, version); err != nil {
		c.fail(what, err)
		return
	}
	found, err := c.Dependencies(ctx, i.Instance, version, plan)
	c.fail(what, err)
	if found == nil {
		return
	}
	text, err := yaml.Marshal(map[string]any{"plan": plan, "objects": found})
	if err == nil { // names may have been made of sensitive values
		name := path.Join(i.operator, "instance_"+safe(i.Name), "dependencies.yaml")
		err = c.folder.Write(name, []byte(c.redact.Text(string(text))))
	}
	c.fail(what, err)
}
