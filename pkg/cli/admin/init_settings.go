package admin

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/settings"
)

// settingFlags are the flags of init for the settings of kudo on a cluster. A setting whose flag is not given stays as it is.
type settingFlags struct {
	strict, privileged, runAsEverywhere bool
	keepArgs, dropArgs                  bool
	values                              map[string]*string
	// given reports whether a flag was given.
	given func(name string) bool
}

func (s *settingFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&s.strict, "strict", false, "run plans with the rights of ServiceAccounts only (the default of a new installation)")
	f.BoolVar(&s.privileged, "privileged", false, "run plans of Instances that name no ServiceAccount with the rights of kudo, as KUDO did: "+
		"whoever may create Instances is an administrator of the cluster")
	f.BoolVar(&s.runAsEverywhere, settings.RunAsEverywhereKey, false, "let the manager act as ServiceAccounts of all namespaces, and not "+
		"only of those that bind the ClusterRole kudo-run-as to it")
	f.BoolVar(&s.keepArgs, "keep-args", false, "keep arguments of the manager's Deployment that init did not write")
	f.BoolVar(&s.dropArgs, "drop-args", false, "remove arguments of the manager's Deployment that init did not write")
	s.values = map[string]*string{
		settings.DefaultAccountKey: f.String(settings.DefaultAccountKey, "", "ServiceAccount, of each Instance's namespace, of Instances that "+
			"name none (default "+settings.DefaultAccount+")"),
		settings.AllowedHostsKey: f.String(settings.AllowedHostsKey, "", "comma-separated hosts that CRD tarballs may come from, such as "+
			"example.org or *.example.org (default those that OperatorVersions name)"),
		settings.DefaultCRDURLKey: f.String(settings.DefaultCRDURLKey, "", "URL of the CRD tarball of packages that name none; a template "+
			"over .OperatorName, .OperatorVersion, .AppVersion, .Name and .Namespace"),
		settings.TokenRealmsKey: f.String(settings.TokenRealmsKey, "", "comma-separated hosts, besides a registry's own, that credentials "+
			"of the registry may be sent to"),
		settings.PackagePolicyKey: f.String(settings.PackagePolicyKey, "", "required: run no package that no PackagePolicy is for (default: "+
			"packages that no policy is for may run)"),
	}
}

func (s *settingFlags) validate() error {
	switch {
	case s.strict && s.privileged:
		return command.UsageError("--strict and --privileged exclude each other")
	case s.keepArgs && s.dropArgs:
		return command.UsageError("--keep-args and --drop-args exclude each other")
	}
	return nil
}

// any reports whether a flag was given.
func (s *settingFlags) any() bool {
	for name := range s.values {
		if s.given(name) {
			return true
		}
	}
	return s.strict || s.privileged || s.keepArgs || s.dropArgs || s.given(settings.RunAsEverywhereKey)
}

// apply changes the settings whose flags were given.
func (s *settingFlags) apply(to *settings.Settings) error {
	if to.Mode == "" {
		*to = settings.Default()
	}
	data := to.Data()
	if s.strict {
		data[settings.ModeKey] = string(settings.Strict)
	}
	if s.privileged {
		data[settings.ModeKey] = string(settings.Privileged)
	}
	if s.given(settings.RunAsEverywhereKey) {
		data[settings.RunAsEverywhereKey] = "false"
		if s.runAsEverywhere {
			data[settings.RunAsEverywhereKey] = "true"
		}
	}
	for name, value := range s.values {
		if s.given(name) {
			data[name] = *value
		}
	}
	next, err := settings.Parse(data)
	if err != nil {
		return command.UsageError("%s", strings.TrimPrefix(err.Error(), "ConfigMap "+settings.ConfigMap+": "))
	}
	*to = next
	return nil
}

// keepArgs wants arguments of the manager's Deployment that init did not write to be kept or dropped in words.
func (o *initOptions) keepArgs(ctx context.Context, c client.Client, live *kudoinit.InstalledState,
	objs []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if o.External || o.CRDsOnly || o.settings.dropArgs {
		return objs, nil
	}
	foreign, err := live.ForeignArgs(ctx, c, objs)
	if err != nil || len(foreign) == 0 {
		return objs, err
	}
	if !o.settings.keepArgs {
		return nil, command.UsageError("Deployment %s/kudo-controller-manager has %s, which init would remove: say --keep-args or --drop-args",
			live.Namespace, strings.Join(foreign, " "))
	}
	o.Values.ExtraArgs = append(o.Values.ExtraArgs, foreign...)
	return kudoinit.Objects(o.Options)
}

// dropRunAs takes back that the manager may act as ServiceAccounts of all namespaces.
func dropRunAs(ctx context.Context, env *command.Env, c client.Client) error {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: kudoinit.RunAsRole}}
	err := c.Delete(ctx, binding)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete ClusterRoleBinding %s: %w", kudoinit.RunAsRole, err)
	}
	env.Printf("clusterrolebinding %s removed", kudoinit.RunAsRole)
	return nil
}
