package native

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/explore"
)

const headless = "None"

// retainService keeps what the API server allocates: cluster addresses and ports. What the desired type of service
// must not have is left out, else the API server refuses it.
func retainService(desired, live map[string]any) error {
	kind, err := serviceType(desired, live)
	if err != nil || kind == "ExternalName" {
		return err
	}
	if err := retainClusterIP(desired, live); err != nil {
		return err
	}
	if kind != "NodePort" && kind != "LoadBalancer" {
		return nil
	}
	if err := retainNodePorts(desired, live); err != nil {
		return err
	}
	policy, err := text(desired, "spec", "externalTrafficPolicy")
	if err != nil || kind != "LoadBalancer" {
		return err
	}
	if policy == "" {
		if policy, err = text(live, "spec", "externalTrafficPolicy"); err != nil {
			return err
		}
	}
	if policy != "Local" {
		return nil
	}
	return keep(desired, live, "spec", "healthCheckNodePort")
}

// serviceType is the type that the service will have: one that the desired object leaves out stays as it is.
func serviceType(desired, live map[string]any) (string, error) {
	for _, object := range []map[string]any{desired, live} {
		kind, err := text(object, "spec", "type")
		if err != nil || kind != "" {
			return kind, err
		}
	}
	return "ClusterIP", nil
}

// retainClusterIP keeps the addresses. A headless service is one by its author's choice: where the two sides differ in
// that, the desired side stays, for the API server to judge.
func retainClusterIP(desired, live map[string]any) error {
	want, err := text(desired, "spec", "clusterIP")
	if err != nil {
		return err
	}
	is, err := text(live, "spec", "clusterIP")
	if err != nil {
		return err
	}
	if is == "" || want != "" && (want == headless) != (is == headless) {
		return nil
	}
	if err := keep(desired, live, "spec", "clusterIP"); err != nil {
		return err
	}
	all, found, err := unstructured.NestedStringSlice(live, "spec", "clusterIPs")
	if err != nil || !found || len(all) == 0 {
		return err
	}
	family, err := text(desired, "spec", "ipFamilyPolicy")
	if err != nil {
		return err
	}
	if family == "SingleStack" {
		all = all[:1] // the second address is given back by leaving it out
	}
	return unstructured.SetNestedStringSlice(desired, all, "spec", "clusterIPs")
}

// retainNodePorts keeps allocated node ports, of ports that have the same protocol and number, else the same name. A
// node port that the desired object asks for is its author's. Ports of different protocols may share a node port.
func retainNodePorts(desired, live map[string]any) error {
	ports, err := entries(desired, "spec", "ports")
	if err != nil {
		return err
	}
	allocated, err := entries(live, "spec", "ports")
	if err != nil {
		return err
	}
	isTaken := func(n int64, port map[string]any) bool {
		return slices.ContainsFunc(ports, func(p map[string]any) bool {
			own, _ := number(p["nodePort"])
			return own == n && explore.Equal(protocol(p), protocol(port))
		})
	}
	for _, same := range []func(a, b map[string]any) bool{samePort, sameName} {
		for _, port := range ports {
			for _, old := range allocated {
				n, _ := number(old["nodePort"])
				if !isBlank(port["nodePort"]) || n == 0 || isTaken(n, port) || !same(port, old) {
					continue
				}
				port["nodePort"] = n
			}
		}
	}
	return nil
}

func samePort(a, b map[string]any) bool {
	x, _ := number(a["port"])
	y, _ := number(b["port"])
	return x == y && x != 0 && explore.Equal(protocol(a), protocol(b))
}

func sameName(a, b map[string]any) bool {
	return !isBlank(a["name"]) && explore.Equal(a["name"], b["name"]) && explore.Equal(protocol(a), protocol(b))
}

func protocol(port map[string]any) any {
	if isBlank(port["protocol"]) {
		return "TCP"
	}
	return port["protocol"]
}
