// Package cases reads and runs examples of explore operations: an object, and the answer that a Config must give.
package cases

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/operators/yamldoc"
	"kudo.dev/kudo/pkg/explore"
)

// Excluded is the text that, as an expected value, means that the value in its place does not matter.
const Excluded = "{{EXCLUDE}}"

// Case is one example.
type Case struct {
	// Name and Description are for people.
	Name, Description string
	// Place is the file and the line.
	Place string
	// Request to ask.
	Request explore.Request
	// Output maps the names of outputs to the expected values. Outputs without an expected value are not compared. A case without Output
	// expects an answer without an error.
	Output map[string]any
	// Broken is why the case cannot be judged, or nil if it can.
	Broken error
	// Warnings lists the parts of the case that are ignored.
	Warnings []string
}

// outputs are the names that an operation's output has.
func outputs(operation explore.Operation) []string {
	switch operation {
	case explore.Packing:
		return []string{"packed"}
	case explore.Retaining:
		return []string{"retained"}
	case explore.Healthy:
		return []string{"healthy", "message", "outcome"}
	case explore.Dependencies:
		return []string{"dependencies"}
	case explore.Replica:
		return []string{"replica", "requires"}
	case explore.Components:
		return []string{"components"}
	case explore.ReplicaRevising:
		return []string{"revised"}
	case explore.Status:
		return []string{"status"}
	case explore.StatusAggregating:
		return []string{"aggregatedStatus"}
	}
	return nil
}

// fieldNames are the fields of a case.
var fieldNames = []string{"name", "description", "operation", "desiredObj", "observedObj", "statusItems", "inputReplicas", "output"}

// Parse reads the cases of a file: YAML documents. One that cannot be judged is a broken case, and the documents after it are read all the
// same.
func Parse(file string, text []byte) []Case {
	var found []Case
	for _, d := range documents(file, text) {
		found = append(found, d.asCase())
	}
	return found
}

// document is one YAML document of a file.
type document struct {
	place    string
	value    any
	warnings []string
	err      error
}

// documents reads the documents of a file. The last of duplicate keys counts, as in Kubernetes.
func documents(file string, text []byte) []document {
	var found []document
	for root, err := range yamldoc.Documents(string(text)) {
		d := document{place: file, err: err}
		if err == nil {
			var duplicates []yamldoc.Duplicate
			d.place = fmt.Sprintf("%s:%d", file, root.Line)
			if d.value, duplicates, d.err = yamldoc.Value(root); d.err == nil {
				d.value, d.err = yamldoc.JSON(d.value)
			}
			for _, duplicate := range duplicates {
				d.warnings = append(d.warnings, duplicate.String())
			}
		}
		var bad *yamldoc.Error
		if errors.As(d.err, &bad) {
			d.place = fmt.Sprintf("%s:%d", file, bad.Line)
		}
		found = append(found, d)
	}
	return found
}

// field returns a field of the document at its top, or nil if there is none.
func (d *document) field(name string) any {
	fields, _ := d.value.(map[string]any)
	return fields[name]
}

// isCase reports whether the document is a case: it has an operation or an output. Other documents are objects that a list of cases refers
// to.
func (d *document) isCase() bool {
	return d.err != nil || d.field("operation") != nil || d.field("output") != nil
}

// asCase reads the document as a case.
func (d *document) asCase() Case {
	c := Case{Place: d.place, Warnings: slices.Clone(d.warnings), Broken: d.err}
	if c.Broken == nil {
		fields, ok := d.value.(map[string]any)
		if !ok {
			c.Broken = errors.New("a case is a map with operation and output")
		} else {
			c.read(fields)
		}
	}
	if c.Name == "" {
		c.Name = d.place
	}
	return c
}

// read sets the case from its fields, and Broken if one of them is wrong.
func (c *Case) read(fields map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(fieldNames, name) {
			c.warn("field %s is unknown: use %s", name, strings.Join(fieldNames, ", "))
		}
	}
	var operation string
	for _, field := range []struct {
		name string
		into *string
	}{{"name", &c.Name}, {"description", &c.Description}, {"operation", &operation}} {
		if text, ok := fields[field.name].(string); ok {
			*field.into = text
		} else if fields[field.name] != nil && c.Broken == nil {
			c.Broken = fmt.Errorf("%s must be a text", field.name)
		}
	}
	if c.Name == "" {
		c.Name = operation
	}
	if c.Broken != nil {
		return
	}
	if c.Request.Operation, c.Broken = explore.ParseOperation(operation); c.Broken != nil {
		return
	}
	if c.Broken = c.objects(fields["desiredObj"], fields["observedObj"]); c.Broken != nil {
		return
	}
	if c.Broken = c.replicas(fields["inputReplicas"]); c.Broken != nil {
		return
	}
	items, warnings, err := Items(fields["statusItems"])
	c.Warnings = append(c.Warnings, warnings...)
	if c.Request.Items, c.Broken = items, err; c.Broken != nil {
		return
	}
	c.expected(fields["output"])
}

func (c *Case) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// Unasserted reports whether the case has no expected answer.
func (c *Case) Unasserted() bool { return len(c.Output) == 0 }

// objects sets the objects of the request: operations that look at a live object take the observed one, others the
// desired one, and if it is not there the other.
func (c *Case) objects(desired, observed any) error {
	want, err := object("desiredObj", desired)
	if err != nil {
		return err
	}
	live, err := object("observedObj", observed)
	if err != nil {
		return err
	}
	if want != nil && live != nil && c.Request.Operation != explore.Retaining {
		c.warn("desiredObj and observedObj are set: %s asks about one of them", c.Request.Operation)
	}
	switch c.Request.Operation {
	case explore.Retaining:
		c.Request.Object, c.Request.Observed = want, live
	case explore.Healthy, explore.Status:
		c.Request.Object = firstOf(live, want)
	default:
		c.Request.Object = firstOf(want, live)
	}
	return c.Request.Validate()
}

func firstOf(a, b *unstructured.Unstructured) *unstructured.Unstructured {
	if a != nil {
		return a
	}
	return b
}

func object(name string, value any) (*unstructured.Unstructured, error) {
	if value == nil {
		return nil, nil
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s must be an object", name)
	}
	return &unstructured.Unstructured{Object: fields}, nil
}

func (c *Case) replicas(value any) error {
	if value == nil {
		return nil
	}
	n, ok := value.(int64)
	if !ok || n < 0 || n > math.MaxInt32 {
		return fmt.Errorf("inputReplicas must be a whole number from 0 to %d", math.MaxInt32)
	}
	c.Request.Replicas = int32(n)
	return nil
}

func (c *Case) expected(value any) {
	fields, ok := value.(map[string]any)
	if !ok && value != nil {
		c.Broken = fmt.Errorf("output must be a map with %s", strings.Join(outputs(c.Request.Operation), " or "))
		return
	}
	c.Output = fields
}

// unknownOutputs returns a failure for each expected output that the operation does not have.
func (c *Case) unknownOutputs() []string {
	var found []string
	known := outputs(c.Request.Operation)
	for _, name := range slices.Sorted(maps.Keys(c.Output)) {
		if !slices.Contains(known, name) {
			found = append(found, fmt.Sprintf("output.%s is no output of %s: use %s", name, c.Request.Operation, strings.Join(known, " or ")))
		}
	}
	return found
}
