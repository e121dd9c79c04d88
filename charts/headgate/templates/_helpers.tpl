{{- define "headgate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "headgate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "headgate.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "headgate.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "headgate.selectorLabels" -}}
app.kubernetes.io/name: {{ include "headgate.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- /* Labels of the chart's own objects. A value may replace one, but none by which pods are selected. */}}
{{- define "headgate.labelsAnd" -}}
{{- $root := index . 0 -}}
{{- $chart := dict
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/version" $root.Chart.AppVersion
  "app.kubernetes.io/managed-by" $root.Release.Service
  "app.kubernetes.io/part-of" "headgate" -}}
{{- $selected := include "headgate.selectorLabels" $root | fromYaml -}}
{{- toYaml (mergeOverwrite $chart ($root.Values.commonLabels | default dict) (index . 1 | default dict) $selected) -}}
{{- end -}}

{{- define "headgate.labels" -}}
{{- include "headgate.labelsAnd" (list . dict) -}}
{{- end -}}

{{- define "headgate.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "headgate.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "headgate.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The settings file: what the chart knows, over what is given. */}}
{{- define "headgate.settings" -}}
{{- $own := dict
    "driverServiceAccount" .Values.drivers.serviceAccount.name
    "leaseName" (include "headgate.fullname" .)
    "leaseNamespace" .Release.Namespace -}}
{{- with .Values.namespaces -}}
{{- $_ := set $own "namespaces" . -}}
{{- end -}}
{{- if and .Values.monitoring.podMonitor.enabled (not (hasKey .Values.settings "prometheusMatchers")) -}}
{{- /* Series that somebody else brings in are nobody's: any tenant may call theirs like a driver's. */ -}}
{{- $job := printf "%s/%s-drivers" .Release.Namespace (include "headgate.fullname" .) -}}
{{- $_ := set $own "prometheusMatchers" (printf "job=%q" $job) -}}
{{- end -}}
{{- toYaml (merge $own .Values.settings) -}}
{{- end -}}

{{/* Namespaces of drivers, as a JSON object: Helm's templates hand on text only. */}}
{{- define "headgate.driverNamespaces" -}}
{{- $names := .Values.drivers.namespaces | default .Values.namespaces | default (list .Release.Namespace) -}}
{{- dict "names" ($names | uniq) | toJson -}}
{{- end -}}
