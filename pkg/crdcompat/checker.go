package crdcompat

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"kudo.dev/kudo/pkg/text"
)

// checker checks objects as one version of a definition.
type checker struct {
	version    string
	apiVersion string
	// keeps is preserveUnknownFields of the definition.
	keeps      bool
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// newChecker returns a checker of one version. If quotes is false, no message of a rule quotes a value of an object.
func newChecker(crd *apiextensionsv1.CustomResourceDefinition, version *apiextensionsv1.CustomResourceDefinitionVersion,
	quotes bool) (*checker, error) {
	c := &checker{version: version.Name, apiVersion: crd.Spec.Group + "/" + version.Name, keeps: crd.Spec.PreserveUnknownFields}
	wrong := func(err error) error {
		return fmt.Errorf("the schema of version %s of %s would be refused by the API server: %w", version.Name, crd.Name, err)
	}
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil, wrong(fmt.Errorf("spec.versions[].schema.openAPIV3Schema is missing"))
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema.DeepCopy(), internal,
		nil); err != nil {
		return nil, wrong(err)
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, wrong(err)
	}
	if errs := structuralschema.ValidateStructural(field.NewPath("openAPIV3Schema"), structural); len(errs) > 0 {
		return nil, wrong(errs.ToAggregate())
	}
	if c.structural = structural.DeepCopy(); !c.keeps {
		if err := defaulting.PruneDefaults(c.structural); err != nil {
			return nil, wrong(err)
		}
	}
	if c.schema, _, err = validation.NewSchemaValidator(internal); err != nil {
		return nil, wrong(err)
	}
	if !quotes {
		dropMessageExpressions(c.structural)
	}
	c.rules = cel.NewValidator(c.structural, true, celconfig.PerCallLimit)
	return c, nil
}

// dropMessageExpressions leaves rules with messages that are part of the definition.
func dropMessageExpressions(s *structuralschema.Structural) {
	visitor := structuralschema.Visitor{Structural: func(s *structuralschema.Structural) bool {
		for n := range s.XValidations {
			s.XValidations[n].MessageExpression = ""
		}
		return len(s.XValidations) > 0
	}}
	visitor.Visit(s)
}

// problems are what is wrong with an object, which it changes.
func (c *checker) problems(ctx context.Context, object *unstructured.Unstructured) []string {
	object.Object["apiVersion"] = c.apiVersion
	out, err := c.normalize(object.Object)
	if err != nil {
		// The detail quotes the value.
		return append(out, err.Field+": "+err.Type.String()+": the field, or one below it, has another type than Kubernetes gives it")
	}
	for _, err := range c.invalid(ctx, object.Object, object.Object) {
		out = append(out, say(err))
	}
	return out
}

// normalize prunes an object and sets its defaults, as the API server does on a write, and returns what is lost. An error
// says that metadata in the object has another type than Kubernetes gives it.
func (c *checker) normalize(content map[string]any) (lost []string, err *field.Error) {
	nulls := countNulls(content)
	if !c.keeps {
		track := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
		lost = pruned(pruning.PruneWithOptions(content, c.structural, true, track))
		nulls = countNulls(content) // those of pruned fields are told already
		defaulting.PruneNonNullableNullsWithoutDefaults(content, c.structural)
	}
	defaulting.Default(content, c.structural)
	if countNulls(content) < nulls {
		lost = append(lost, "a null would be dropped, or replaced by a default")
	}
	err, paths := objectmeta.CoerceWithOptions(nil, content, c.structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	return append(lost, pruned(paths)...), err
}

func pruned(paths []string) []string {
	var out []string
	for _, path := range paths {
		out = append(out, path+": the field would be pruned")
	}
	return out
}

// invalid validates in the order of the API server, which runs no rule on what has other types than it was made for. old is what the
// object replaces, or nil if it is new.
func (c *checker) invalid(ctx context.Context, content map[string]any, old any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, content, c.schema)
	errs = append(errs, objectmeta.Validate(ctx, nil, content, c.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, content)...)
	if c.rules == nil || blocking(errs) {
		return errs
	}
	broken, _ := c.rules.Validate(ctx, nil, c.structural, content, old, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

func blocking(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

// say is an error without the value, which may be secret.
func say(err *field.Error) string {
	message := err.Field + ": " + err.Type.String()
	if err.Detail != "" && err.Type != field.ErrorTypeTypeInvalid {
		message += ": " + text.Truncate(err.Detail, shownBytes)
	}
	return message
}

func countNulls(value any) int {
	n := 0
	switch v := value.(type) {
	case nil:
		return 1
	case map[string]any:
		for _, child := range v {
			n += countNulls(child)
		}
	case []any:
		for _, child := range v {
			n += countNulls(child)
		}
	}
	return n
}
