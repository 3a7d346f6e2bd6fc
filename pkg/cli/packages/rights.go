package packages

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/pkginstall"
	"kudo.dev/kudo/pkg/rights"
)

type rightsOptions struct {
	env *command.Env

	command.ParameterFlags
	command.VersionFlags
	instance, account, output string
}

func newRights(env *command.Env) *cobra.Command {
	o := &rightsOptions{env: env}
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
		Args: command.AnyPackage(),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.instance, "instance", "", "name of the Instance (default <operator>-instance)")
	f.StringVar(&o.account, "service-account", "", "ServiceAccount that -o yaml gives the rights to (default <instance>-kudo)")
	f.StringVarP(&o.output, "output", "o", "table", "table, yaml or json")
	o.VersionFlags.Add(f)
	o.ParameterFlags.Add(f)
	return cmd
}

func (o *rightsOptions) run(ctx context.Context, name string) error {
	if o.output != "table" && o.output != "yaml" && o.output != "json" {
		return command.UsageError("invalid output format %q: use table, yaml or json", o.output)
	}
	given, err := o.Read()
	if err != nil {
		return err
	}
	packages, err := o.env.ResolvePackages(ctx, name, o.VersionFlags)
	if err != nil {
		return err
	}
	pkg := packages[len(packages)-1]
	if err := act.CheckValues(pkg.Definitions(), given, nil, nil, command.DescribePackage(pkg)); err != nil {
		return err
	}
	namespace, _, err := o.env.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	s := rights.Subject{Namespace: namespace, Name: cmp.Or(o.instance, operators.DefaultInstanceName(pkg.Operator.Name)), Parameters: given}
	if err := operators.CheckInstanceName(s.Name); err != nil {
		return command.UsageError("--instance: %w", err)
	}
	made, err := pkginstall.Versions(packages, namespace, nil)
	if err != nil {
		return err
	}
	versions := pkginstall.SpecsOf(made)
	s.Version = versions[command.VersionName(pkg)]
	needed, err := rights.Of(s, rights.Known{Versions: versions.Find, Served: served(o.env)})
	if err != nil {
		return fmt.Errorf("package %s: %w", pkg.Operator.Name, err)
	}
	a := rights.NewAccount(s.Namespace, s.Name, o.account, needed.Rules)
	a.Manager = types.NamespacedName{Namespace: kudoinit.DefaultNamespace, Name: kudoinit.ServiceAccount}
	return printRights(o.env, a, needed, o.output)
}

// served finds kinds on the cluster of the flags, which is connected to when the first is asked for.
func served(env *command.Env) func(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	var mapper meta.RESTMapper
	return func(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
		if mapper == nil {
			var err error
			if mapper, err = connectMapper(env); err != nil {
				return nil, err
			}
		}
		return mapper.RESTMapping(kind, versions...)
	}
}

// connectMapper returns what finds kinds on the cluster. Each of its requests ends after five seconds.
func connectMapper(env *command.Env) (meta.RESTMapper, error) {
	config, err := env.Flags.ToRESTConfig()
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

func printRights(env *command.Env, a *rights.Account, needed *rights.Rights, output string) error {
	for _, note := range needed.Notes {
		env.Warnf("%s", command.QuoteControls(note))
	}
	switch output {
	case "json":
		return env.PrintValue("json", needed)
	case "yaml":
		for _, object := range append(a.Objects(), a.ClusterObjects(needed.ClusterRules)...) {
			text, err := yaml.Marshal(object)
			if err != nil {
				return err
			}
			env.Printf("---\n%s", strings.TrimRight(string(text), "\n"))
		}
		return nil
	}
	return rightsTable(env, a.Namespace, needed)
}

// rightsTable prints rights for people.
func rightsTable(env *command.Env, namespace string, needed *rights.Rights) error {
	env.Printf("In namespace %s:", namespace)
	if err := env.PrintTable(command.RuleRows("", needed.Rules)); err != nil {
		return err
	}
	if len(needed.ClusterRules) == 0 {
		return nil
	}
	env.Printf("\nFor the whole cluster, which no account of a namespace has by itself:")
	if err := env.PrintTable(command.RuleRows("", needed.ClusterRules)); err != nil {
		return err
	}
	rows := [][]string{{"OBJECT", "TASK", "INSTANCE"}}
	for _, object := range needed.ClusterScoped {
		rows = append(rows, []string{command.QuoteControls(object.Kind + " " + object.Name), command.QuoteControls(object.Task),
			command.QuoteControls(object.Instance)})
	}
	env.Printf("")
	return env.PrintTable(rows)
}
