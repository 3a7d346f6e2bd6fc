-- The health of an OperatorVersion of kudo, for Argo CD.
local status, spec = obj.status or {}, obj.spec or {}
local conditions = {}
for _, c in ipairs(status.conditions or {}) do conditions[c.type] = c end
local installed, reconciling, stalled = conditions.Installed, conditions.Reconciling, conditions.Stalled
local released = conditions.Released

local function health(state, message)
  return {status = state, message = message or ""}
end

if released ~= nil and released.status == "False" then
  return health("Progressing", released.message)
end
if (spec.installPlan or "") == "" then
  return health("Healthy", "it has no install plan")
end
local seen = math.max(status.observedGeneration or 0, (installed or {}).observedGeneration or 0)
if seen < (obj.metadata.generation or 0) and stalled == nil then
  return health("Progressing", "the manager of kudo has not taken up the spec yet")
end
if installed ~= nil and installed.reason == "InvalidSpec" then
  return health("Degraded", installed.message)
end
if reconciling ~= nil and reconciling.status == "True" then
  return health("Progressing", reconciling.message)
end
if stalled ~= nil and stalled.status == "True" then
  return health("Degraded", stalled.message)
end
if installed == nil or installed.status ~= "True" then
  return health("Progressing", (installed or {}).message)
end
if #(status.drift or {}) > 0 then
  local d = status.drift[1]
  return health("Healthy", #status.drift .. " of its objects were changed by others, such as " .. d.kind .. " " .. d.name)
end
return health("Healthy")
