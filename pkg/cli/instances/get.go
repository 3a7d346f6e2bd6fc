package instances

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
)

// NewGet returns the command get.
func NewGet(env *command.Env) *cobra.Command {
	o := &getOptions{env: env}
	cmd := &cobra.Command{
		Use:   "get instances|operators|operatorversions|shared|all [NAME…]",
		Short: "List Instances, Operators, OperatorVersions, and what OperatorVersions share in the cluster",
		Long: `List Instances, Operators, OperatorVersions, and what OperatorVersions share in the cluster: all of a namespace, or those
that are named.

  kubectl kudo get instances -A
  kubectl kudo get instances db -o wide
  kubectl kudo get instances --clusters`,
		ValidArgs: []string{"instances", "operators", "operatorversions", "shared", "all"},
		Args:      cobra.ArbitraryArgs,
		RunE:      func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "yaml, json, wide or name")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "of all namespaces")
	cmd.Flags().BoolVar(&o.clusters, "clusters", false, "show the clusters that a hub places each Instance on")
	return cmd
}

// getOptions are the flags of get.
type getOptions struct {
	env           *command.Env
	output        string
	allNamespaces bool
	clusters      bool
}

// check returns a usage error for what get cannot list.
func (o *getOptions) check(args []string) error {
	if len(args) == 0 {
		return command.UsageError("kubectl kudo get takes one of instances, operators, operatorversions, shared and all, and names behind it")
	}
	what, named := args[0], len(args) > 1
	switch {
	case o.output != "" && o.output != "yaml" && o.output != "json" && o.output != "wide" && o.output != "name":
		return command.UsageError("invalid output format %q: use yaml, json, wide or name", o.output)
	case what != "shared" && len(kindsOf(what)) == 0:
		return command.UsageError("unknown kind %q: use instances, operators, operatorversions, shared or all", what)
	case named && (what == "all" || what == "shared"):
		return command.UsageError("kubectl kudo get %s takes no names, and got %s", what, strings.Join(args[1:], " "))
	case named && o.allNamespaces:
		return command.UsageError("--all-namespaces cannot be used with a name: name a namespace by -n")
	}
	return o.checkClusters(what)
}

// listedKind is a kind that get lists, by what users call it.
type listedKind struct {
	names  []string
	list   func() client.ObjectList
	object func() client.Object
}

var kinds = []listedKind{
	{[]string{"operators", "operator"}, func() client.ObjectList { return &v1beta1.OperatorList{} },
		func() client.Object { return &v1beta1.Operator{} }},
	{[]string{"operatorversions", "operatorversion"}, func() client.ObjectList { return &v1beta1.OperatorVersionList{} },
		func() client.Object { return &v1beta1.OperatorVersion{} }},
	{[]string{"instances", "instance"}, func() client.ObjectList { return &v1beta1.InstanceList{} },
		func() client.Object { return &v1beta1.Instance{} }},
}

// kindsOf returns the kind of a name, or each kind for all.
func kindsOf(what string) []listedKind {
	if what == "all" {
		return kinds
	}
	return slices.DeleteFunc(slices.Clone(kinds), func(k listedKind) bool { return !slices.Contains(k.names, what) })
}

func (o *getOptions) run(ctx context.Context, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	what := args[0]
	if what == "shared" {
		return getShared(ctx, o.env, o.output)
	}
	c, _, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	if o.allNamespaces {
		namespace = ""
	}
	selected := objectSelection{kinds: kindsOf(what), namespace: namespace, names: args[1:]}
	if o.output != "" && o.output != "wide" {
		return o.printObjects(ctx, c, selected)
	}
	t := tables{env: o.env, titled: what == "all", namespaces: o.allNamespaces}
	if o.clusters {
		return selected.each(ctx, c, t.printClusters)
	}
	if o.output == "wide" {
		if t.wide, err = declarations(ctx, c); err != nil {
			return err
		}
	}
	return selected.each(ctx, c, t.print)
}

// printObjects prints all objects of a selection together: their names, or their content.
func (o *getOptions) printObjects(ctx context.Context, c client.Client, selected objectSelection) error {
	var objs []*unstructured.Unstructured
	if err := selected.each(ctx, c, func(list client.ObjectList) error {
		found, err := items(list)
		objs = append(objs, found...)
		return err
	}); err != nil {
		return err
	}
	if o.output != "name" {
		return o.env.PrintObjects(o.output, objs)
	}
	for _, obj := range objs {
		o.env.Printf("%s.kudo.dev/%s", strings.ToLower(obj.GetKind()), obj.GetName())
	}
	return nil
}

// objectSelection is what get reads: the objects of the names, or all objects without names, of some kinds in a namespace, or in all
// namespaces if that is "".
type objectSelection struct {
	kinds     []listedKind
	namespace string
	names     []string
}

// each reads the objects kind by kind, and calls use with those of one kind before it reads the next kind.
func (s objectSelection) each(ctx context.Context, c client.Client, use func(client.ObjectList) error) error {
	for _, kind := range s.kinds {
		list, err := kind.read(ctx, c, s.namespace, s.names)
		if err != nil {
			return err
		}
		if err := use(list); err != nil {
			return err
		}
	}
	return nil
}

