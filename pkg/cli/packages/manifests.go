package packages

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/atomicfile"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/pkginstall"
)

// manifestFlags are the flags of render that describe the objects of a repository.
type manifestFlags struct {
	manifests, overwrite bool
	destination, account string
	sources              command.SourceFlags
	schedules            command.ScheduleFlags
	installing           command.InstallParameterFlags
	flags                *pflag.FlagSet
}

// manifestOnly are the flags that require --manifests, renderOnly those that do not.
var (
	manifestOnly = []string{"destination", "overwrite", "service-account", command.SourcesFlag, "schedule", "install-parameter"}
	renderOnly   = []string{"plan", "phase", "step", "from-app-version", "from-operator-version"}
)

func (m *manifestFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&m.manifests, "manifests", false, "print the objects that install would create, for a GitOps repository")
	f.StringVarP(&m.destination, "destination", "d", "", "folder to write the manifests to, a file for each object (default: print them)")
	f.BoolVarP(&m.overwrite, "overwrite", "w", false, "replace files of other content")
	f.StringVar(&m.account, "service-account", "", "ServiceAccount of the namespace with whose rights the plans write")
	m.sources.Add(f)
	m.schedules.Add(f)
	m.installing.Add(f)
	m.flags = f
}

// check returns an error if a flag is given that has no effect.
func (m *manifestFlags) check() error {
	without, with := manifestOnly, "requires --manifests: add --manifests"
	if m.manifests {
		without, with = renderOnly, "cannot be used with --manifests, which renders no template"
	}
	for _, name := range without {
		if m.flags.Changed(name) {
			return command.UsageError("--%s %s", name, with)
		}
	}
	if m.overwrite && m.destination == "" {
		return command.UsageError("--overwrite requires --destination: add --destination")
	}
	return nil
}

// writeManifests prints or writes what install would create of a package.
func (o *renderOptions) writeManifests(ctx context.Context, name string, given map[string]string) error {
	packages, err := o.env.ResolvePackages(ctx, name, o.VersionFlags)
	if err != nil {
		return err
	}
	pkg := packages[len(packages)-1]
	installing, err := o.installing.Read(pkg)
	if err != nil {
		return err
	}
	instance, err := o.newInstance(pkg, given)
	if err != nil {
		return err
	}
	if err := refuseSensitive(pkg.Definitions(), given, installing); err != nil {
		return err
	}
	if err := command.CheckPackage(ctx, pkg, instance, installing); err != nil {
		return err
	}
	objects, err := pkginstall.Manifests(packages, instance.Namespace, installing, instance)
	if err != nil {
		return err
	}
	if o.destination != "" {
		return o.writeFiles(objects)
	}
	for _, obj := range objects {
		text, err := pkginstall.FormatManifest(obj)
		if err != nil {
			return err
		}
		// These bytes are for a file: control characters stay as YAML writes them.
		if _, err := fmt.Fprintf(o.env.Out, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

// newInstance returns the Instance that the flags describe, after it was checked as install does.
func (o *renderOptions) newInstance(pkg *operators.Package, given map[string]string) (*v1beta1.Instance, error) {
	from, err := o.sources.Read()
	if err != nil {
		return nil, err
	}
	schedules, err := o.schedules.Apply(nil)
	if err != nil {
		return nil, err
	}
	instance := pkginstall.NewInstance(pkginstall.InstanceOptions{
		Namespace: cmp.Or(*o.env.Flags.Namespace, "default"), Name: cmp.Or(o.instance, operators.DefaultInstanceName(pkg.Operator.Name)),
		Operator: pkg.Operator.Name, OperatorVersion: command.VersionName(pkg), Parameters: given, ParametersFrom: from, Schedules: schedules,
		ServiceAccountName: o.account,
	})
	if err := operators.CheckInstanceName(instance.Name); err != nil {
		return nil, command.UsageError("--instance: %w", err)
	}
	return instance, act.CheckValues(pkg.Definitions(), given, nil, from, command.DescribePackage(pkg))
}

// refuseSensitive returns an error if a value is that of a sensitive parameter: all who may read the repository could read it.
func refuseSensitive(defs []v1beta1.Parameter, given ...map[string]string) error {
	for _, def := range defs {
		for _, values := range given {
			if _, set := values[def.Name]; set && def.Sensitive {
				return command.UsageError("parameter %s is sensitive, and all who may read the repository could read its value: leave it out, put "+
					"it into a Secret of the namespace under the key %s, and name that by --%s secret/NAME", def.Name, def.Name, command.SourcesFlag)
			}
		}
	}
	return nil
}

// writeFiles writes a file for each object. Nothing is written if a file has another content, unless it is to be replaced.
func (o *renderOptions) writeFiles(objects []*unstructured.Unstructured) error {
	texts := make([][]byte, len(objects))
	for i, obj := range objects {
		text, err := pkginstall.FormatManifest(obj)
		if err != nil {
			return err
		}
		texts[i] = text
		path := filepath.Join(o.destination, pkginstall.ManifestFile(obj))
		present, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("read what is there: %w", err)
		case !o.overwrite && !bytes.Equal(present, text):
			return fmt.Errorf("%s exists already, with other content: use --overwrite, or another --destination", path)
		}
	}
	if err := os.MkdirAll(o.destination, 0o755); err != nil {
		return fmt.Errorf("make the folder of the manifests: %w", err)
	}
	for i, obj := range objects {
		path := filepath.Join(o.destination, pkginstall.ManifestFile(obj))
		if err := atomicfile.Write(path, texts[i], 0o644); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		o.env.Printf("%s %s written to %s", strings.ToLower(obj.GetKind()), obj.GetName(), path)
	}
	return nil
}
