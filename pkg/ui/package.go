package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/pkginstall"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/pkg/rights"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans"
)

// versionChoice is a version of a package in a repository.
type versionChoice struct {
	OperatorVersion, AppVersion, Link string
	IsShown                           bool
}

// packageView is what the page of a package shows.
type packageView struct {
	// Problem is why it cannot be shown; empty if it can.
	Problem string
	// Back is the address of the list.
	Back       string
	Repository string
	Versions   []versionChoice
	// More is how many versions are not listed.
	More     int
	Operator *operators.OperatorFile
	Source   string
	Warnings []string
	Plans    []string
	// Dependencies are the other packages that are installed with it.
	Dependencies []string
	Parameters   []parameterRow
	Signature    signatureRow
	Rights       rightsView
	Command      string
}

// rightsView lists what the plans of a package need.
type rightsView struct {
	// Problem is why it is not known; empty if it is.
	Problem string
	// Rules are those in the namespace, and ClusterRules those for the whole cluster.
	Rules, ClusterRules []string
	Images, Notes       []string
}

const (
	// maxVersions is how many versions of a package are listed.
	maxVersions = 50
	// maxNeeds is how many rules, and how many images, of a package are listed.
	maxNeeds = 200
)

// packagePage returns the page of a version of a package, as it is in a repository.
func (s *Server) packagePage(r *http.Request) screen {
	q := readCatalogQuery(r.URL.Query())
	out := packageView{Repository: q.Repository, Back: catalogQuery{Repository: q.Repository}.link(1)}
	v := view{Title: "Package " + q.Name, Nav: "catalog", Fixed: true}
	if err := s.remotes.use(r.Context(), func(ctx context.Context, from *repository.Remote) error {
		found, err := findPackage(ctx, from, q, cmp.Or(s.Namespace, "default"))
		if err == nil {
			found.fill(&out)
			out.Signature = s.judgeAll(ctx, found.versions)
			out.Rights = found.rights(s.client.RESTMapper())
			out.Command = installCommand(out.Repository, s.Namespace, out.Operator)
		}
		return err
	}); err != nil {
		out.Problem, v.Status = long(err.Error()), statusOfRemote(err)
	}
	v.Form = &fragment{Template: "package", Data: out}
	return still(func() view { return v })
}

// foundPackage is a package of a repository.
type foundPackage struct {
	in     repository.Repository
	origin string
	// all are its versions in the repository, the highest first.
	all []repository.Entry
	// packages are the package and, before it, those that it depends on; versions are the OperatorVersions that they would become.
	packages []*operators.Package
	versions []*v1beta1.OperatorVersion
}

// findPackage finds a package with its dependencies and signatures, as an installation does.
func findPackage(ctx context.Context, from *repository.Remote, q catalogQuery, namespace string) (*foundPackage, error) {
	if q.Name == "" {
		return nil, errors.New("the address names no package: go back, and choose one")
	}
	out := &foundPackage{}
	var err error
	if out.in, err = from.Repository(q.Repository); err != nil {
		return nil, err
	}
	if out.all, err = from.Versions(ctx, out.in, q.Name); err != nil {
		return nil, err
	}
	exact := func(e repository.Entry) bool {
		return q.OperatorVersion == "" || e.OperatorVersion == q.OperatorVersion && e.AppVersion == q.AppVersion
	}
	if !slices.ContainsFunc(out.all, exact) { // what is no name of a package there, such as a URL, is not looked for elsewhere
		return nil, fmt.Errorf("repository %s has no package %s %s", out.in.Name, q.Name, q.OperatorVersion)
	}
	chain := repository.Chain{from}
	found, err := chain.Resolve(ctx, repository.Request{Name: q.Name, Repository: out.in.Name, OperatorVersion: q.OperatorVersion,
		AppVersion: q.AppVersion})
	if err != nil {
		return nil, err
	}
	if o := found.Package.Operator; !exact(repository.Entry{OperatorVersion: o.OperatorVersion, AppVersion: o.AppVersion}) {
		return nil, fmt.Errorf("repository %s has package %s %s with and without an appVersion: install it by the address of its archive",
			out.in.Name, q.Name, q.OperatorVersion)
	}
	out.origin = found.Origin
	if out.packages, err = chain.WithDependencies(ctx, found); err != nil {
		return nil, err
	}
	out.versions, err = pkginstall.Versions(out.packages, namespace, nil)
	return out, err
}

// version returns the OperatorVersion that the package would become.
func (f *foundPackage) version() *v1beta1.OperatorVersion { return f.versions[len(f.versions)-1] }

// fill fills the page with what the package says.
func (f *foundPackage) fill(out *packageView) {
	version := f.version()
	out.Repository, out.Back = f.in.Name, catalogQuery{Repository: f.in.Name}.link(1)
	out.Operator, out.Source = &f.packages[len(f.packages)-1].Operator, long(f.origin)
	for _, e := range f.all[:min(len(f.all), maxVersions)] {
		out.Versions = append(out.Versions, versionChoice{e.OperatorVersion, e.AppVersion, packageLink(f.in.Name, e),
			e.OperatorVersion == out.Operator.OperatorVersion && e.AppVersion == out.Operator.AppVersion})
	}
	out.More = len(f.all) - len(out.Versions)
	for _, p := range f.packages {
		for _, w := range p.Warnings {
			out.Warnings = append(out.Warnings, p.Operator.Name+": "+w.Message)
		}
	}
	out.Warnings = boundTexts(out.Warnings)
	for _, other := range f.versions[:len(f.versions)-1] {
		out.Dependencies = append(out.Dependencies, other.Spec.Operator.Name+" "+other.Spec.Version)
	}
	out.Plans, out.Parameters = plans.Names(version.Spec.Plans), definedParameters(version)
}

// installCommand returns the command that shows what an installation of a package would do.
func installCommand(repository, namespace string, o *operators.OperatorFile) string {
	args := []string{"kubectl kudo install", text.ShellQuote(o.Name), "--repo", text.ShellQuote(repository), "--operator-version",
		text.ShellQuote(o.OperatorVersion)}
	if o.AppVersion != "" {
		args = append(args, "--app-version", text.ShellQuote(o.AppVersion))
	}
	if namespace != "" {
		args = append(args, "-n", text.ShellQuote(namespace))
	}
	return strings.Join(append(args, "--dry-run"), " ")
}

// rights returns what the plans of the package need with its default parameters.
func (f *foundPackage) rights(mapper meta.RESTMapper) rightsView {
	version := f.version()
	needed, err := rights.Of(rights.Subject{Namespace: version.Namespace, Name: operators.DefaultInstanceName(version.Spec.Operator.Name),
		Version: &version.Spec}, rights.Known{Served: mapper.RESTMapping, Versions: pkginstall.SpecsOf(f.versions).Find})
	if err != nil {
		return rightsView{Problem: long(err.Error())}
	}
	return rightsView{Rules: describeRules(needed.Rules), ClusterRules: describeRules(needed.ClusterRules), Images: boundTexts(needed.Images),
		Notes: boundTexts(needed.Notes)}
}

func describeRules(rules []rbacv1.PolicyRule) []string {
	out := make([]string, len(rules))
	for n, rule := range rules {
		out[n] = rights.Describe(rule)
	}
	return boundTexts(out)
}

// boundTexts bounds how many texts are shown, and how long each is.
func boundTexts(texts []string) (out []string) {
	for _, t := range texts[:min(len(texts), maxNeeds)] {
		out = append(out, long(t))
	}
	if more := len(texts) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}
