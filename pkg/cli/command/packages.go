package command

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/versions"
	"kudo.dev/kudo/pkg/repository"
)

// VersionFlags are the flags that select a version of a package, and its repository.
type VersionFlags struct {
	// OperatorVersion and AppVersion are versions or ranges; empty ones are any.
	OperatorVersion, AppVersion string
	// Repo is the name of a repository; empty is the one in use.
	Repo string
	// IgnoreLock leaves the lock file of the package out, but not those of its dependencies.
	IgnoreLock bool
	// Registry says how registries are reached.
	Registry RegistryFlags
}

// Add adds the flags.
func (o *VersionFlags) Add(flags *pflag.FlagSet) {
	flags.StringVar(&o.OperatorVersion, "operator-version", "", "version of the operator, or a range such as ^1.2 (default the highest)")
	flags.StringVar(&o.AppVersion, "app-version", "", "version of the application, or a range (default the highest)")
	flags.StringVar(&o.Repo, "repo", "", "name of the repository that PACKAGE and its dependencies are in (default the one in use)")
	o.Registry.Add(flags)
}

// Check returns an error if a flag is neither a version nor a range.
func (o *VersionFlags) Check() error {
	for _, wanted := range []string{o.OperatorVersion, o.AppVersion} {
		if err := versions.CheckRange(wanted); err != nil {
			return UsageError("%w", err)
		}
	}
	return nil
}

// RepositoryHome returns the folder of repositories and their cache.
func (env *Env) RepositoryHome() (repository.Home, error) {
	if env.home != "" {
		return repository.Home{Dir: env.home}, nil
	}
	return repository.DefaultHome(os.Getenv, os.UserHomeDir)
}

// Remote returns a source of packages in repositories and at URLs. The caller closes it.
func (env *Env) Remote() (*repository.Remote, error) {
	home, err := env.RepositoryHome()
	if err != nil {
		return nil, err
	}
	return repository.NewRemote(home, 0, env.Warnf), nil
}

// VersionName returns the name of the OperatorVersion that a package becomes.
func VersionName(p *operators.Package) string {
	return operators.VersionName(p.Operator.Name, p.Operator.AppVersion, p.Operator.OperatorVersion)
}

// ResolvePackages finds a package and its dependencies, the dependencies first, checks their tasks, and prints warnings.
func (env *Env) ResolvePackages(ctx context.Context, name string, o VersionFlags) ([]*operators.Package, error) {
	packages, err := env.findPackages(ctx, name, o)
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		for _, w := range p.Warnings {
			env.Warnf("package %s: %s", p.Operator.Name, w)
		}
		if err := append(p.ValidateNames(), p.ValidateTasks()...).Err(); err != nil { // before anything is written
			return nil, fmt.Errorf("package %s:\n%w", p.Operator.Name, err)
		}
	}
	return packages, nil
}

// DescribePackage returns the name of a package in messages.
func DescribePackage(pkg *operators.Package) string {
	return fmt.Sprintf("operator %s %s", pkg.Operator.Name, pkg.Operator.OperatorVersion)
}

// findPackages finds a package and its dependencies: as a folder or an archive, at a URL, in a registry, or in a repository. A name
// is that of a folder if there is one, unless a repository is named.
func (env *Env) findPackages(ctx context.Context, name string, o VersionFlags) (packages []*operators.Package, err error) {
	err = env.withFoundPackage(ctx, name, o, func(chain repository.Chain, found *repository.Found) error {
		packages, err = chain.WithDependencies(ctx, found)
		return err
	})
	return packages, err
}

// FindPackage finds a package as findPackages does, without its dependencies, and prints warnings of fields that were ignored.
func (env *Env) FindPackage(ctx context.Context, name string, o VersionFlags) (pkg *operators.Package, err error) {
	err = env.withFoundPackage(ctx, name, o, func(_ repository.Chain, found *repository.Found) error {
		pkg = found.Package
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, w := range pkg.Warnings {
		env.Warnf("package %s: %s", pkg.Operator.Name, w)
	}
	return pkg, nil
}

// withFoundPackage finds a package, and calls do while the source of the package is open.
func (env *Env) withFoundPackage(ctx context.Context, name string, o VersionFlags,
	do func(repository.Chain, *repository.Found) error) (err error) {
	if err := o.Check(); err != nil {
		return err
	}
	source, err := env.RemoteWith(&o.Registry)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	chain := repository.Chain{repository.Local{Base: ".", Names: true}, source}
	found, err := chain.Resolve(ctx, repository.Request{
		Name: name, AppVersion: o.AppVersion, OperatorVersion: o.OperatorVersion, Repository: o.Repo,
	})
	if err != nil {
		return err
	}
	if o.IgnoreLock {
		found.Package.Lock = nil
	}
	return do(chain, found)
}
