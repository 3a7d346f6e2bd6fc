// Package cases reads and runs examples of explore operations: an object, and the answer that a Config must give.
package cases

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/apis/config/v1alpha1"
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
	// Output holds the expected answer by name; what has no name here does not matter.
	Output map[string]any
}

// outputs are the names that an operation's output has.
func outputs(operation explore.Operation) []string {
	switch operation {
	case explore.Packing:
		return []string{"packed"}
	case explore.Retaining:
		return []string{"retained"}
	case explore.Healthy:
		return []string{"healthy", "message"}
	case explore.Dependencies:
		return []string{"dependencies"}
	case explore.Replica:
		return []string{"replica", "requires"}
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

// Parse reads the cases of a file: YAML documents. Errors name the file and the line of the document.
func Parse(file string, text []byte) ([]Case, error) {
	roots, err := yamldoc.Split(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var cases []Case
	for _, root := range roots {
		place := fmt.Sprintf("%s:%d", file, root.Line)
		value, duplicates, err := yamldoc.Value(root)
		if err == nil {
			value, err = yamldoc.JSON(value)
		}
		if err == nil && len(duplicates) > 0 {
			err = fmt.Errorf("%s", duplicates[0])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		c, err := parseCase(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		c.Place = place
		cases = append(cases, c)
	}
	return cases, nil
}

func parseCase(value any) (Case, error) {
	c := Case{}
	fields, ok := value.(map[string]any)
	if !ok {
		return c, fmt.Errorf("a case is a map with operation and output")
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(fieldNames, name) {
			return c, fmt.Errorf("field %s is unknown: use %s", name, strings.Join(fieldNames, ", "))
		}
	}
	c.Name, _ = fields["name"].(string)
	c.Description, _ = fields["description"].(string)
	operation, _ := fields["operation"].(string)
	var err error
	if c.Request.Operation, err = explore.ParseOperation(operation); err != nil {
		return c, err
	}
	if c.Name == "" {
		c.Name = operation
	}
	if err := c.objects(fields["desiredObj"], fields["observedObj"]); err != nil {
		return c, err
	}
	if err := c.replicas(fields["inputReplicas"]); err != nil {
		return c, err
	}
	if c.Request.Items, err = Items(fields["statusItems"]); err != nil {
		return c, err
	}
	return c, c.expected(fields["output"])
}

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

// Items reads status items; nil is nil, and an empty list an empty one.
func Items(value any) ([]v1alpha1.AggregatedStatusItem, error) {
	if value == nil {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("statusItems must be a list")
	}
	items := make([]v1alpha1.AggregatedStatusItem, len(list))
	for i, entry := range list {
		fields, ok := entry.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("statusItems[%d] must be a map", i)
		}
		items[i].ClusterName, _ = fields["clusterName"].(string)
		items[i].Applied, _ = fields["applied"].(bool)
		items[i].AppliedMessage, _ = fields["appliedMessage"].(string)
		if status, there := fields["status"]; there && status != nil {
			text, err := json.Marshal(status)
			if err != nil {
				return nil, fmt.Errorf("statusItems[%d].status: %w", i, err)
			}
			items[i].Status = &runtime.RawExtension{Raw: text}
		}
	}
	return items, nil
}

func (c *Case) expected(value any) error {
	fields, ok := value.(map[string]any)
	known := outputs(c.Request.Operation)
	if !ok || len(fields) == 0 {
		return fmt.Errorf("output must be a map with %s", strings.Join(known, " or "))
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("output.%s is no output of %s: use %s", name, c.Request.Operation, strings.Join(known, " or "))
		}
	}
	c.Output = fields
	return nil
}
