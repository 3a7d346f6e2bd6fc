package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/install"
	"kudo.dev/kudo/pkg/rights"
)

type packageRightsOptions struct {
	parameters
	choice
	instance, account, output string
}

func (t *tool) packageRightsCommand() *cobra.Command {
	o := &packageRightsOptions{}
	cmd := &cobra.Command{
		Use:   "rights PACKAGE",
		Short: "Print the rights that the plans of a package need",
		Long: `Print the rights that the plans of a package need: those of a Role in the namespace of the Instance, and apart from it
what is cluster-scoped, with the tasks that write it. All plans count but the install plan, in both states of what a
parameter switches, and the plans of dependencies. Other parameters may name other objects.

With -o yaml, the objects are printed that give these rights to a ServiceAccount, for kubectl apply.

No cluster is needed, but for kinds that neither Kubernetes nor the package defines.

  kubectl kudo package rights ./web -n lab --instance site
  kubectl kudo package rights ./web -n lab --instance site -o yaml | kubectl apply -f -`,
		Args: anyPackage(),
		RunE: func(cmd *cobra.Command, args []string) error { return t.packageRights(cmd.Context(), args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.instance, "instance", "", "name of the Instance (default <operator>-instance)")
	f.StringVar(&o.account, "service-account", "", "ServiceAccount that -o yaml gives the rights to (default <instance>-kudo)")
	f.StringVarP(&o.output, "output", "o", "table", "table, yaml or json")
	o.choice.add(f)
	o.parameters.add(f)
	return cmd
}

func (t *tool) packageRights(ctx context.Context, name string, o *packageRightsOptions) error {
	if o.output != "table" && o.output != "yaml" && o.output != "json" {
		return usage("invalid output format %q: use table, yaml or json", o.output)
	}
	given, err := o.read()
	if err != nil {
		return err
	}
	packages, err := t.resolve(ctx, name, o.choice)
	if err != nil {
		return err
	}
	pkg := packages[len(packages)-1]
	if err := checkValues(pkg.Definitions(), given, nil, nil, described(pkg)); err != nil {
		return err
	}
	namespace := cmp.Or(*t.flags.Namespace, "default")
	s := rights.Subject{Namespace: namespace, Name: cmp.Or(o.instance, operators.DefaultInstanceName(pkg.Operator.Name)), Parameters: given}
	if err := operators.CheckInstanceName(s.Name); err != nil {
		return usage("--instance: %w", err)
	}
	versions, err := specsOf(packages, namespace)
	if err != nil {
		return err
	}
	s.Version = versions[versionName(pkg)]
	needed, err := rights.Of(s, rights.Known{Versions: versions.find, Served: t.served()})
	if err != nil {
		return fmt.Errorf("package %s: %w", pkg.Operator.Name, err)
	}
	a := newAccount(s.Namespace, s.Name, o.account, needed.Rules)
	a.manager = types.NamespacedName{Namespace: install.DefaultNamespace, Name: install.ServiceAccount}
	return t.printRights(a, needed, o.output)
}

// specs are OperatorVersions by name.
type specs map[string]*v1beta1.OperatorVersionSpec

func (s specs) find(name string) *v1beta1.OperatorVersionSpec { return s[name] }

// specsOf are those that packages become.
func specsOf(packages []*operators.Package, namespace string) (specs, error) {
	out := specs{}
	for _, p := range packages {
		_, version, err := operators.Convert(p, namespace)
		if err != nil {
			return nil, fmt.Errorf("package %s:\n%w", p.Operator.Name, err)
		}
		out[version.Name] = &version.Spec
	}
	return out, nil
}

// served finds kinds on the cluster of the flags, which is connected to when the first is asked for. One that does not
// answer soon knows none.
func (t *tool) served() func(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	var mapper meta.RESTMapper
	var failed error
	return func(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
		if mapper == nil && failed == nil {
			mapper, failed = t.mapper()
		}
		if failed != nil {
			return nil, failed
		}
		mapping, err := mapper.RESTMapping(kind, versions...)
		if err != nil && !meta.IsNoMatchError(err) {
			failed = err
		}
		return mapping, err
	}
}

func (t *tool) mapper() (meta.RESTMapper, error) {
	config, err := t.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Timeout = 5 * time.Second
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return apiutil.NewDynamicRESTMapper(config, transport)
}

func (t *tool) printRights(a *account, needed *rights.Rights, output string) error {
	for _, note := range needed.Notes {
		t.warn("%s", safe(note))
	}
	switch output {
	case "json":
		return t.printAny("json", needed)
	case "yaml":
		for _, object := range append(a.objects(), a.clusterObjects(needed.ClusterRules)...) {
			text, err := yaml.Marshal(object)
			if err != nil {
				return err
			}
			t.say("---\n%s", strings.TrimRight(string(text), "\n"))
		}
		return nil
	}
	return t.rightsTable(a.namespace, needed)
}

// rightsTable prints rights for people.
func (t *tool) rightsTable(namespace string, needed *rights.Rights) error {
	t.say("In namespace %s:", namespace)
	if err := t.table(ruleRows("", needed.Rules)); err != nil {
		return err
	}
	if len(needed.ClusterRules) == 0 {
		return nil
	}
	t.say("\nFor the whole cluster, which no account of a namespace has by itself:")
	if err := t.table(ruleRows("", needed.ClusterRules)); err != nil {
		return err
	}
	rows := [][]string{{"OBJECT", "TASK", "INSTANCE"}}
	for _, object := range needed.ClusterScoped {
		rows = append(rows, []string{safe(object.Kind + " " + object.Name), safe(object.Task), safe(object.Instance)})
	}
	t.say("")
	return t.table(rows)
}

// ruleRows are the rows of a table of rules. The sign stands before each.
func ruleRows(sign string, rules []rbacv1.PolicyRule) [][]string {
	rows := [][]string{{sign + "RESOURCES", "VERBS", "NAMES"}}
	if sign != "" {
		rows = nil
	}
	for _, rule := range rules {
		resources := append([]string{}, rule.NonResourceURLs...)
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				resources = append(resources, rights.ResourceName(group, name))
			}
		}
		names := "any"
		if len(rule.ResourceNames) > 0 {
			names = joined(rule.ResourceNames)
		}
		rows = append(rows, []string{sign + joined(resources), joined(rule.Verbs), names})
	}
	return rows
}

func joined(texts []string) string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = safe(text)
	}
	return strings.Join(out, ", ")
}

// safe is a text of a package as a terminal may have it: control characters could hide what stands beside them.
func safe(text string) string {
	if quoted := strconv.Quote(text); len(quoted) != len(text)+2 {
		return quoted
	}
	return text
}
