"""The process of `headgate operator`: what is heard from the API server (Kopf), which replica acts, and probes."""
