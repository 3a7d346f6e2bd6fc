package crdtarball

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

// Variables are what the templates of a crdTarball may use: those of the Instance that is installed.
type Variables struct {
	// OperatorName is the name of the Operator.
	OperatorName string
	// OperatorVersion is the version of the package, such as 1.2.0.
	OperatorVersion string
	// AppVersion is the version of the application; it may be empty, and templates that use it are refused then.
	AppVersion string
	// Name of the Instance.
	Name string
	// Namespace of the Instance.
	Namespace string
}

// values leaves out what is empty, so that a template which needs it fails instead of making a wrong URL.
func (v Variables) values() map[string]string {
	values := map[string]string{"OperatorName": v.OperatorName, "OperatorVersion": v.OperatorVersion, "AppVersion": v.AppVersion,
		"Name": v.Name, "Namespace": v.Namespace}
	for key, value := range values {
		if value == "" {
			delete(values, key)
		}
	}
	return values
}

// fit are values that cannot change the meaning of the URL around them: no slash, question mark, at sign or colon.
var fit = regexp.MustCompile(`^[A-Za-z0-9._+~-]+$`)

// templateFunctions are the built-in functions that templates may call. Each costs no more than the text is long.
func templateFunctions() []string {
	return []string{"and", "or", "not", "eq", "ne", "slice", "urlquery"}
}

const (
	// maxTemplate and maxRendered bound a template and what it renders to, in bytes.
	maxTemplate = 2048
	maxRendered = 4096
)

// Render resolves a template over the variables. A variable that is empty counts as missing, and what is missing is an
// error. Loops, definitions, and functions other than comparison, slice and urlquery are refused. Errors are *Error.
func Render(text string, variables Variables) (string, error) {
	if len(text) > maxTemplate {
		return "", fail(ReasonSpec, "the template has %d bytes, more than %d", len(text), maxTemplate)
	}
	t, err := template.New("url").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", fail(ReasonSpec, "the template %s cannot be read: %s", quoteShort(text), trimTemplate(err))
	}
	if t.Tree == nil {
		return "", fail(ReasonSpec, "the URL is empty")
	}
	values := variables.values()
	if err := checkNodes(t.Root, values); err != nil {
		return "", fail(ReasonSpec, "the template %s %w", quoteShort(text), err)
	}
	out := &limitedText{}
	if err := t.Execute(out, values); err != nil {
		return "", fail(ReasonSpec, "the template %s: %s", quoteShort(text), trimTemplate(err))
	}
	rendered := strings.TrimSpace(out.String())
	if rendered == "" {
		return "", fail(ReasonSpec, "the template %s renders to nothing", quoteShort(text))
	}
	return rendered, nil
}

// trimTemplate takes the name of the library and of the template off a message.
func trimTemplate(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "template: "), "url:")
}

// checkNodes refuses what could run long, and names variables that are unknown, empty or unfit before anything is run.
func checkNodes(node parse.Node, values map[string]string) error {
	switch n := node.(type) {
	case nil, *parse.TextNode, *parse.StringNode, *parse.NumberNode, *parse.BoolNode, *parse.CommentNode:
		return nil
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, child := range n.Nodes {
			if err := checkNodes(child, values); err != nil {
				return err
			}
		}
		return nil
	case *parse.ActionNode:
		return checkPipe(n.Pipe, values)
	case *parse.IfNode:
		return errors.Join(checkPipe(n.Pipe, values), checkNodes(n.List, values), checkNodes(n.ElseList, values))
	case *parse.PipeNode:
		return checkPipe(n, values)
	case *parse.IdentifierNode:
		if !slices.Contains(templateFunctions(), n.Ident) {
			return fmt.Errorf("calls %s: it may call %s only", n.Ident, strings.Join(templateFunctions(), ", "))
		}
		return nil
	case *parse.FieldNode:
		return checkField(n, values)
	}
	return fmt.Errorf("has %s, which is not allowed: use variables such as {{ .AppVersion }}, and if", quoteShort(node.String()))
}

func checkPipe(pipe *parse.PipeNode, values map[string]string) error {
	if len(pipe.Decl) > 0 {
		return errors.New("declares a variable, which is not allowed")
	}
	for _, command := range pipe.Cmds {
		for _, argument := range command.Args {
			if err := checkNodes(argument, values); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkField(n *parse.FieldNode, values map[string]string) error {
	name := strings.Join(n.Ident, ".")
	known := []string{"OperatorName", "OperatorVersion", "AppVersion", "Name", "Namespace"}
	if !slices.Contains(known, name) {
		return fmt.Errorf("uses .%s: there are .%s", name, strings.Join(known, ", ."))
	}
	value, ok := values[name]
	if !ok {
		return fmt.Errorf("uses .%s, which is empty for this Instance", name)
	}
	if !fit.MatchString(value) || strings.Contains(value, "..") {
		return fmt.Errorf("uses .%s, whose value %s has characters that would change the URL around it", name, quoteShort(value))
	}
	return nil
}

// limitedText is a text of at most maxRendered bytes.
type limitedText struct{ strings.Builder }

// Write implements io.Writer.
func (l *limitedText) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxRendered {
		return 0, fmt.Errorf("it renders to more than %d bytes", maxRendered)
	}
	return l.Builder.Write(p)
}

// RenderTarball returns a copy of a crdTarball whose templates are resolved. Errors are *Error, and name the field.
func RenderTarball(tarball v1beta1.CRDTarball, variables Variables) (v1beta1.CRDTarball, error) {
	out := tarball
	var errs []error
	render := func(field string, text *string) {
		rendered, err := Render(*text, variables)
		if err != nil {
			errs = append(errs, fmt.Errorf("crdTarball.%s: %w", field, errors.Unwrap(err)))
		}
		*text = rendered
	}
	if s := tarball.HTTPSource; s != nil {
		source := *s
		render("httpSource.url", &source.URL)
		out.HTTPSource = &source
	}
	if s := tarball.OCISource; s != nil {
		source := *s
		render("ociSource.ref", &source.Ref)
		out.OCISource = &source
	}
	if s := tarball.ConfigMapSource; s != nil {
		source := *s
		source.ConfigMaps = slices.Clone(s.ConfigMaps)
		for i := range source.ConfigMaps {
			render(fmt.Sprintf("configMapSource.configMaps[%d].name", i), &source.ConfigMaps[i].Name)
		}
		out.ConfigMapSource = &source
	}
	if len(errs) > 0 {
		return v1beta1.CRDTarball{}, &Error{Reason: ReasonSpec, Err: errors.Join(errs...)}
	}
	return out, nil
}

// quoteShort quotes a text for a message, and cuts a long one.
func quoteShort(s string) string { return text.Quote(s, 100) }
