package admission

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
)

// Defaulter writes the defaults of immutable parameters into new Instances (engine rule 6), and the user who asks for a plan into each
// Instance that asks for one.
type Defaulter struct {
	Versions Versions
	// Keys seal the name of the user. Without them, no name is written.
	Keys history.Keys
	// Hub is set on a hub, whose engine replaces values.
	Hub bool
}

// Handle implements admission.Handler.
func (d *Defaulter) Handle(ctx context.Context, req admission.Request) admission.Response {
	instance, err := decode(req.Object.Raw, req.Namespace)
	if err != nil {
		return admission.Allowed("") // the schema, which is checked afterwards, says better what is wrong
	}
	raw := map[string]any{} // unknown fields survive
	if err := json.Unmarshal(req.Object.Raw, &raw); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if created := req.Operation == admissionv1.Create; created || d.Hub && instance.DeletionTimestamp == nil {
		if err := d.setDefaults(ctx, instance, raw, created); err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
	}
	d.setRequester(ctx, req, instance, raw)
	text, err := json.Marshal(raw)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, text)
}

// setDefaults writes defaults that are to be fixed into an Instance, and into its JSON.
func (d *Defaulter) setDefaults(ctx context.Context, instance *v1beta1.Instance, raw map[string]any, created bool) error {
	ov, err := d.Versions.get(ctx, instance.OperatorVersionKey())
	if err != nil {
		return err
	}
	spec, _ := raw["spec"].(map[string]any)
	if ov == nil || spec == nil || len(instance.Spec.ParametersFrom) > 0 { // a source may give the value: the controller fixes defaults
		return nil
	}
	defaults := newDefaults(instance, ov, created, d.Hub)
	if len(defaults) == 0 {
		return nil
	}
	noteDefaults(instance, raw, defaults)
	maps.Copy(defaults, instance.Spec.Parameters)
	instance.Spec.Parameters, spec["parameters"] = defaults, defaults
	return nil
}

// setRequester writes the user of a request that asks for something into the JSON of the Instance. The API server raises the generation of
// an Instance after the webhooks, if its spec has changed.
func (d *Defaulter) setRequester(ctx context.Context, req admission.Request, instance *v1beta1.Instance, raw map[string]any) {
	asks := []string{v1beta1.RequestedByAnnotation}
	instance.UID, instance.Generation = "", 1
	if req.Operation == admissionv1.Update {
		old, err := decode(req.OldObject.Raw, req.Namespace)
		if err != nil {
			return
		}
		instance.UID, instance.Generation = old.UID, old.Generation
		asks = requests(old, instance)
	}
	metadata, _ := raw["metadata"].(map[string]any)
	if len(asks) == 0 || d.Keys == nil || metadata == nil || req.UserInfo.Username == "" {
		return
	}
	ring, err := d.Keys.Ring(ctx)
	if err != nil {
		return // without keys, no plan starts
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	for _, annotation := range asks {
		annotations[annotation] = ring.SealRequester(annotation, instance, req.UserInfo.Username+clientOf(req))
	}
}

// Names of field managers, which clients choose: of any client, and of the plugin.
var (
	managerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,63}$`)
	commandName = regexp.MustCompile(`^` + v1beta1.CommandManagerPrefix + `[a-z-]+(/[a-z-]+)?$`)
)

// clientOf returns, for the end of the name of a user, which client sent a request by its own account: the field manager that the request
// names, as a command if it is of the plugin. It returns "" if the request names none, or one that could be taken for more than a name.
func clientOf(req admission.Request) string {
	options := struct {
		FieldManager string `json:"fieldManager"`
	}{}
	if json.Unmarshal(req.Options.Raw, &options) != nil || !managerName.MatchString(options.FieldManager) {
		return ""
	}
	name := options.FieldManager
	if commandName.MatchString(name) {
		name = "kubectl kudo " + strings.ReplaceAll(strings.TrimPrefix(name, v1beta1.CommandManagerPrefix), "/", " ")
	}
	return " with " + name
}

// requests lists the annotations that name the user of an edit, and gives the Instance the generation that it gets by the edit.
func requests(old, instance *v1beta1.Instance) (annotations []string) {
	if !equality.Semantic.DeepEqual(old.Spec, instance.Spec) {
		instance.Generation++
		annotations = append(annotations, v1beta1.RequestedByAnnotation)
	}
	for _, name := range []string{v1beta1.RetryAnnotation, v1beta1.CancelAnnotation} {
		if old.Annotations[name] != instance.Annotations[name] {
			return append(annotations, v1beta1.RunRequestedByAnnotation)
		}
	}
	return annotations
}

// logDeletion logs who deletes an Instance: a deleted object cannot be written to, so that its events cannot name the user.
func logDeletion(ctx context.Context, req admission.Request) {
	if req.DryRun == nil || !*req.DryRun {
		logf.FromContext(ctx).Info("Instance is to be deleted") // the logger has the object and the user
	}
}
