#!/usr/bin/python3
"""Stands in for the etcd operator: it makes a StatefulSet of each EtcdCluster, and adds members one after another."""
import http.server, json, os, ssl, threading, time, traceback, urllib.error, urllib.request

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/"
API = "https://%s:%s" % (os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"])
TLS = ssl.create_default_context(cafile=ACCOUNT + "ca.crt")
CLUSTERS = "/apis/operator.etcd.io/v1alpha1"
START = """
n=${HOSTNAME##*-}; state=new; last=$((INITIAL - 1))
if [ "$n" -ge "$INITIAL" ]; then state=existing; last=$n; fi
list=; i=0
while [ "$i" -le "$last" ]; do list=$list,$NAME-$i=http://$NAME-$i.$NAME.$NAMESPACE.svc:2380; i=$((i + 1)); done
exec etcd --name "$HOSTNAME" --data-dir /data/etcd --initial-cluster "${list#,}" --initial-cluster-state "$state" \\
  --listen-peer-urls http://0.0.0.0:2380 --initial-advertise-peer-urls "http://$HOSTNAME.$NAME.$NAMESPACE.svc:2380" \\
  --listen-client-urls http://0.0.0.0:2379 --advertise-client-urls "http://$HOSTNAME.$NAME.$NAMESPACE.svc:2379"
"""


def ask(url, body=None, method="GET", kind="application/json"):
    request = urllib.request.Request(url, data=None if body is None else json.dumps(body).encode(), method=method, headers={"Content-Type": kind})
    if url.startswith(API):
        request.add_header("Authorization", "Bearer " + open(ACCOUNT + "token").read())
    with urllib.request.urlopen(request, timeout=10, context=TLS) as answer:
        return json.load(answer)


def find(path):
    try:
        return ask(API + path)
    except urllib.error.HTTPError as e:
        if e.code != 404:
            raise


def apply(path, obj):
    ask(API + path + "?fieldManager=etcd-operator&force=true", obj, "PATCH", "application/apply-patch+yaml")


def add(members, peer):
    """Adds a member by the first that takes it: one whose old connections have timed out may call the others unhealthy for ever."""
    for n, member in enumerate(members):
        try:
            return ask(member + "add", {"peerURLs": [peer]}, "POST")
        except urllib.error.HTTPError as e:
            if e.code != 503 or n == len(members) - 1:
                raise


def reconcile(cluster):
    meta, spec = cluster["metadata"], cluster["spec"]
    name, namespace = meta["name"], meta["namespace"]
    owner = {"apiVersion": cluster["apiVersion"], "kind": "EtcdCluster", "name": name, "uid": meta["uid"], "controller": True}
    own = {"name": name, "namespace": namespace, "ownerReferences": [owner]}
    path = "/apis/apps/v1/namespaces/%s/statefulsets/%s" % (namespace, name)
    live = find(path)
    size, initial = spec["size"], str(spec["size"])
    if live:
        env = live["spec"]["template"]["spec"]["containers"][0]["env"]
        initial = next(e["value"] for e in env if e["name"] == "INITIAL")
        have = live["spec"]["replicas"]
        ready = live.get("status", {}).get("readyReplicas", 0) == have
        host = "%s-%d.%s.%s.svc" % (name, have, name, namespace)
        if size > have and ready:
            # The member stands already if an earlier request succeeded without its answer, or if the StatefulSet was not written after it.
            members = ["http://%s-%d.%s.%s.svc:2379/v3/cluster/member/" % (name, n, name, namespace) for n in range(have)]
            peer = "http://%s:2380" % host
            if not any(peer in m["peerURLs"] for m in ask(members[0] + "list", {}, "POST")["members"]):
                add(members, peer)
            have += 1
        size = have
    apply("/api/v1/namespaces/%s/services/%s" % (namespace, name), {
        "apiVersion": "v1", "kind": "Service", "metadata": own,
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"etcd": name}, "ports": [{"name": "client", "port": 2379}, {"name": "peer", "port": 2380}]}})
    storage = spec["storageSpec"]
    apply(path, {
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": own,
        "spec": {
            "replicas": size, "serviceName": name, "podManagementPolicy": "Parallel", "selector": {"matchLabels": {"etcd": name}},
            "template": {"metadata": {"labels": {"etcd": name}}, "spec": {"containers": [{
                "name": "etcd", "image": "gcr.io/etcd-development/etcd:" + spec["version"], "command": ["sh", "-c", START],
                "env": [{"name": "NAME", "value": name}, {"name": "NAMESPACE", "value": namespace}, {"name": "INITIAL", "value": initial}],
                "readinessProbe": {"httpGet": {"path": "/health", "port": 2379}, "periodSeconds": 1, "timeoutSeconds": 5},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
                "accessModes": [storage["accessModes"]], "resources": {"requests": {"storage": storage["volumeSizeRequest"]}}}}]}})


def run():
    while True:
        try:
            clusters = ask(API + CLUSTERS + "/etcdclusters")["items"]
        except Exception:
            clusters = []
            traceback.print_exc()
        for cluster in clusters:
            try:
                reconcile(cluster)
            except Exception:
                traceback.print_exc()
        time.sleep(1)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


threading.Thread(target=run, daemon=True).start()
http.server.ThreadingHTTPServer(("", 8081), Handler).serve_forever()
