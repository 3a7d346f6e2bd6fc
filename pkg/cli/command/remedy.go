package command

import (
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/health/culprit"
	"kudo.dev/kudo/pkg/text"
)

// remedy says what to do about a finding (P22), and by which command:
//
//	the object is an Instance       what its own plan waits for comes first
//	parameters hold the image       the update, which starts a plan
//	the plan runs                   how to watch it, since it continues by itself
//	the plan has failed             its retry
//
// While an upgrade is not complete, a rollback is the other way.
func (e *explainer) remedy(f culprit.Finding, running bool) string {
	do, next := f.Remedy(), ", then kubectl kudo plan retry "+e.subject
	if do == "" {
		do = "correct the cause"
	}
	if running {
		next = "; the plan continues: kubectl kudo plan status " + e.subject + " --watch"
	}
	if isInstance(f) {
		do = fmt.Sprintf("correct what kubectl kudo plan status --instance %s -n %s shows", f.Name, f.Namespace)
	} else if names := e.imageParameters(f); len(names) > 0 {
		next = ": kubectl kudo update " + e.subject + " -p " + strings.Join(names, "=… -p ") + "=…"
	}
	if e.upgrade {
		next += ", or kubectl kudo rollback " + e.subject
	}
	return do + next
}

// withMessage returns a finding that has the message of its task if it has no words of its own.
func withMessage(f culprit.Finding, message string) culprit.Finding {
	if f.Reason == "" && f.Message == "" && f.ExitCode == nil {
		f.Message = message
	}
	return f
}

// isInstance reports whether a finding is of an Instance, with names that may stand in a command.
func isInstance(f culprit.Finding) bool {
	return f.Kind == "Instance" && strings.HasPrefix(f.APIVersion, v1beta1.GroupVersion.Group+"/") &&
		len(validation.IsDNS1123Subdomain(f.Name)) == 0 && len(validation.IsDNS1123Label(f.Namespace)) == 0
}

// imageParameters names the parameters that an update may correct an image by that cannot be had.
func (e *explainer) imageParameters(f culprit.Finding) []string {
	switch f.Reason {
	case "ImagePullBackOff", "ErrImagePull", "InvalidImageName":
	default:
		return nil
	}
	var defs []v1beta1.Parameter
	for _, def := range e.definitions {
		if !def.Sensitive && !e.redact.Sensitive(def.Name) {
			defs = append(defs, def)
		}
	}
	return findImage(f.Image, defs, e.values)
}

const (
	// maxParameter bounds the name of a parameter in a command, in bytes.
	maxParameter = 64
	// maxParts is how many parameters are named as parts of an image.
	maxParts = 3
)

// findImage returns the name of the parameter whose value is an image, else of those whose values are parts of it, such as its repository
// and its tag. A number is no part: it may as well be one of replicas. Parameters that cannot change, or whose name a shell would not take
// as it is, are left out.
func findImage(image string, defs []v1beta1.Parameter, values map[string]string) (parts []string) {
	for _, def := range defs {
		value, given := values[def.Name]
		if !given {
			value = ptr.Deref(def.Default, "")
		}
		if value == "" || ptr.Deref(def.Immutable, false) || len(def.Name) > maxParameter || text.ShellQuote(def.Name) != def.Name {
			continue
		}
		switch {
		case value == image:
			return []string{def.Name}
		case len(parts) < maxParts && isPart(value, image):
			parts = append(parts, def.Name)
		}
	}
	return parts
}

// isPart reports whether a value, which has a letter or another sign besides digits, stands in an image between two of its separators.
func isPart(value, image string) bool {
	const separators = "/:@"
	if strings.TrimFunc(value, unicode.IsDigit) == "" {
		return false
	}
	for at := 0; ; at++ {
		next := strings.Index(image[at:], value)
		if next < 0 {
			return false
		}
		at += next
		before, after := image[:at], image[at+len(value):]
		if (before == "" || strings.ContainsRune(separators, rune(before[len(before)-1]))) &&
			(after == "" || strings.ContainsRune(separators, rune(after[0]))) {
			return true
		}
	}
}
