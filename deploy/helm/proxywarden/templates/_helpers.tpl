{{- define "proxywarden.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 53 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "proxywarden.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "proxywarden.labels" -}}
{{ include "proxywarden.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "proxywarden.metadata" -}}
name: {{ include "proxywarden.fullname" . }}
namespace: {{ .Release.Namespace }}
labels: {{- include "proxywarden.labels" . | nindent 2 }}
{{- end }}

{{- define "proxywarden.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}
{{- else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- /* proxywarden.yaml: the configuration from the values, with the locations of the state and the policies. */ -}}
{{- define "proxywarden.config" -}}
{{- $config := deepCopy .Values.config }}
{{- if hasKey $config "state" }}{{ fail "config.state is set by the chart: use persistence or highAvailability" }}{{ end }}
{{- if hasKey $config "policies" }}{{ fail "config.policies is set by the chart: list the policies under policies" }}{{ end }}
{{- $listen := default "" (default dict $config.web).listen }}
{{- if regexMatch "^(127\\.|localhost:|\\[::1\\])" $listen }}
{{- printf "config.web.listen: probes and Prometheus can't reach %s; use 0.0.0.0:9713" $listen | fail }}
{{- end }}
{{- $_ := required "set config.service.base_url to the URL of the management service" $config.service.base_url }}
{{- if .Values.highAvailability.enabled }}
{{- $postgres := dict "url_file" "/run/secrets/proxywarden/postgres_url" }}
{{- $_ := set $config "state" (dict "postgres" (merge dict .Values.highAvailability.postgres $postgres)) }}
{{- else }}
{{- $_ := set $config "state" (dict "path" "/var/lib/proxywarden") }}
{{- end }}
{{- if .Values.policies }}{{ $_ := set $config "policies" (list "policies.yaml") }}{{ end }}
{{- toYaml $config }}
{{- end }}

{{- /* Whether the release has its own volume claim. */ -}}
{{- define "proxywarden.ownsClaim" -}}
{{- if not (or .Values.highAvailability.enabled .Values.persistence.existingClaim) }}true{{ end }}
{{- end }}
