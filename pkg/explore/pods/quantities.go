package pods

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// maxQuantity bounds the text of a quantity.
	maxQuantity = 40
	// maxExponent bounds the digits of its exponent.
	maxExponent = 2
)

// CheckQuantity refuses quantities that take minutes to read or to add, such as 1e-2147483647. It does not check whether a text
// is a quantity at all.
func CheckQuantity(text string) error {
	if len(text) > maxQuantity {
		return fmt.Errorf("a quantity has %d bytes: write it with at most %d", len(text), maxQuantity)
	}
	_, exponent, has := strings.Cut(strings.ToLower(text), "e")
	if has && len(strings.TrimLeft(exponent, "+-")) > maxExponent {
		return fmt.Errorf("the exponent of quantity %q has more than %d digits: write it with a suffix, such as 1Gi", text, maxExponent)
	}
	return nil
}

// quantityMaps are the fields of pods and of requirements whose entries are quantities.
var quantityMaps = []string{"limits", "overhead", "requests", "resourceRequest"}

// quantityFields are their fields that hold a quantity.
var quantityFields = []string{"divisor", "sizeLimit"}

// CheckQuantities finds the first quantity that CheckQuantity refuses in a JSON value: a pod's spec, its template, or
// requirements. The value is checked before it is converted to a type, since the conversion reads the quantities.
func CheckQuantities(value any) error { return checkQuantities(value, "", false) }

func checkQuantities(value any, path string, quantity bool) error {
	switch v := value.(type) {
	case string:
		if !quantity {
			return nil
		}
		if err := CheckQuantity(v); err != nil {
			return fmt.Errorf("field %s: %w", path, err)
		}
	case map[string]any:
		within := slices.Contains(quantityMaps, path[strings.LastIndex(path, ".")+1:])
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := checkQuantities(v[key], strings.TrimPrefix(path+"."+key, "."), within || slices.Contains(quantityFields, key)); err != nil {
				return err
			}
		}
	case []any:
		for i, entry := range v {
			if err := checkQuantities(entry, fmt.Sprintf("%s[%d]", path, i), false); err != nil {
				return err
			}
		}
	}
	return nil
}