// read reads the objects of the names into a list, in the order of the names. Without names, it lists all objects of a namespace, or of all
// namespaces if that is "".
func (k listedKind) read(ctx context.Context, c client.Client, namespace string, names []string) (client.ObjectList, error) {
	list := k.list()
	if len(names) == 0 {
		return list, c.List(ctx, list, client.InNamespace(namespace))
	}
	var found []runtime.Object
	for _, name := range names {
		object := k.object()
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("%s %s/%s does not exist: kubectl kudo get %s -n %s lists them", k.names[1], namespace, name, k.names[0],
				namespace)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s/%s: %w", k.names[1], namespace, name, err)
		}
		found = append(found, object)
	}
	return list, meta.SetList(list, found)
}

func items(list client.ObjectList) ([]*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(list)
	if err != nil {
		return nil, err
	}
	all, _ := content["items"].([]any)
	kind := strings.TrimSuffix(fmt.Sprintf("%T", list)[len("*v1beta1."):], "List")
	out := make([]*unstructured.Unstructured, 0, len(all))
	for _, item := range all {
		obj := &unstructured.Unstructured{Object: item.(map[string]any)}
		obj.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
		unstructured.RemoveNestedField(obj.Object, "metadata", "managedFields")
		out = append(out, obj)
	}
	return out, nil
}

// tables prints objects as tables, one for each kind.
type tables struct {
	env *command.Env
	// titled writes the kind before each name, and an empty line behind each table.
	titled bool
	// namespaces shows the namespace of each object.
	namespaces bool
	// wide returns more columns of an Instance; without them it is nil.
	wide func(*v1beta1.Instance) []string
}

// print prints the table of one kind, or that there is no object of it.
func (t *tables) print(list client.ObjectList) error {
	title, rows := t.rows(list)
	if len(rows) == 1 {
		_, err := fmt.Fprintf(t.env.Err, "No %s found.\n", title)
		return err
	}
	if !t.namespaces {
		for i := range rows {
			rows[i] = rows[i][1:]
		}
	}
	if t.titled {
		for i := range rows[1:] {
			rows[i+1][0] = strings.TrimSuffix(title, "s") + ".kudo.dev/" + rows[i+1][0]
		}
	}
	if err := t.env.PrintTable(rows); err != nil {
		return err
	}
	if t.titled {
		t.env.Printf("")
	}
	return nil
}

// rows returns what the objects of a list are called, and their rows below that of the column names. The namespace comes first.
func (t *tables) rows(list client.ObjectList) (title string, rows [][]string) {
	switch l := list.(type) {
	case *v1beta1.OperatorList:
		title, rows = "operators", [][]string{{"NAMESPACE", "NAME", "URL", "AGE"}}
		for _, o := range l.Items {
			rows = append(rows, []string{o.Namespace, o.Name, o.Spec.URL, t.age(&o)})
		}
	case *v1beta1.OperatorVersionList:
		title, rows = "operatorversions", [][]string{{"NAMESPACE", "NAME", "OPERATOR", "VERSION", "APP-VERSION", "INSTALLED", "AGE"}}
		for _, o := range l.Items {
			rows = append(rows, []string{o.Namespace, o.Name, o.Spec.Operator.Name, o.Spec.Version, o.Spec.AppVersion, fmt.Sprint(o.Installed()),
				t.age(&o)})
		}
	case *v1beta1.InstanceList:
		title, rows = "instances", [][]string{{"NAMESPACE", "NAME", "OPERATOR-VERSION", "READY", "DRIFTED", "STATUS", "ACTIVE-PLAN", "AGE"}}
		if t.wide != nil {
			rows[0] = append(rows[0], "REPLICAS", "REQUESTS", "MESSAGE")
		}
		for _, i := range l.Items {
			row := []string{i.Namespace, i.Name, i.Spec.OperatorVersion.Name, condition(&i, v1beta1.ReadyCondition),
				drifted(&i), string(i.Status.AggregatedStatus.Status), i.Status.AggregatedStatus.ActivePlanName, t.age(&i)}
			if t.wide != nil {
				row = append(append(row, t.wide(&i)...), i.Status.AggregatedStatus.Message)
			}
			rows = append(rows, row)
		}
	}
	return title, rows
}

// condition is the status of a condition; empty if it is not there.
func condition(i *v1beta1.Instance, kind string) string {
	if c := meta.FindStatusCondition(i.Status.Conditions, kind); c != nil {
		return string(c.Status)
	}
	return ""
}

// drifted counts the objects that other clients have changed; empty if there is none.
func drifted(i *v1beta1.Instance) string {
	if n := len(i.Status.Drift); n > 0 {
		return strconv.Itoa(n)
	}
	return ""
}

func (t *tables) age(o client.Object) string {
	return duration.HumanDuration(t.env.Now().Sub(o.GetCreationTimestamp().Time))
}
