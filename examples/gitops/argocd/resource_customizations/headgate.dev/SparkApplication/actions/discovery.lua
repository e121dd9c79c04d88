-- Suspending stops the driver at the end of its batch. Where the field stands in Git, a self-healing sync takes it back.
local suspended = obj.spec.suspend == true
return {
  ["suspend"] = { ["disabled"] = suspended, ["iconClass"] = "fa fa-fw fa-pause" },
  ["resume"] = { ["disabled"] = not suspended, ["iconClass"] = "fa fa-fw fa-play" },
}
