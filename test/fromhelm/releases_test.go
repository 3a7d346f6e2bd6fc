package fromhelm

import "kudo.dev/kudo/operators/helmrelease"

// example is a release of Helm. NS in its texts is the namespace of the release.
type example struct {
	name, manifest string
	crds           []string
	hooks          []helmrelease.Hook
	// parameters are lifted.
	parameters []string
	// pods is how many pods the release has; 0 if they are those of DaemonSet agent.
	pods int
	// before are objects that must be there first.
	before string
}

// workload returns a Deployment with labels as charts have them.
func workload(kind, name, more string) string {
	return "apiVersion: apps/v1\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n  labels: {app.kubernetes.io/name: " + name +
		", app.kubernetes.io/managed-by: Helm, helm.sh/chart: x-1.2.3}\nspec:\n  selector: {matchLabels: {app.kubernetes.io/name: " + name +
		"}}\n  template:\n    metadata:\n      labels: {app.kubernetes.io/name: " + name + ", helm.sh/chart: x-1.2.3}\n      annotations: {checksum/config: abc}\n" +
		"    spec:\n      containers:\n      - {name: c, image: 'nginx:1', resources: {requests: {cpu: 0.1, memory: 1024Mi}}}\n" + more
}

const service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  selector: {app.kubernetes.io/name: web}\n  ports: [{port: 80, targetPort: 8080}]\n"

// reader returns a Deployment whose pods read a ConfigMap.
const reader = "      volumes: [{name: v, configMap: {name: conf}}]\n"

var examples = []example{
	{name: "plain", manifest: workload("Deployment", "web", "  replicas: 2\n") + service, pods: 2,
		parameters: []string{"REPLICAS=Deployment/web:spec.replicas", "IMAGE=Deployment/web:spec.template.spec.containers[0].image"}},
	{name: "claims", manifest: workload("StatefulSet", "db", "  replicas: 2\n  serviceName: db\n  volumeClaimTemplates:\n"+
		"  - metadata: {name: data, labels: {app: db, heritage: Helm}}\n    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"),
		pods: 2, parameters: []string{"REPLICAS=StatefulSet/db:spec.replicas", "IMAGE=StatefulSet/db:spec.template.spec.containers[0].image"}},
	{name: "daemons", manifest: workload("DaemonSet", "agent", "  minReadySeconds: 0\n"),
		parameters: []string{"REPLICAS=DaemonSet/agent:spec.minReadySeconds", "IMAGE=DaemonSet/agent:spec.template.spec.containers[0].image"}},
	{name: "config", manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\ndata: {key: a}\n---\n" +
		workload("Deployment", "web", reader+"  replicas: 1\n"), pods: 1,
		parameters: []string{"REPLICAS=Deployment/web:spec.replicas", "IMAGE=ConfigMap/conf:data.key"}},
	{name: "hooks", manifest: workload("Deployment", "web", "  replicas: 1\n"), pods: 1, hooks: []helmrelease.Hook{
		{Name: "migrate", Events: []string{"pre-install", "pre-upgrade"}, Weight: 5, Manifest: hookJob("migrate")},
		{Name: "prepare", Events: []string{"pre-upgrade"}, Weight: -5, DeletePolicies: []string{"hook-succeeded"}, Manifest: hookJob("prepare")},
		{Name: "drain", Events: []string{"pre-delete"}, Manifest: hookJob("drain")},
		{Name: "check", Events: []string{"test"}, Manifest: hookJob("check")},
	}, parameters: []string{"REPLICAS=Deployment/web:spec.replicas", "IMAGE=Deployment/web:spec.template.spec.containers[0].image"}},
	{name: "crds", crds: []string{thingDefinition}, manifest: "apiVersion: fromhelm.example.org/v1\nkind: Thing\nmetadata: {name: one}\nspec: {size: 1}\n---\n" +
		workload("Deployment", "web", "  replicas: 1\n"), pods: 1,
		parameters: []string{"REPLICAS=Deployment/web:spec.replicas", "IMAGE=Deployment/web:spec.template.spec.containers[0].image"}},
	{name: "keep", manifest: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: files, annotations: {helm.sh/resource-policy: keep}}\n" +
		"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n---\n" + workload("Deployment", "web", "  replicas: 1\n"), pods: 1,
		parameters: []string{"REPLICAS=Deployment/web:spec.replicas", "IMAGE=Deployment/web:spec.template.spec.containers[0].image"}},
	{name: "subchart", manifest: "# Source: x/charts/redis/templates/sts.yaml\n" + workload("StatefulSet", "redis", "  replicas: 1\n  serviceName: redis\n") +
		"---\n# Source: x/templates/old.yaml\n" + heritageDeployment, pods: 2,
		parameters: []string{"REPLICAS=Deployment/old:spec.replicas", "IMAGE=Deployment/old:spec.template.spec.containers[0].image"}},
	{name: "secrets", manifest: "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\ndata: {password: c2VjcmV0}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: alerts}\ndata:\n  rules: |\n    text: '{{ $labels.pod }} is {{ if .Values }}down{{ end }}'\n---\n" +
		workload("Deployment", "web", "      volumes: [{name: v, secret: {secretName: key}}]\n  replicas: 1\n"), pods: 1,
		parameters: []string{"REPLICAS=Deployment/web:spec.replicas", "IMAGE=Deployment/web:spec.template.spec.containers[0].image"}},
	{name: "cluster", before: "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-other}\n", manifest: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: far, namespace: NS-other}\ndata: {a: b}\n---\n" +
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NS-web}\nrules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]\n---\n" +
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: NS-web}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NS-web}\nsubjects: [{kind: ServiceAccount, name: web, namespace: NS}]\n---\n" +
		workload("Deployment", "web", "      serviceAccountName: web\n  replicas: 1\n"), pods: 1,
		parameters: []string{"REPLICAS=Deployment/web:spec.replicas", "IMAGE=Deployment/web:spec.template.spec.containers[0].image"}},
}

func hookJob(name string) string {
	return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name + ", annotations: {helm.sh/hook: x}}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n" +
		"      containers: [{name: c, image: 'busybox:1'}]\n"
}

const thingDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.fromhelm.example.org}
spec:
  group: fromhelm.example.org
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}
`

// heritageDeployment selects its pods by a label that kudo has, too, as old charts do.
const heritageDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: old, labels: {app: old, heritage: Helm}}
spec:
  replicas: 1
  selector: {matchLabels: {app: old, heritage: Helm}}
  template:
    metadata: {labels: {app: old, heritage: Helm}}
    spec: {containers: [{name: c, image: 'nginx:1'}]}
`
