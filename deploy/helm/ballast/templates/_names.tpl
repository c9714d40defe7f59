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

{{- /* Agents from elsewhere may come with a Role with the controller's name. */ -}}
{{- define "ballast.agentrole" -}}
{{- if .Values.nodeAgent.external -}}
{{- printf "%s-agents" (include "ballast.name" . | trunc 56 | trimSuffix "-") -}}
{{- else -}}
{{- include "ballast.name" . -}}
{{- end -}}
{{- end -}}

{{- /* Probes of a port where no agent answers take every node out of rotation. */ -}}
{{- define "ballast.agents" -}}
{{- $ours := .Values.nodeAgent.enabled -}}
{{- $config := dict -}}
{{- range $key, $value := .Values.cloudConfig -}}
{{- $_ := set $config (lower $key) $value -}}
{{- end -}}
{{- if eq (lower (toString (get $config "healthcheck"))) "agent" -}}
{{- if not (or $ours .Values.nodeAgent.external) -}}
{{- $text := "cloudConfig.healthCheck is agent, and nodeAgent.enabled is false: set it to true first; %s" -}}
{{- fail (printf $text "where agents are installed from elsewhere, set nodeAgent.external") -}}
{{- end -}}
{{- $port := int (default 10272 (get $config "healthcheckagentport")) -}}
{{- if and $ours (ne $port (int .Values.nodeAgent.port)) -}}
{{- $text := "cloudConfig.healthCheckAgentPort is %d, nodeAgent.port is %d: set both to one port" -}}
{{- fail (printf $text $port (int .Values.nodeAgent.port)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
