package helmrelease

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/yamldoc"
	"kudo.dev/kudo/pkg/text"
)

// Scope reports whether the objects of a kind live in namespaces.
type Scope func(kind schema.GroupVersionKind) (namespaced bool, err error)

// Object is an object of a release.
type Object struct {
	schema.GroupVersionKind
	Namespace, Name string
	// Installed is set for objects of the install plan.
	Installed bool
	// Unmarked is set for CustomResourceDefinitions of the folder crds of the chart, on which Helm puts no annotations.
	Unmarked bool
	// Heritage is the value of the label heritage, which kudo sets on objects that it writes.
	Heritage string
}

// Converted is a package that was made of a release.
type Converted struct {
	// Operator is the name of the operator.
	Operator string
	// Files of the package, by their paths.
	Files map[string][]byte
	// Objects of the release that are part of the package, without hooks.
	Objects []Object
	// Notes say what of the release is not part of the package, or changes its meaning.
	Notes []string
}

// Defaults of the package.
const (
	kubernetesVersion = "1.30.0"
	installPlan       = "install"
	// installHooks is the parameter that runs the hooks of an installation.
	installHooks = "INSTALL_HOOKS"
)

// converter makes a package of a release.
type converter struct {
	release *Release
	scope   Scope
	lifts   *lifts
	out     *Converted
	budget  budget
	// files are the names of templates, and numbers the last number of each name that several objects have.
	files   map[string]bool
	numbers map[string]int
	// definitions, installed and deployed are the templates of objects by the plan that applies them.
	definitions, installed, deployed []string
	hooks                            []hook
}

// Convert makes a package of a release: its templates are the objects of the release, a file each.
func Convert(r *Release, scope Scope, given []Lift) (*Converted, error) {
	c := &converter{release: r, lifts: newLifts(given, r), out: &Converted{Files: map[string][]byte{}}, files: map[string]bool{},
		numbers: map[string]int{}}
	definitions, err := r.definitions(&c.budget)
	if err != nil {
		return nil, err
	}
	objs, err := c.budget.parseObjects("the manifest of the release", r.Manifest)
	if err != nil {
		return nil, err
	}
	defined := definedScopes(append(definitions, objs...))
	c.scope = func(kind schema.GroupVersionKind) (bool, error) {
		if namespaced, known := defined[kind.GroupKind()]; known {
			return namespaced, nil
		}
		return scope(kind)
	}
	for i, obj := range append(definitions, objs...) {
		if err := c.add(obj, i < len(definitions)); err != nil {
			return nil, err
		}
	}
	if err := c.addHooks(); err != nil {
		return nil, err
	}
	if err := c.lifts.check(); err != nil {
		return nil, err
	}
	return c.out, c.write()
}

func (c *converter) notef(format string, args ...any) {
	c.out.Notes = append(c.out.Notes, fmt.Sprintf(format, args...))
}

// add adds an object to the package. ofFolder is set for those of the folder crds.
func (c *converter) add(obj *unstructured.Unstructured, ofFolder bool) error {
	if isSecret(obj) {
		if c.release.Version == 0 {
			c.notef("%s is no part of the package, which would hold its values: create it before the package is installed", describe(obj))
		} else {
			c.notef("%s is no part of the package, which would hold its values: it stays as it is, and no plan changes it", describe(obj))
		}
		return nil
	}
	namespaced, err := c.scope(obj.GroupVersionKind())
	if err != nil {
		return fmt.Errorf("find out whether %s has a namespace: %w", describe(obj), err)
	}
	elsewhere := namespaced && obj.GetNamespace() != "" && obj.GetNamespace() != c.release.Namespace
	installed := !namespaced || elsewhere
	live := Object{GroupVersionKind: obj.GroupVersionKind(), Namespace: obj.GetNamespace(), Name: obj.GetName(), Installed: installed,
		Unmarked: ofFolder && isDefinition(obj), Heritage: obj.GetLabels()[v1beta1.HeritageLabel]}
	switch {
	case !namespaced:
		live.Namespace = ""
	case !elsewhere:
		live.Namespace = c.release.Namespace
		unstructured.RemoveNestedField(obj.Object, "metadata", "namespace")
	}
	c.out.Objects = append(c.out.Objects, live)
	file, err := c.addTemplate(obj, "", "")
	if err != nil {
		return err
	}
	switch {
	case isDefinition(obj):
		c.definitions = append(c.definitions, file)
	case elsewhere:
		c.installed = append(c.installed, file)
		c.notef("%s lives in namespace %s: the install plan creates it where it is absent, and leaves it as it is where it exists", describe(obj),
			plain(obj.GetNamespace()))
	case installed:
		c.installed = append(c.installed, file)
	default:
		c.deployed = append(c.deployed, file)
	}
	c.warnOfHeritage(obj)
	return nil
}

// warnOfHeritage notes selectors by a label that kudo sets, too.
func (c *converter) warnOfHeritage(obj *unstructured.Unstructured) {
	selector, _, _ := unstructured.NestedMap(obj.Object, "spec", "selector")
	if value, selects := selector[v1beta1.HeritageLabel]; selects && value != v1beta1.Heritage {
		c.notef("%s selects pods by the label %s, which kudo sets to %s when it replaces the pods: take the label out of the selector before",
			describe(obj), v1beta1.HeritageLabel, v1beta1.Heritage)
	}
}

