{{- /* The image of the manager: the one that the values name, or that of this version, by its digest, from whatever registry. */ -}}
{{- define "kudo.image" -}}
{{- if .Values.image }}{{ .Values.image }}
{{- else if .Values.imageRegistry }}{{ .Values.imageRegistry }}/kudo-chart-released-path
{{- else }}kudo-chart-released-image
{{- end }}
{{- end }}

{{- define "kudo.serviceAccount" -}}
{{ .Values.serviceAccount | default "kudo-manager" }}
{{- end }}

{{- /* Without a value, the replicas are those that an autoscaler or an administrator has set. */ -}}
{{- define "kudo.replicas" -}}
{{- if not (kindIs "invalid" .Values.replicas) }}{{ int .Values.replicas }}
{{- else }}{{ dig "spec" "replicas" 2 (lookup "apps/v1" "Deployment" .Release.Namespace "kudo-controller-manager") }}
{{- end }}
{{- end }}

{{- /* The arguments of the manager behind those that each installation has. An image of Pipe tasks that is not the manager's has a digest. */ -}}
{{- define "kudo.arguments" -}}
{{- $image := include "kudo.image" . }}
{{- $arguments := list }}
{{- if .Values.certManager }}{{ $arguments = append $arguments "--webhook-cert-rotation=false" }}{{ end }}
{{- $arguments = append $arguments (printf "--pipe-image=%s" (.Values.pipeImage | default $image)) }}
{{- if and (eq $image (.Values.pipeImage | default $image)) (not (regexMatch "^[^@\\s]+@sha256:[0-9a-f]{64}$" $image)) }}
{{- $arguments = append $arguments "--allow-unpinned-pipe-image" }}
{{- end }}
{{- if .Values.insecureMetrics }}{{ $arguments = append $arguments "--metrics-secure=false" }}{{ end }}
{{- with .Values.logFormat }}{{ $arguments = append $arguments (printf "--zap-encoder=%s" .) }}{{ end }}
{{- if .Values.exploreClientSecret }}
{{- $arguments = concat $arguments (list "--explore-client-cert-file=/etc/kudo/explore-client/tls.crt" "--explore-client-key-file=/etc/kudo/explore-client/tls.key") }}
{{- end }}
{{- toYaml (concat $arguments .Values.extraArgs) }}
{{- end }}

{{- /* What the manager asks of the cluster passes no proxy. */ -}}
{{- define "kudo.proxy" -}}
{{- if or .Values.proxy.http .Values.proxy.https }}
{{- $hosts := concat (.Values.proxy.noProxy | default list) (list "$(KUBERNETES_SERVICE_HOST)" "localhost" "127.0.0.1" "::1" ".svc" ".cluster.local") }}
{{- $variables := list }}
{{- with .Values.proxy.http }}{{ $variables = append $variables (dict "name" "HTTP_PROXY" "value" .) }}{{ end }}
{{- with .Values.proxy.https }}{{ $variables = append $variables (dict "name" "HTTPS_PROXY" "value" .) }}{{ end }}
{{- toYaml (append $variables (dict "name" "NO_PROXY" "value" (join "," $hosts))) }}
{{- end }}
{{- end }}

{{- define "kudo.mounts" -}}
{{- if .Values.exploreClientSecret }}{{ toYaml (list (dict "name" "explore-client" "mountPath" "/etc/kudo/explore-client" "readOnly" true)) }}{{ end }}
{{- end }}

{{- define "kudo.volumes" -}}
{{- with .Values.exploreClientSecret }}{{ toYaml (list (dict "name" "explore-client" "secret" (dict "secretName" .))) }}{{ end }}
{{- end }}

{{- define "kudo.podLabels" -}}
{{- with .Values.podLabels }}{{ toYaml . }}{{ end }}
{{- end }}

{{- define "kudo.podAnnotations" -}}
{{- with .Values.podAnnotations }}{{ toYaml . }}{{ end }}
{{- end }}

{{- define "kudo.podFields" -}}
{{- $fields := dict }}
{{- range $key := list "affinity" "imagePullSecrets" "nodeSelector" "tolerations" }}
{{- with index $.Values $key }}{{ $_ := set $fields $key . }}{{ end }}
{{- end }}
{{- with $fields }}{{ toYaml . }}{{ end }}
{{- end }}

{{- /* What kubectl kudo init --verify compares the installation with. */ -}}
{{- define "kudo.values" -}}
{{- $values := dict }}
{{- range $key := list "affinity" "cacheVolume" "exploreClientSecret" "extraArgs" "image" "imagePullPolicy" "imagePullSecrets" "imageRegistry" "logFormat" "monitoring" "networkPolicy" "nodeSelector" "pipeImage" "podAnnotations" "podLabels" "priorityClassName" "proxy" "tolerations" }}
{{- with index $.Values $key }}{{ $_ := set $values $key . }}{{ end }}
{{- end }}
{{- range $key := list "replicas" "resources" }}
{{- if not (kindIs "invalid" (index $.Values $key)) }}{{ $_ := set $values $key (index $.Values $key) }}{{ end }}
{{- end }}
{{- toYaml $values }}
{{- end }}
