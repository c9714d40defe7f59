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

{{- define "ballast.metrics" -}}
{{- printf "%s-metrics" (include "ballast.name" . | trunc 55 | trimSuffix "-") -}}
{{- end -}}

{{- define "ballast.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository ($image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "ballast.config" -}}
{{- $set := list -}}
{{- range list "cloudConfig" "existingSecret" "cloudConfigHostFile" -}}
{{- if get $.Values . -}}{{- $set = append $set . -}}{{- end -}}
{{- end -}}
{{- if not $set -}}
{{- fail "there is no cloud config: set cloudConfig, existingSecret or cloudConfigHostFile (see values.yaml)" -}}
{{- end -}}
{{- if gt (len $set) 1 -}}
{{- fail (printf "%s are both set: keep one" (join " and " $set)) -}}
{{- end -}}
{{- end -}}

{{- /* Probes of a port where no agent answers take every node out of rotation. */ -}}
{{- define "ballast.agents" -}}
{{- $config := dict -}}
{{- range $key, $value := .Values.cloudConfig -}}
{{- $_ := set $config (lower $key) $value -}}
{{- end -}}
{{- if eq (lower (toString (get $config "healthcheck"))) "agent" -}}
{{- if not .Values.nodeAgent.enabled -}}
{{- fail "cloudConfig.healthCheck is agent, and nodeAgent.enabled is false: set it to true first" -}}
{{- end -}}
{{- $port := int (default 10272 (get $config "healthcheckagentport")) -}}
{{- if ne $port (int .Values.nodeAgent.port) -}}
{{- $ours := int .Values.nodeAgent.port -}}
{{- $text := "cloudConfig.healthCheckAgentPort is %d, nodeAgent.port is %d: set both to one port" -}}
{{- fail (printf $text $port $ours) -}}
{{- end -}}
{{- end -}}
{{- end -}}
