package cli

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/repository"
)

// choice are the flags that say which version of a package is meant, and from where.
type choice struct {
	// operatorVersion and appVersion are versions or ranges; empty ones are any.
	operatorVersion, appVersion string
	// repo is the name of a repository; empty is the one in use.
	repo string
}

func (o *choice) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.operatorVersion, "operator-version", "", "version of the operator, or a range such as ^1.2 (default the highest)")
	flags.StringVar(&o.appVersion, "app-version", "", "version of the application, or a range (default the highest)")
	flags.StringVar(&o.repo, "repo", "", "name of the repository that PACKAGE and its dependencies are in (default the one in use)")
}

// check refuses what is neither a version nor a range.
func (o *choice) check() error {
	for _, wanted := range []string{o.operatorVersion, o.appVersion} {
		if err := repository.CheckRange(wanted); err != nil {
			return usage("%w", err)
		}
	}
	return nil
}

// findPackages finds a package and its dependencies: as a folder or an archive, at a URL, or in a repository. A name
// is that of a folder if there is one, unless a repository is named.
func (t *tool) findPackages(ctx context.Context, name string, o choice) (packages []*operators.Package, err error) {
	err = t.finding(ctx, name, o, func(chain repository.Chain, found *repository.Found) error {
		packages, err = chain.WithDependencies(ctx, found)
		return err
	})
	return packages, err
}

// findPackage finds a package as findPackages does, without its dependencies, and shows what was ignored in it.
func (t *tool) findPackage(ctx context.Context, name string, o choice) (pkg *operators.Package, err error) {
	err = t.finding(ctx, name, o, func(_ repository.Chain, found *repository.Found) error {
		pkg = found.Package
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, w := range pkg.Warnings {
		t.warn("package %s: %s", pkg.Operator.Name, w)
	}
	return pkg, nil
}

// finding finds a package, and does something with it while its source is open.
func (t *tool) finding(ctx context.Context, name string, o choice, do func(repository.Chain, *repository.Found) error) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	source, err := t.remote()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	chain := repository.Chain{repository.Local{Base: ".", Names: true}, source}
	found, err := chain.Resolve(ctx, repository.Request{
		Name: name, AppVersion: o.appVersion, OperatorVersion: o.operatorVersion, Repository: o.repo,
	})
	if err != nil {
		return err
	}
	return do(chain, found)
}
