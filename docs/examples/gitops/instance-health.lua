-- The health of an Instance of kudo, for Argo CD.
local status, spec = obj.status or {}, obj.spec or {}
local conditions = {}
for _, c in ipairs(status.conditions or {}) do conditions[c.type] = c end
local ready, reconciling, stalled = conditions.Ready, conditions.Reconciling, conditions.Stalled

local function health(state, message)
  return {status = state, message = message or ""}
end

if ready == nil and reconciling == nil and stalled == nil then
  return health("Progressing", "no plan has run yet: is the manager of kudo running?")
end
-- The condition says why the manager waits before it takes up the spec.
local seen = math.max(status.observedGeneration or 0, (ready or {}).observedGeneration or 0)
if seen < (obj.metadata.generation or 0) then
  return health("Progressing", "the manager of kudo has not taken up the new spec yet")
end
if reconciling ~= nil and reconciling.status == "True" then
  return health("Progressing", reconciling.message)
end
if stalled ~= nil and stalled.status == "True" then
  return health("Degraded", stalled.message)
end
if ready == nil or ready.status ~= "True" then
  local why = ready or {}
  -- These do not end by waiting.
  if why.reason == "ResourceFailed" or why.reason == "InvalidSpec" then
    return health("Degraded", why.message)
  end
  return health("Progressing", why.message)
end
if spec.suspend then
  return health("Suspended", "spec.suspend is set")
end
local notes = {}
if #(status.drift or {}) > 0 then
  local d = status.drift[1]
  notes[1] = #status.drift .. " of its objects were changed by others, such as " .. d.kind .. " " .. d.name
end
if conditions.ScheduleFailed ~= nil then
  notes[#notes + 1] = conditions.ScheduleFailed.message
end
return health("Healthy", table.concat(notes, "; "))
