package explore

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
	"kudo.dev/kudo/operators/yamldoc"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/cases"
	"kudo.dev/kudo/pkg/explore/live"
)

type runOptions struct {
	env *command.Env

	files                               []string
	operation, desired, observed, items string
	live, output                        string
	replicas                            int32
}

func newRun(env *command.Env) *cobra.Command {
	o := &runOptions{env: env}
	cmd := &cobra.Command{
		Use:   "run --operation OPERATION [-f FILE] (--desired FILE | --observed FILE | --live KIND/NAME)",
		Short: "Ask one operation about one object",
		Long: `Ask one operation about one object, and show who answers, and what. Retain shows what changes in the desired object.

Those are asked that kudo asks: Configs, webhooks, the rules that come with kudo for well-known projects, and those for
the kinds of Kubernetes. Configs are those of -f. With --live, the object is read from the cluster, and so are webhooks
and, without -f, Configs. Webhooks are asked from here: one whose Service cannot
be reached from here, as outside of the cluster, is named and left out.`,
		Example: `  kubectl kudo explore run -f config.yaml --operation Retain --desired desired.yaml --observed observed.yaml
  kubectl kudo explore run --operation InterpretHealth --live deployment.apps/web
  kubectl kudo explore run --operation Retain --desired desired.yaml --live deployment.apps/web`,
		Args: command.ExactArgs(0, "no arguments, but flags"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.files, "filename", "f", nil, "a file of Configs, or a folder of such files; may be repeated")
	f.StringVar(&o.operation, "operation", "", "the operation, such as ExploreRetaining or Retain (required)")
	f.StringVar(&o.desired, "desired", "", "a file of the desired object")
	f.StringVar(&o.observed, "observed", "", "a file of the observed object")
	f.StringVar(&o.live, "live", "", "an object of the cluster, as KIND/NAME or KIND.GROUP/NAME")
	f.Int32Var(&o.replicas, "replicas", 0, "the number of replicas (ReviseReplica)")
	f.StringVar(&o.items, "status", "", "a file of a list of status items (AggregateStatus)")
	f.StringVarP(&o.output, "output", "o", "", "yaml or json")
	return cmd
}

func (o *runOptions) run(ctx context.Context) error {
	if err := command.CheckFormat(o.output); err != nil {
		return err
	}
	operation, err := explore.ParseOperation(o.operation)
	if err != nil {
		return command.UsageError("--operation: %w", err)
	}
	if o.live != "" && o.observed != "" {
		return command.UsageError("--live and --observed exclude one another")
	}
	if kind, name, _ := strings.Cut(o.live, "/"); o.live != "" && (kind == "" || name == "") {
		return command.UsageError("--live %s: write KIND/NAME or KIND.GROUP/NAME, as deployment.apps/web", o.live)
	}
	asked := &runInputs{}
	if err := o.exploreKnown(ctx, asked); err != nil {
		return err
	}
	r, err := o.exploreRequest(operation, asked.observed)
	if err != nil {
		return err
	}
	for _, h := range asked.unreached {
		if h.MatchesAny(operation, r.Object.GroupVersionKind().Group) {
			o.env.Warnf("%s", h)
		}
	}
	chain, err := live.NewChain(asked.configs, asked.cluster, asked.hooks)
	if err != nil {
		return err
	}
	answer, known, err := chain.Explore(ctx, r)
	if err != nil {
		return err
	}
	for _, ignored := range answer.Ignored {
		o.env.Warnf("%s: %s", answeredBy(answer), ignored)
	}
	return exploreAnswer(o.env, o.output, r, answer, known)
}

// runInputs are the rules that answer an operation, and the live object that it is about.
type runInputs struct {
	configs   []v1alpha1.Config
	cluster   client.Client
	hooks     []v1alpha1.ResourceExploringWebhookConfiguration
	unreached []live.UnreachedWebhook
	observed  *unstructured.Unstructured
}

// exploreKnown reads Configs from files, and the object, webhooks and, without files, Configs from the cluster.
func (o *runOptions) exploreKnown(ctx context.Context, asked *runInputs) (err error) {
	if len(o.files) > 0 {
		if asked.configs, err = readConfigs(o.env, o.files); err != nil {
			return err
		}
	}
	if o.live == "" {
		return nil
	}
	c, _, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	asked.cluster = c
	if asked.observed, err = liveObject(ctx, c, namespace, o.live); err != nil {
		return err
	}
	if len(o.files) == 0 {
		if asked.configs, err = live.List[v1alpha1.Config](ctx, c, "Config"); err != nil {
			return err
		}
	}
	asked.hooks, asked.unreached, err = live.Hooks(ctx, c)
	return err
}

// exploreRequest reads what is asked about. A live object stands in for the observed one.
func (o *runOptions) exploreRequest(operation explore.Operation, observed *unstructured.Unstructured) (explore.Request, error) {
	r := explore.Request{Operation: operation, Replicas: o.replicas}
	desired, err := exploreObject(o.env, o.desired)
	if err != nil {
		return r, err
	}
	if observed == nil {
		if observed, err = exploreObject(o.env, o.observed); err != nil {
			return r, err
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
		return r, command.UsageError("name the object by --desired, --observed or --live")
	}
	if o.items != "" {
		value, err := exploreValue(o.env, o.items)
		if err != nil {
			return r, err
		}
		var warnings []string
		if r.Items, warnings, err = cases.Items(value); err != nil {
			return r, fmt.Errorf("%s: %w", o.items, err)
		}
		for _, w := range warnings {
			o.env.Warnf("%s: %s", o.items, w)
		}
	}
	return r, r.Validate()
}

// exploreValue reads the first YAML document of a file; nil without a file.
func exploreValue(env *command.Env, name string) (any, error) {
	if name == "" {
		return nil, nil
	}
	text, err := readInput(env, name)
	if err != nil {
		return nil, err
	}
	value, _, err := yamldoc.Parse(text)
	if err == nil {
		value, err = yamldoc.JSON(value)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

func exploreObject(env *command.Env, name string) (*unstructured.Unstructured, error) {
	value, err := exploreValue(env, name)
	if err != nil || name == "" {
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
	kind, name, _ := strings.Cut(text, "/")
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

// exploreAnswer prints who answered, and what.
func exploreAnswer(env *command.Env, output string, r explore.Request, a explore.Answer, known bool) error {
	if output != "" {
		return env.PrintValue(output, map[string]any{"operation": r.Operation, "answered": known, "layer": a.Layer, "who": a.Who,
			"value": answerValue(r.Operation, a)})
	}
	if !known {
		env.Printf("no opinion: no layer answers %s for %s %s", r.Operation, r.Object.GetAPIVersion(), r.Object.GetKind())
		return nil
	}
	env.Printf("answered by: %s", answeredBy(a))
	if r.Operation == explore.Retaining {
		changes := explore.Changes(r.Object.Object, a.Object.Object)
		if len(changes) == 0 {
			env.Printf("nothing is retained: the desired object stays as it is")
		}
		for _, c := range changes {
			env.Printf("%s", c)
		}
		return nil
	}
	text, err := yamldoc.Marshal(answerValue(r.Operation, a))
	if err != nil {
		return err
	}
	return env.Print(text)
}

// answeredBy names the layer, and who in it.
func answeredBy(a explore.Answer) string {
	if a.Who == "" {
		return string(a.Layer)
	}
	return fmt.Sprintf("%s (%s)", a.Layer, a.Who)
}

// answerValue is the value of an answer, as JSON types.
func answerValue(operation explore.Operation, a explore.Answer) any {
	var value any
	switch operation {
	case explore.Healthy:
		value = map[string]any{"healthy": a.Healthy, "message": a.Message, "outcome": a.Outcome()}
	case explore.Dependencies:
		value = a.Dependencies
	case explore.Components:
		value = a.Components
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
	plain, _, err := yamldoc.Parse(text)
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
	return yamldoc.Marshal(fields)
}
