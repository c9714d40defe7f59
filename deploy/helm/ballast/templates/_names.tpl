{{- define "ballast.name" -}}
{{- if contains "ballast" .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-ballast" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "ballast.selector" -}}
app.kubernetes.io/name: ballast
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ballast.labels" -}}
{{ include "ballast.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "ballast.secret" -}}
{{ include "ballast.name" . }}-cloud-config
{{- end -}}

{{- define "ballast.config" -}}
{{- if not (or .Values.cloudConfig .Values.existingSecret) -}}
{{- fail "there is no cloud config: set cloudConfig, or existingSecret to the name of a Secret that has one under the key cloud-config" -}}
{{- end -}}
{{- if and .Values.cloudConfig .Values.existingSecret -}}
{{- fail "cloudConfig and existingSecret are both set: keep one" -}}
{{- end -}}
{{- end -}}
