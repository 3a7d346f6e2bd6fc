package health

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

type service struct {
	Spec struct {
		Type        corev1.ServiceType `json:"type"`
		ClusterIP   string             `json:"clusterIP"`
		ExternalIPs []string           `json:"externalIPs"`
	} `json:"spec"`
	Status struct {
		LoadBalancer struct {
			Ingress []struct{} `json:"ingress"`
		} `json:"loadBalancer"`
	} `json:"status"`
}

// checkService: an ExternalName needs nothing, others a cluster IP (`None` is one), a LoadBalancer an address, too.
func checkService(s *service) Result {
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		return ready()
	case s.Spec.ClusterIP == "":
		return progressing("waits for a cluster IP")
	case s.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		len(s.Spec.ExternalIPs) == 0 && len(s.Status.LoadBalancer.Ingress) == 0:
		return progressing("waits for the LoadBalancer's address")
	default:
		return ready()
	}
}

type namespace struct {
	Status struct {
		Phase corev1.NamespacePhase `json:"phase"`
	} `json:"status"`
}

func checkNamespace(n *namespace) Result {
	switch n.Status.Phase {
	case corev1.NamespaceActive:
		return ready()
	case corev1.NamespaceTerminating:
		return progressing("is being deleted")
	default:
		return progressing("waits to be Active")
	}
}

type claim struct {
	Spec struct {
		Resources struct {
			Requests corev1.ResourceList `json:"requests"`
		} `json:"resources"`
	} `json:"spec"`
	Status struct {
		Phase                     corev1.PersistentVolumeClaimPhase                  `json:"phase"`
		Capacity                  corev1.ResourceList                                `json:"capacity"`
		AllocatedResources        corev1.ResourceList                                `json:"allocatedResources"`
		AllocatedResourceStatuses map[corev1.ResourceName]corev1.ClaimResourceStatus `json:"allocatedResourceStatuses"`
		Conditions                conditions                                         `json:"conditions"`
	} `json:"status"`
}

// checkClaim does not await that a claim is bound: it may wait for its first consumer, which a later step makes. It awaits that the
// volume of a bound claim has grown to what the claim asks for, but not that a node enlarges the file system, since a node does so
// for a pod only, which a later step may make, too.
func checkClaim(c *claim) Result {
	status := c.Status
	if status.Phase == corev1.ClaimLost {
		return failed("has lost its volume")
	}
	has, wants := status.Capacity[corev1.ResourceStorage], c.Spec.Resources.Requests[corev1.ResourceStorage]
	if status.Phase != corev1.ClaimBound || has.IsZero() || has.Cmp(wants) >= 0 {
		return ready()
	}
	growth := status.AllocatedResourceStatuses[corev1.ResourceStorage]
	if asked := status.AllocatedResources[corev1.ResourceStorage]; asked.Cmp(wants) != 0 {
		growth = "" // that of a size that was asked for before
	}
	switch growth {
	case corev1.PersistentVolumeClaimControllerResizeInfeasible, corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return failed("its volume cannot grow from %s to %s: %s", has.String(), wants.String(), growth)
	case corev1.PersistentVolumeClaimNodeResizePending:
		return ready()
	}
	if _, pending := status.Conditions.with(string(corev1.PersistentVolumeClaimFileSystemResizePending), corev1.ConditionTrue); pending {
		return ready()
	}
	for _, kind := range []corev1.PersistentVolumeClaimConditionType{corev1.PersistentVolumeClaimControllerResizeError,
		corev1.PersistentVolumeClaimNodeResizeError} {
		if c, found := status.Conditions.with(string(kind), corev1.ConditionTrue); found {
			return progressing("its volume grows from %s to %s: %s: %s", has.String(), wants.String(), kind, c.Message)
		}
	}
	return progressing("its volume grows from %s to %s", has.String(), wants.String())
}

type customResourceDefinition struct {
	Status struct {
		Conditions conditions `json:"conditions"`
	} `json:"status"`
}

// checkCustomResourceDefinition goes by Established, which stays true when only new short names are refused.
func checkCustomResourceDefinition(c *customResourceDefinition) Result {
	if c.Status.Conditions.isTrue("Established") {
		return ready()
	}
	if refused, found := c.Status.Conditions.with("NamesAccepted", corev1.ConditionFalse); found {
		return failed("names are not accepted: %s", refused)
	}
	return progressing("waits to be Established")
}

type instance struct {
	Metadata meta `json:"metadata"`
	Status   struct {
		ObservedGeneration int64                    `json:"observedGeneration"`
		AggregatedStatus   v1beta1.AggregatedStatus `json:"aggregatedStatus"`
		Queue              []struct {
			PlanName string `json:"planName"`
		} `json:"queue"`
		Conditions []struct {
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"conditions"`
	} `json:"status"`
}

// checkInstance is rule 18 of engine.md: the spec is seen, nothing runs or is queued, and the last run is COMPLETE. That of
// a spec that is refused, or waits for parameters, is the run of the spec before.
func checkInstance(i *instance) Result {
	status, aggregated, refused := i.Status, i.Status.AggregatedStatus, refusal(i)
	switch {
	case aggregated.Status == "" && aggregated.ActivePlanName == "" && refused == "":
		return progressing("has no status yet")
	case status.ObservedGeneration < i.Metadata.Generation:
		return progressing(notObserved)
	case aggregated.ActivePlanName != "":
		return progressing("plan %s is %s%s", aggregated.ActivePlanName, aggregated.Status, after(aggregated.Message))
	case len(status.Queue) > 0:
		return progressing("plan %s is queued", status.Queue[0].PlanName)
	case refused != "":
		return progressing("%s", refused)
	case aggregated.Status == v1beta1.Pending: // its last run is of the spec before
		return progressing("%s", aggregated.Message)
	case aggregated.Status == v1beta1.Complete:
		return ready()
	case aggregated.Status == v1beta1.FatalError:
		return failed("its last plan failed%s", after(aggregated.Message))
	default:
		return progressing("its last plan is %s%s", aggregated.Status, after(aggregated.Message))
	}
}

// refusal says why the Instance's spec cannot be acted upon; empty if it can.
func refusal(i *instance) string {
	for _, c := range i.Status.Conditions {
		switch c.Reason {
		case v1beta1.ReasonInvalidSpec:
			return "its spec is refused: " + c.Message
		case v1beta1.ReasonWaitingForParameters, v1beta1.ReasonRecordNameTaken:
			return c.Message
		}
	}
	return ""
}

func after(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// checkOther is rule 17 of engine.md: ready once applied, as in KUDO. Only an object that reports conditions or an
// observed generation is given to kstatus; what kstatus has no opinion on is ready.
func checkOther(object *unstructured.Unstructured) Result {
	if !has(object, "status", "conditions") && !has(object, "status", "observedGeneration") {
		return ready()
	}
	result, err := status.Compute(object)
	if err != nil {
		return unknown("has a malformed status: %v", err)
	}
	switch result.Status {
	case status.FailedStatus:
		return failed("%s", explain("", result.Message, "has failed"))
	case status.InProgressStatus:
		return progressing("%s", explain("", result.Message, "is in progress"))
	case status.TerminatingStatus:
		return progressing("is being deleted")
	default:
		return ready()
	}
}

// has reports whether a field is there and not null.
func has(object *unstructured.Unstructured, path ...string) bool {
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	return err == nil && found && value != nil
}
