package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// crdTarballFields finds fields of crdTarball that can be right for no Instance: URLs without a scheme or with a password,
// templates over variables that do not exist, digests and policies that are none. The number of sources is crdTarball's.
func crdTarballFields(s *Subject) Findings {
	if s.Operator.CRDTarball == nil {
		return Findings{}
	}
	c := &tarballCheck{subject: s, tarball: *s.Operator.CRDTarball}
	c.policies()
	if source := c.tarball.HTTPSource; source != nil {
		c.http(*source)
	}
	if source := c.tarball.OCISource; source != nil {
		c.oci(*source)
	}
	if source := c.tarball.ConfigMapSource; source != nil {
		c.configMaps(*source)
	}
	return c.found
}

type tarballCheck struct {
	subject *Subject
	tarball v1beta1.CRDTarball
	found   Findings
}

// fail and warn report a finding at a field of crdTarball, by its path.
func (c *tarballCheck) fail(field, format string, args ...any) {
	path := "crdTarball." + field
	c.found.Errors = append(c.found.Errors, c.subject.operatorFinding(withParentPaths(path), "%s %s", path, fmt.Sprintf(format, args...)))
}

func (c *tarballCheck) warn(field, format string, args ...any) {
	path := "crdTarball." + field
	c.found.Warnings = append(c.found.Warnings, c.subject.operatorFinding(withParentPaths(path), "%s %s", path, fmt.Sprintf(format, args...)))
}

// withParentPaths are the path and those around it, for fields that are missing.
func withParentPaths(path string) []string {
	paths := []string{path}
	for {
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return paths
		}
		path = path[:i]
		paths = append(paths, path)
	}
}

func (c *tarballCheck) policies() {
	download := c.tarball.CRDDownloadPolicy
	if !slices.Contains([]v1beta1.CRDDownloadPolicy{"", v1beta1.DownloadAlways, v1beta1.DownloadIfNotPresent, v1beta1.DownloadNever},
		download) {
		c.fail("crdDownloadPolicy", "is %q: use %s, %s or %s", download, v1beta1.DownloadAlways, v1beta1.DownloadIfNotPresent,
			v1beta1.DownloadNever)
	}
	update := c.tarball.CRDUpdatePolicy
	if !slices.Contains([]v1beta1.CRDUpdatePolicy{"", v1beta1.UpdateFail, v1beta1.UpdateIfSafe}, update) {
		c.fail("crdUpdatePolicy", "is %q: use %s or %s", update, v1beta1.UpdateFail, v1beta1.UpdateIfSafe)
	}
}

func (c *tarballCheck) http(source v1beta1.HTTPSource) {
	const field = "httpSource.url"
	rest, secure := strings.CutPrefix(source.URL, "https://")
	plain := false
	if !secure {
		rest, plain = strings.CutPrefix(source.URL, "http://")
	}
	host, _, _ := strings.Cut(rest, "/")
	switch {
	case strings.TrimSpace(source.URL) == "":
		c.fail(field, "is missing: name the URL of the tarball")
	case !secure && !plain && !strings.HasPrefix(source.URL, "{{"):
		c.fail(field, "must begin with https:// or http://")
	case strings.Contains(host, "@"):
		c.fail(field, "has a user or a password in it: put them into a Secret, and its name into secretRef")
	case !secure && source.SHA256 == "":
		c.fail("httpSource.sha256", "is required: what http transfers can be changed on the way; set it, or begin the URL with https://")
	}
	c.template(field, source.URL)
	c.pin("httpSource.sha256", source.SHA256)
	if source.SHA256 != "" && c.tarball.CRDDownloadPolicy == v1beta1.DownloadAlways {
		c.warn("crdDownloadPolicy", "Always fetches the tarball again, though sha256 allows only one content: leave one of them out")
	}
}

var pinned = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)

func (c *tarballCheck) oci(source v1beta1.OCISource) {
	const field = "ociSource.ref"
	switch {
	case strings.Contains(source.Ref, "://"):
		c.fail(field, "has a scheme: write <registry>/<repository>@sha256:<digest>")
	case !pinned.MatchString(source.Ref):
		c.fail(field, "must end in @sha256: and the 64 hexadecimal digits of the manifest's digest")
	}
	c.template(field, source.Ref)
}

func (c *tarballCheck) configMaps(source v1beta1.ConfigMapSource) {
	if len(source.ConfigMaps) == 0 {
		c.fail("configMapSource.configMaps", "is empty: name the ConfigMaps that hold the tarball, in order")
	}
	for i, part := range source.ConfigMaps {
		field := fmt.Sprintf("configMapSource.configMaps[%d].name", i)
		if part.Name == "" {
			c.fail(field, "is missing")
			continue
		}
		c.template(field, part.Name)
	}
	if source.SHA256 == "" {
		c.fail("configMapSource.sha256", "is required: whoever may write a ConfigMap could change the tarball; set it to what sha256sum prints")
	}
	c.pin("configMapSource.sha256", source.SHA256)
}

var digest = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (c *tarballCheck) pin(field, pin string) {
	if pin != "" && !digest.MatchString(pin) {
		c.fail(field, "must be 64 hexadecimal digits in lower case")
	}
}

// tarballVariables are what the templates of crdTarball may use.
var tarballVariables = []string{"OperatorName", "OperatorVersion", "AppVersion", "Name", "Namespace"}

// template finds what the manager would refuse when it resolves a text for an Instance.
func (c *tarballCheck) template(field, text string) {
	parsed, err := template.New(field).Parse(text)
	if err != nil {
		c.fail(field, "cannot be read as a template: %s", strings.TrimPrefix(err.Error(), "template: "+field+":"))
		return
	}
	if parsed.Tree == nil {
		return
	}
	for _, name := range fieldsOf(parsed.Root) {
		switch {
		case !slices.Contains(tarballVariables, name):
			c.fail(field, "uses .%s: there are .%s", name, strings.Join(tarballVariables, ", ."))
		case name == "AppVersion" && c.subject.Operator.AppVersion == "":
			c.fail(field, "uses .AppVersion, and the package has no appVersion")
		}
	}
}

// fieldsOf returns the variables that a template uses, each once, in the order of their first uses.
func fieldsOf(node parse.Node) (names []string) {
	for _, name := range listFields(node) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// listFields returns the variables that a template uses, in order, as often as it uses them.
func listFields(node parse.Node) (names []string) {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, child := range n.Nodes {
			names = append(names, listFields(child)...)
		}
		return names
	case *parse.ActionNode:
		return listFields(n.Pipe)
	case *parse.IfNode:
		return slices.Concat(listFields(n.Pipe), listFields(n.List), listFields(n.ElseList))
	case *parse.PipeNode:
		for _, command := range n.Cmds {
			for _, argument := range command.Args {
				names = append(names, listFields(argument)...)
			}
		}
		return names
	case *parse.FieldNode:
		return []string{strings.Join(n.Ident, ".")}
	}
	return nil
}
