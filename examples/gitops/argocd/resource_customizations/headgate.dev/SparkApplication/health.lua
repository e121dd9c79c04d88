-- What Argo CD shows of a SparkApplication, from the conditions that kstatus defines and the state of the driver.
-- A backlog is no illness: it is told in the message.

local function health(status, message)
  return { status = status, message = message }
end

local metadata = obj.metadata
if metadata.deletionTimestamp ~= nil then
  return health("Progressing", "being deleted: the driver stops at the end of its batch")
end

local status = obj.status
if status == nil or status.conditions == nil then
  return health("Progressing", "waiting for the operator")
end

local condition = {}
for _, one in ipairs(status.conditions) do
  condition[one.type] = one
end

local function holds(name)
  return condition[name] ~= nil and condition[name].status == "True"
end

local function message(name)
  local text = condition[name] ~= nil and condition[name].message or ""
  if holds("Backlog") then
    text = text .. "; " .. condition["Backlog"].message
  end
  return text
end

if status.observedGeneration ~= metadata.generation then
  return health("Progressing", "the operator has not seen the last change yet")
end
if holds("Stalled") then
  return health("Degraded", message("Stalled"))
end
if holds("Reconciling") then
  return health("Progressing", message("Reconciling"))
end
if status.state == "Suspended" then
  return health("Suspended", message("Ready"))
end
if holds("Ready") then
  return health("Healthy", message("Ready"))
end
if condition["Ready"] ~= nil and condition["Ready"].status == "False" then
  return health("Degraded", message("Ready"))
end
return health("Progressing", "waiting for the operator")
