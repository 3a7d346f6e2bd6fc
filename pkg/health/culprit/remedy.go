package culprit

import (
	"fmt"
	"slices"
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// remedy is what a person does about a kind of cause.
type remedy struct {
	// kinds, reasons and codes are those of the culprit: one of each, or any if none is given.
	kinds, reasons []string
	codes          []int32
	// words are such that the message has one of them, or any if none is given.
	words []string
	// do is a sentence without its end, in which {container} and {image} stand for those of the culprit.
	do string
}

// remedies are looked through from above: the first one that fits counts. What a message says of a refusal comes first, since its reason is
// that of the attempt, such as FailedCreate.
var remedies = []remedy{
	{words: []string{"exceeded quota"}, do: "raise the quota that the message names, request less, or delete what is not needed"},
	{words: []string{"violates PodSecurity"}, do: "meet the Pod Security level of the namespace, or change its label"},
	{words: []string{"admission webhook ", "ValidatingAdmissionPolicy "},
		do: "meet what the admission policy asks for, or ask its administrator"},
	{words: []string{"must support resize"},
		do: "leave the size of the claim as it is, or use a storage class whose volumes can grow (allowVolumeExpansion)"},
	{words: []string{"cannot impersonate"}, do: "let the manager use the account (RoleBinding to kudo-run-as)"},
	{words: []string{"error looking up service account"}, do: "create the ServiceAccount that the message names"},
	{words: []string{"annotation kudo.dev/adopt=true"},
		do: "delete or rename one of the two objects, or let the Instance adopt it (kudo.dev/adopt=true, install --adopt)"},
	{words: []string{"exists already and belongs to"}, do: "delete or rename one of the two objects"},
	{words: []string{"other field managers manage fields"},
		do: "let the other field managers give up the fields that the message names"},
	{words: []string{"is being deleted"}, do: "let the controllers of the finalizers do their work, or remove the finalizers"},
	{words: []string{"runAsNonRoot"}, do: "run {container} as another user than root, by its securityContext or its image"},
	{words: []string{"probe failed", "probe errored"}, do: "let {container} pass its probe, or correct the probe"},

	{reasons: []string{"InvalidImageName"}, do: "correct the name of {image}"},
	{reasons: []string{"ImagePullBackOff", "ErrImagePull"},
		do: "correct {image}, or let the nodes pull it (registry, imagePullSecrets)"},
	{reasons: []string{"CreateContainerConfigError"},
		do: "create the Secret, ConfigMap or key that the message names, or correct its name"},
	{reasons: []string{"CreateContainerError", "RunContainerError", "StartError", "ContainerCannotRun"},
		do: "correct the command or the mounts of {container}"},
	{reasons: []string{"PostStartHookError"}, do: "correct the postStart hook of {container}"},
	{reasons: []string{"FailedMount", "FailedAttachVolume", "FailedMapVolume"},
		do: "create the Secret, ConfigMap or claim that the message names, or let the node mount the volume"},
	{reasons: []string{"OOMKilled"}, do: "raise the memory limit of {container}, or let it use less"},
	{reasons: []string{"Unhealthy", "NotReady"}, do: "let {container} pass its probe, or correct the probe"},
	{reasons: []string{"Evicted"}, do: "free resources of the node, or request what the pod uses"},
	{reasons: []string{"Terminating"}, do: "let the pod end: see its node and its finalizers"},
	{codes: []int32{126, 127}, do: "correct the command or the image of {container}, which does not have the program"},
	{codes: []int32{137}, do: "find out who has killed {container}: a probe, the node, or want of memory"},

	{reasons: []string{"DeadlineExceeded"}, do: "let the Job end sooner, or raise its activeDeadlineSeconds"},
	{reasons: []string{"BackoffLimitExceeded"}, do: "correct what the Job runs"},
	{reasons: []string{"ProgressDeadlineExceeded"},
		do: "correct what keeps the pods from being ready, or raise progressDeadlineSeconds"},
	{reasons: []string{"SomeFinalizersRemain", "SomeResourcesRemain", "ContentDeletionFailed"},
		do: "remove the objects and finalizers that the message names"},
	{reasons: []string{"ProvisioningFailed", "FailedBinding"}, do: storage},
	{reasons: []string{"Forbidden"},
		do: "give the account of the run the right that the message names (kubectl kudo account create)"},
	{reasons: []string{"Invalid", "BadRequest"},
		do: "correct the fields that the message names, by a parameter or in the package"},
	{reasons: []string{v1beta1.CulpritUnread}, do: "let the account of the run list pods and events, or look with more rights"},
	{kinds: []string{"PersistentVolumeClaim"}, do: storage},
}

const storage = "name a storage class that makes volumes (kubectl get storageclasses)"

// placements are what the words of the scheduler ask for: all that fit count, since nodes differ.
var placements = []remedy{
	{words: []string{"Insufficient ", "Too many pods"}, do: "request less or add nodes"},
	{words: []string{"taint"}, do: "tolerate the taint"},
	{words: []string{"node affinity/selector", "node selector", "pod affinity", "anti-affinity", "topology spread"},
		do: "match the labels of a node (nodeSelector, affinity)"},
	{words: []string{"free ports"}, do: "use another host port"},
	{words: []string{"ersistentVolumeClaim", "ersistentvolumeclaim", "storageclass", "persistent volumes"}, do: storage},
	{words: []string{"volume node"}, do: "use a node that its volume is at"},
}

// Remedy returns what to do about what was found, as a sentence without its end; "" if nothing more is known than that the cause is to be
// corrected. The names in it are those of the finding: the caller has bounded and masked them.
func (f *Finding) Remedy() string {
	if f.Reason == "Unschedulable" || f.Reason == "FailedScheduling" {
		return f.placement()
	}
	i := slices.IndexFunc(remedies, func(r remedy) bool { return r.fits(f) })
	switch {
	case i >= 0:
		return strings.NewReplacer("{container}", f.container(), "{image}", f.image()).Replace(remedies[i].do)
	case f.Reason == "CrashLoopBackOff" && f.ExitCode == nil:
		return "correct what makes " + f.container() + " end"
	case f.ExitCode != nil:
		return fmt.Sprintf("correct what made %s end with exit code %d", f.container(), *f.ExitCode)
	}
	return ""
}

// placement returns how a pod gets a node.
func (f *Finding) placement() string {
	var ways []string
	for _, r := range placements {
		if r.fits(f) {
			ways = append(ways, r.do)
		}
	}
	if len(ways) == 0 {
		ways = []string{"resources, taints, selectors and volumes decide"}
	}
	return "let a node take the pod: " + strings.Join(ways, "; ")
}

func (r remedy) fits(f *Finding) bool {
	is := func(all []string, one string) bool { return len(all) == 0 || slices.Contains(all, one) }
	return is(r.kinds, f.Kind) && is(r.reasons, f.Reason) &&
		(len(r.codes) == 0 || f.ExitCode != nil && slices.Contains(r.codes, *f.ExitCode)) &&
		(len(r.words) == 0 || slices.ContainsFunc(r.words, func(word string) bool { return strings.Contains(f.Message, word) }))
}

func (f *Finding) container() string {
	if f.Container == "" {
		return "the container"
	}
	return "container " + f.Container
}

func (f *Finding) image() string {
	if f.Image == "" {
		return "the image of " + f.container()
	}
	return "image " + f.Image
}
