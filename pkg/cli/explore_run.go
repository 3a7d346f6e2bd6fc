package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/operators/document"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/cases"
	"kudo.dev/kudo/pkg/explore/config"
)

type exploreRunOptions struct {
	files                               []string
	operation, desired, observed, items string
	live, output                        string
	replicas                            int32
}

func (t *tool) exploreRunCommand() *cobra.Command {
	o := &exploreRunOptions{}
	cmd := &cobra.Command{
		Use:   "run --operation OPERATION [-f FILE] (--desired FILE | --observed FILE | --live KIND/NAME)",
		Short: "Ask one operation about one object",
		Long: `Ask one operation about one object, and show who answers, and what. Retain shows what changes in the desired object.

With --live the object is read from the cluster; without -f, so are the Configs.`,
		Example: `  kubectl kudo explore run -f config.yaml --operation Retain --desired desired.yaml --observed observed.yaml
  kubectl kudo explore run --operation InterpretHealth --live deployment.apps/web`,
		Args: exactly(0, "no arguments, but flags"),
		RunE: func(cmd *cobra.Command, _ []string) error { return t.exploreRun(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.files, "filename", "f", nil, "a file of Configs, or a folder of such files; may be given several times")
	f.StringVar(&o.operation, "operation", "", "the operation, such as ExploreRetaining or Retain (required)")
	f.StringVar(&o.desired, "desired", "", "a file of the desired object")
	f.StringVar(&o.observed, "observed", "", "a file of the observed object")
	f.StringVar(&o.live, "live", "", "an object of the cluster, as KIND/NAME or KIND.GROUP/NAME")
	f.Int32Var(&o.replicas, "replicas", 0, "the number of replicas (ReviseReplica)")
	f.StringVar(&o.items, "status", "", "a file of a list of status items (AggregateStatus)")
	f.StringVarP(&o.output, "output", "o", "", "yaml or json")
	return cmd
}

func (t *tool) exploreRun(ctx context.Context, o *exploreRunOptions) error {
	if err := checkFormat(o.output); err != nil {
		return err
	}
	operation, err := explore.ParseOperation(o.operation)
	if err != nil {
		return usage("--operation: %w", err)
	}
	if o.live != "" && o.observed != "" {
		return usage("--live and --observed exclude one another")
	}
	if len(o.files) == 0 && o.live == "" {
		return usage("name Configs by -f, or an object of the cluster by --live")
	}
	r, configs, err := t.exploreRequest(ctx, o, operation)
	if err != nil {
		return err
	}
	chain := explore.Chain{config.New(luaHost(), configs, nil)}
	answer, known, err := chain.Explore(ctx, r)
	if err != nil {
		return err
	}
	return t.exploreAnswer(o.output, r, answer, known)
}

// exploreRequest reads what is asked about, and the Configs.
func (t *tool) exploreRequest(ctx context.Context, o *exploreRunOptions, operation explore.Operation) (explore.Request, []v1alpha1.Config, error) {
	r := explore.Request{Operation: operation, Replicas: o.replicas}
	desired, err := t.exploreObject(o.desired)
	if err != nil {
		return r, nil, err
	}
	observed, err := t.exploreObject(o.observed)
	if err != nil {
		return r, nil, err
	}
	var configs []v1alpha1.Config
	if len(o.files) > 0 {
		if configs, err = t.readConfigs(o.files); err != nil {
			return r, nil, err
		}
	}
	if o.live != "" {
		c, _, namespace, err := t.connect()
		if err != nil {
			return r, nil, err
		}
		if observed, err = liveObject(ctx, c, namespace, o.live); err != nil {
			return r, nil, err
		}
		if len(o.files) == 0 {
			if configs, err = liveConfigs(ctx, c); err != nil {
				return r, nil, err
			}
		}
	}
	r.Object = desired
	switch {
	case operation == explore.Retaining:
		r.Observed = observed
	case observed != nil && (desired == nil || operation == explore.Healthy || operation == explore.Status):
		r.Object = observed
	}
	if r.Object == nil {
		return r, nil, usage("name the object by --desired, --observed or --live")
	}
	if o.items != "" {
		value, err := t.exploreValue(o.items)
		if err != nil {
			return r, nil, err
		}
		if r.Items, err = cases.Items(value); err != nil {
			return r, nil, fmt.Errorf("%s: %w", o.items, err)
		}
	}
	return r, configs, r.Validate()
}

// exploreValue reads the first YAML document of a file; nil without a file.
func (t *tool) exploreValue(name string) (any, error) {
	if name == "" {
		return nil, nil
	}
	text, err := t.input(name)
	if err != nil {
		return nil, err
	}
	value, _, err := document.Parse(text)
	if err == nil {
		value, err = document.JSON(value)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

func (t *tool) exploreObject(name string) (*unstructured.Unstructured, error) {
	value, err := t.exploreValue(name)
	if err != nil || value == nil {
		return nil, err
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s holds no object", name)
	}
	return &unstructured.Unstructured{Object: fields}, nil
}

// liveObject reads KIND/NAME or KIND.GROUP/NAME; kinds go by their resource's names, too.
func liveObject(ctx context.Context, c client.Client, namespace, text string) (*unstructured.Unstructured, error) {
	kind, name, ok := strings.Cut(text, "/")
	if !ok || kind == "" || name == "" {
		return nil, usage("--live %s: write KIND/NAME or KIND.GROUP/NAME, as deployment.apps/web", text)
	}
	resource := schema.ParseGroupResource(strings.ToLower(kind))
	gvk, err := c.RESTMapper().KindFor(resource.WithVersion(""))
	if err != nil {
		return nil, fmt.Errorf("--live %s: %w", text, err)
	}
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	key := client.ObjectKey{Name: name}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		key.Namespace = namespace
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object, c.Get(ctx, key, object)
}

// liveConfigs reads the Configs of a cluster.
func liveConfigs(ctx context.Context, c client.Client) ([]v1alpha1.Config, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ConfigList"))
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("read the Configs of the cluster: %w", err)
	}
	configs := make([]v1alpha1.Config, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &configs[i]); err != nil {
			return nil, fmt.Errorf("read Config %s: %w", list.Items[i].GetName(), err)
		}
	}
	return configs, nil
}

// exploreAnswer prints who answered, and what.
func (t *tool) exploreAnswer(output string, r explore.Request, a explore.Answer, known bool) error {
	if output != "" {
		return t.printAny(output, map[string]any{"operation": r.Operation, "answered": known, "layer": a.Layer, "who": a.Who, "value": answerValue(r.Operation, a)})
	}
	if !known {
		t.say("no opinion: nobody answers %s for %s %s", r.Operation, r.Object.GetAPIVersion(), r.Object.GetKind())
		return nil
	}
	t.say("answered by: %s (%s)", a.Layer, a.Who)
	if r.Operation == explore.Retaining {
		changes := explore.Changes(r.Object.Object, a.Object.Object)
		if len(changes) == 0 {
			t.say("nothing is retained: the desired object stays as it is")
		}
		for _, c := range changes {
			t.say("%s", c)
		}
		return nil
	}
	text, err := document.Marshal(answerValue(r.Operation, a))
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(t.out, text)
	return err
}

// answerValue is the value of an answer, as JSON types.
func answerValue(operation explore.Operation, a explore.Answer) any {
	var value any
	switch operation {
	case explore.Healthy:
		value = map[string]any{"healthy": a.Healthy, "message": a.Message}
	case explore.Dependencies:
		value = a.Dependencies
	case explore.Replica:
		value = map[string]any{"replicas": a.Replicas, "requirements": a.Requirements}
	case explore.Status:
		return a.Status
	default:
		if a.Object == nil {
			return nil
		}
		return a.Object.Object
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	plain, _, err := document.Parse(text)
	if err != nil {
		return err.Error()
	}
	return plain
}

// configText is a Config as YAML, without its empty status.
func configText(c *v1alpha1.Config) (string, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		return "", err
	}
	delete(fields, "status")
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	return document.Marshal(fields)
}
