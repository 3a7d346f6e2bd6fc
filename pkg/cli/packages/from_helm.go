package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/helmrelease"
	"kudo.dev/kudo/pkg/atomicfile"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/helmstore"
)

type fromHelmOptions struct {
	env *command.Env

	release                        string
	manifests                      string
	destination                    string
	parameters                     []string
	instance                       string
	overwrite, complete, back, yes bool
	allowUnproven                  bool
}

func newFromHelm(env *command.Env) *cobra.Command {
	o := &fromHelmOptions{env: env}
	cmd := &cobra.Command{
		Use:   "from-helm RELEASE",
		Short: "Write a package of a release or a chart of Helm, and take the release over",
		Long: `Write a package of a release of Helm. Its templates are the objects of the release, a file each: CustomResourceDefinitions,
other cluster-scoped objects and objects of other namespaces are those of its install plan, and hooks are phases. Secrets are no part
of the package. Helm is not needed.

With --manifests, the package is made of a chart that is not installed: of the objects that helm template prints. RELEASE is the name that
Helm was given for them.

Whoever may write Secrets in the namespace decides what a release holds. An object of the install plan must exist, and its annotations must
say that it is of the release; --allow-cluster-objects does without this proof.

With --complete, an Instance of the package keeps the objects: the Secrets of the release are set aside, so that Helm does not delete
them. With --return, the objects are Helm's again, and the Instance is deleted.

  kubectl kudo package from-helm shop -n lab -d shop --parameter REPLICAS=Deployment/web:spec.replicas
  helm template shop ./chart --include-crds | kubectl kudo package from-helm shop --manifests - -d shop
  kubectl kudo install ./shop -n lab --instance shop --adopt --create-service-account --wait
  kubectl kudo package from-helm shop -n lab --complete --instance shop
  kubectl kudo package from-helm shop -n lab --return --instance shop`,
		Args: command.ExactArgs(1, "the name of one release of Helm"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.release = args[0]
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.destination, "destination", "d", "", "folder to write the package to (default the name of the release)")
	f.StringVar(&o.manifests, "manifests", "", "file with what helm template prints of a chart, or - for standard input")
	f.StringArrayVar(&o.parameters, "parameter", nil,
		"value that becomes a parameter, as NAME=Kind/name:path; may be repeated")
	f.BoolVarP(&o.overwrite, "overwrite", "w", false, "replace files of the package that are there already")
	f.BoolVar(&o.allowUnproven, "allow-cluster-objects", false,
		"put objects into the install plan that the release names, and that nothing proves to be its own")
	f.BoolVar(&o.complete, "complete", false, "set the Secrets of the release aside, when an Instance has taken over its objects")
	f.BoolVar(&o.back, "return", false, "give the objects back to Helm, and delete the Instance")
	f.StringVar(&o.instance, "instance", "", "name of the Instance (with --complete and --return)")
	f.BoolVarP(&o.yes, "yes", "y", false, "complete or return without asking")
	cmd.MarkFlagsMutuallyExclusive("complete", "return")
	return cmd
}

func (o *fromHelmOptions) run(ctx context.Context) error {
	moves := o.complete || o.back
	switch {
	case moves && o.instance == "":
		return command.UsageError("--complete and --return need --instance: the Instance that has taken the release over")
	case moves && (o.destination != "" || o.manifests != "" || len(o.parameters) > 0 || o.overwrite || o.allowUnproven):
		return command.UsageError("--complete and --return write no package: leave out --destination, --manifests, --parameter, --overwrite " +
			"and --allow-cluster-objects")
	case o.manifests != "" && o.allowUnproven:
		return command.UsageError("--allow-cluster-objects cannot be used with --manifests, which proves nothing: leave it out")
	case !moves && (o.instance != "" || o.yes):
		return command.UsageError("--instance and --yes require --complete or --return: add one of them")
	}
	var lifts []helmrelease.Lift
	for _, text := range o.parameters {
		lift, err := helmrelease.ParseLift(text)
		if err != nil {
			return command.UsageError("--parameter %w", err)
		}
		lifts = append(lifts, lift)
	}
	c, _, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	m := &helmMove{env: o.env, client: c, namespace: namespace, release: o.release, instance: o.instance, yes: o.yes}
	switch {
	case o.complete:
		return m.complete(ctx)
	case o.back:
		return m.giveBack(ctx)
	}
	return o.writePackage(ctx, c, namespace, lifts)
}

// writePackage writes the package of the release or the chart, and checks it.
func (o *fromHelmOptions) writePackage(ctx context.Context, c client.Client, namespace string, lifts []helmrelease.Lift) error {
	release, err := o.read(ctx, c, namespace)
	if err != nil {
		return err
	}
	converted, err := helmrelease.Convert(release, scopeOf(c), lifts)
	if err != nil {
		return fmt.Errorf("release %s/%s: %w", namespace, o.release, err)
	}
	if release.Version > 0 {
		if err := o.checkInstalled(ctx, c, release, converted.Objects); err != nil {
			return err
		}
	}
	dir := o.destination
	if dir == "" {
		dir = converted.Operator
	}
	if err := o.writeFiles(dir, converted.Files); err != nil {
		return err
	}
	for _, note := range converted.Notes {
		o.env.Printf("%s", note)
	}
	_, findings, err := lintPackage(ctx, dir)
	if err != nil {
		return err
	}
	if len(findings.Errors) > 0 {
		return fmt.Errorf("package %s, which was written to %s, needs corrections: %w", converted.Operator, dir,
			operators.Errors(findings.Errors))
	}
	origin := fmt.Sprintf("revision %d of release %s/%s", release.Version, namespace, release.Name)
	if release.Version == 0 {
		origin = "chart " + cmp.Or(release.Chart.Metadata.Name, release.Name)
	}
	o.env.Printf("package %s created in %s of %s: %d objects", converted.Operator, dir, origin, len(converted.Objects))
	return nil
}

// read returns the release of the cluster that is deployed, or that of the manifests of a chart.
func (o *fromHelmOptions) read(ctx context.Context, c client.Client, namespace string) (*helmrelease.Release, error) {
	if o.manifests != "" {
		return o.readManifests(namespace)
	}
	release, newest, err := readRelease(ctx, c, namespace, o.release)
	if err == nil && newest != "deployed" {
		o.env.Warnf("the newest revision of release %s is %s: the package is made of revision %d, which was deployed last; what runs may "+
			"differ from it", o.release, newest, release.Version)
	}
	return release, err
}

// readManifests reads what helm template has printed.
func (o *fromHelmOptions) readManifests(namespace string) (*helmrelease.Release, error) {
	from := o.env.In
	if o.manifests != "-" {
		file, err := os.Open(o.manifests)
		if err != nil {
			return nil, fmt.Errorf("--manifests: %w", err)
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, helmrelease.MaxContent+1))
	if err != nil {
		return nil, fmt.Errorf("--manifests %s: %w", o.manifests, err)
	}
	release, err := helmrelease.Rendered(o.release, namespace, string(text))
	if err != nil {
		return nil, fmt.Errorf("--manifests %s: %w", o.manifests, err)
	}
	return release, nil
}

// writeFiles writes the files of a package into a folder that holds none of them, unless they may be replaced.
func (o *fromHelmOptions) writeFiles(dir string, files map[string][]byte) error {
	for name := range files {
		target := filepath.Join(dir, filepath.FromSlash(name))
		if _, missing := os.Lstat(target); !o.overwrite && !errors.Is(missing, fs.ErrNotExist) {
			return fmt.Errorf("%s exists already: use --overwrite, or another folder", target)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "templates"), 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := atomicfile.Write(filepath.Join(dir, filepath.FromSlash(name)), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// readRelease reads the revision of a release that is deployed, and the status of its newest revision.
func readRelease(ctx context.Context, c client.Client, namespace, name string) (*helmrelease.Release, string, error) {
	stored, err := helmstore.List(ctx, c, namespace, name)
	if err != nil {
		return nil, "", err
	}
	if len(stored) == 0 {
		return nil, "", fmt.Errorf("namespace %s has no release %s of Helm: name another namespace with -n (helm list -A shows releases)",
			namespace, name)
	}
	return stored.Deployed()
}

// scopeOf asks the cluster which kinds are namespaced.
func scopeOf(c client.Client) helmrelease.Scope {
	return func(kind schema.GroupVersionKind) (bool, error) {
		mapping, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return false, err
		}
		return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
	}
}
