{{- define "labels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
{{- define "container" -}}
name: c
image: {{ .Values.image | quote }}
resources: {requests: {cpu: 0.1, memory: 1024Mi}}
{{- end }}
