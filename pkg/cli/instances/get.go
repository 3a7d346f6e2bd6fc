package instances

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
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
	var output string
	var all bool
	cmd := &cobra.Command{
		Use:       "get instances|operators|operatorversions|shared|all",
		Short:     "List Instances, Operators, OperatorVersions, and what OperatorVersions share in the cluster",
		ValidArgs: []string{"instances", "operators", "operatorversions", "shared", "all"},
		Args:      command.ExactArgs(1, "one of instances, operators, operatorversions, shared and all"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return getObjects(cmd.Context(), env, args[0], output, all)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "yaml, json, wide or name")
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "of all namespaces")
	return cmd
}

// listedKind is a kind that get lists, by what users call it.
type listedKind struct {
	names []string
	list  func() client.ObjectList
}

var kinds = []listedKind{
	{[]string{"operators", "operator"}, func() client.ObjectList { return &v1beta1.OperatorList{} }},
	{[]string{"operatorversions", "operatorversion"}, func() client.ObjectList { return &v1beta1.OperatorVersionList{} }},
	{[]string{"instances", "instance"}, func() client.ObjectList { return &v1beta1.InstanceList{} }},
}

func getObjects(ctx context.Context, env *command.Env, what, output string, all bool) error {
	if output != "" && output != "yaml" && output != "json" && output != "wide" && output != "name" {
		return command.UsageError("invalid output format %q: use yaml, json, wide or name", output)
	}
	if what == "shared" {
		return getShared(ctx, env, output)
	}
	if what != "all" && !slices.ContainsFunc(kinds, func(k listedKind) bool { return slices.Contains(k.names, what) }) {
		return command.UsageError("unknown kind %q: use instances, operators, operatorversions, shared or all", what)
	}
	c, _, namespace, err := env.Connect()
	if err != nil {
		return err
	}
	var options []client.ListOption
	if !all {
		options = append(options, client.InNamespace(namespace))
	}
	var wide func(*v1beta1.Instance) []string
	if output == "wide" {
		if wide, err = declarations(ctx, c); err != nil {
			return err
		}
	}
	var objs []*unstructured.Unstructured
	for _, kind := range kinds {
		if what != "all" && !slices.Contains(kind.names, what) {
			continue
		}
		list := kind.list()
		if err := c.List(ctx, list, options...); err != nil {
			return err
		}
		switch output {
		case "", "wide":
			if err := listObjects(env, list, what == "all", all, wide); err != nil {
				return err
			}
		default:
			items, err := items(list)
			if err != nil {
				return err
			}
			objs = append(objs, items...)
		}
	}
	switch output {
	case "name":
		for _, obj := range objs {
			env.Printf("%s.kudo.dev/%s", strings.ToLower(obj.GetKind()), obj.GetName())
		}
		return nil
	case "yaml", "json":
		return env.PrintObjects(output, objs)
	}
	return nil
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

// listObjects prints a table of one kind. If wide is not nil, it returns more columns of an Instance.
func listObjects(env *command.Env, list client.ObjectList, titled, namespaces bool, wide func(*v1beta1.Instance) []string) error {
	var rows [][]string
	title := ""
	switch l := list.(type) {
	case *v1beta1.OperatorList:
		title, rows = "operators", [][]string{{"NAMESPACE", "NAME", "URL", "AGE"}}
		for _, o := range l.Items {
			rows = append(rows, []string{o.Namespace, o.Name, o.Spec.URL, age(&o)})
		}
	case *v1beta1.OperatorVersionList:
		title, rows = "operatorversions", [][]string{{"NAMESPACE", "NAME", "OPERATOR", "VERSION", "APP-VERSION", "INSTALLED", "AGE"}}
		for _, o := range l.Items {
			rows = append(rows, []string{o.Namespace, o.Name, o.Spec.Operator.Name, o.Spec.Version, o.Spec.AppVersion, fmt.Sprint(o.Installed()),
				age(&o)})
		}
	case *v1beta1.InstanceList:
		title, rows = "instances", [][]string{{"NAMESPACE", "NAME", "OPERATOR-VERSION", "READY", "DRIFTED", "STATUS", "ACTIVE-PLAN", "AGE"}}
		if wide != nil {
			rows[0] = append(rows[0], "REPLICAS", "REQUESTS", "MESSAGE")
		}
		for _, i := range l.Items {
			row := []string{i.Namespace, i.Name, i.Spec.OperatorVersion.Name, condition(&i, v1beta1.ReadyCondition),
				drifted(&i), string(i.Status.AggregatedStatus.Status), i.Status.AggregatedStatus.ActivePlanName, age(&i)}
			if wide != nil {
				row = append(append(row, wide(&i)...), i.Status.AggregatedStatus.Message)
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 1 {
		_, err := fmt.Fprintf(env.Err, "No %s found.\n", title)
		return err
	}
	if !namespaces {
		for i := range rows {
			rows[i] = rows[i][1:]
		}
	}
	if titled {
		for i := range rows[1:] {
			rows[i+1][0] = strings.TrimSuffix(title, "s") + ".kudo.dev/" + rows[i+1][0]
		}
	}
	if err := env.PrintTable(rows); err != nil {
		return err
	}
	if titled {
		env.Printf("")
	}
	return nil
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

func age(o client.Object) string {
	return duration.HumanDuration(time.Since(o.GetCreationTimestamp().Time))
}