// addTemplate writes the template of an object between two lines, and returns its name.
func (c *converter) addTemplate(obj *unstructured.Unstructured, before, after string) (string, error) {
	annotations := obj.GetAnnotations()
	for _, key := range hookAnnotations {
		delete(annotations, key)
	}
	if annotations[v1beta1.HelmResourcePolicyAnnotation] == "keep" {
		annotations[v1beta1.KeepAnnotation] = "true"
	}
	if obj.SetAnnotations(annotations); len(annotations) == 0 {
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations")
	}
	delete(obj.Object, "status")
	if err := c.lifts.apply(obj); err != nil {
		return "", err
	}
	content, err := c.lifts.template(obj)
	if err != nil {
		return "", err
	}
	file := c.fileName(obj)
	c.out.Files[operators.TemplatesFolder+"/"+file] = []byte(before + content + after)
	return file, nil
}

var notInFileNames = regexp.MustCompile(`[^a-z0-9.-]+`)

// maxFileName is how many characters of kind and name stand in the name of a template.
const maxFileName = 100

// fileName returns a name for the template of an object that no other template has.
func (c *converter) fileName(obj *unstructured.Unstructured) string {
	base := notInFileNames.ReplaceAllString(strings.ToLower(obj.GetKind()+"-"+obj.GetName()), "-")
	base = strings.Trim(base[:min(len(base), maxFileName)], ".-")
	name := base + ".yaml"
	for c.files[name] {
		c.numbers[base]++
		name = fmt.Sprintf("%s-%d.yaml", base, c.numbers[base]+1)
	}
	c.files[name] = true
	return name
}

// write writes operator.yaml and params.yaml.
func (c *converter) write() error {
	metadata := c.release.Chart.Metadata
	c.out.Operator = operatorName(c.release.Name)
	origin := fmt.Sprintf("Made of the Helm release %s, chart %s %s. %s", c.release.Name, metadata.Name, metadata.Version,
		metadata.Description)
	if c.release.Version == 0 {
		origin = fmt.Sprintf("Made of the Helm chart %s %s.", cmp.Or(metadata.Name, c.release.Name), metadata.Version)
	}
	file := map[string]any{
		"apiVersion": operators.APIVersion, "name": c.out.Operator,
		"operatorVersion": versionOf(metadata.Version, "0.1.0"), "kubernetesVersion": kubernetesVersion,
		"description": text.Plain(strings.TrimSpace(origin), 1000),
	}
	if version := versionOf(metadata.AppVersion, ""); version != "" {
		file["appVersion"] = version
	}
	file["tasks"], file["plans"] = c.tasks(), c.plans()
	if len(c.definitions)+len(c.installed) > 0 {
		file["installPlan"] = installPlan
	}
	content, err := yamldoc.Marshal(file)
	if err != nil {
		return err
	}
	c.out.Files[operators.OperatorFileName] = []byte(content)
	parameters := []any{}
	for _, p := range c.parameters() {
		parameters = append(parameters, map[string]any{
			"name": p.Name, "description": p.Description, "type": string(p.Type), "default": *p.Default,
		})
	}
	content, err = yamldoc.Marshal(map[string]any{"apiVersion": operators.APIVersion, "parameters": parameters})
	c.out.Files[operators.ParamsFileName] = []byte(content)
	return err
}

// parameters are those of lifted values, and the one that runs hooks.
func (c *converter) parameters() []operators.Parameter {
	out := c.lifts.parameters
	for _, h := range c.hooks {
		if h.at(preInstall) || h.at(postInstall) {
			p := operators.Parameter{}
			value := strconv.FormatBool(c.release.Version == 0)
			p.Name, p.Type, p.Default = installHooks, v1beta1.BooleanType, &value
			p.Description = "Whether plan deploy runs the hooks that Helm runs at an installation."
			if c.release.Version > 0 {
				p.Description += " They have run for the release already: set it to true where the package is installed without the release."
			}
			return append(out, p)
		}
	}
	return out
}

// operatorName makes the name of an operator of that of a release, which may have dots.
func operatorName(release string) string {
	name := strings.Trim(notInFileNames.ReplaceAllString(strings.ReplaceAll(strings.ToLower(release), ".", "-"), "-"), "-")
	name = name[:min(len(name), validation.DNS1123LabelMaxLength-len("-instance"))]
	if len(validation.IsDNS1123Label(name)) > 0 {
		return "release"
	}
	return name
}

// versionOf returns a semantic version that can be part of the name of an OperatorVersion, or a fallback.
func versionOf(version, fallback string) string {
	parsed, err := semver.NewVersion(version)
	if err != nil || len(version) > 60 {
		return fallback
	}
	plainVersion, err := parsed.SetMetadata("")
	if err != nil || len(validation.IsDNS1123Subdomain(plainVersion.String())) > 0 {
		return fallback
	}
	return plainVersion.String()
}
