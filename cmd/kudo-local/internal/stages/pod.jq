# What happens next to a pod, and when. See the package comment for the drawing.
# The words between @ are replaced by string literals.

def line: ((.command // []) + (.args // [])) | join(" ");
def no_image: (.image // "") | test(@NO_IMAGE@);
def fails: line | test(@FAILS@);
def forever: line | test(@FOREVER@);
def sleep: [line | scan(@SLEEPS@) | (.[0] | tonumber) * ({"m": 60, "h": 3600, "d": 86400}[.[1]] // 1)] | add // 0;

def inits: .spec.initContainers // [];
def of_job: any(.metadata.ownerReferences[]?; .kind == "Job");
# A pod that is to end: a Job's, or one that may end and says what it does.
def once: .spec.restartPolicy != "Always" and (of_job or all(.spec.containers[]; line != ""));
def runs_on: any(.spec.containers[]; forever);
# How long the containers take that decide how the pod ends.
def takes: [(.spec.containers | (map(select(fails)) | select(length > 0)) // .)[] | sleep] | max;
def pull_shown: any((.status.initContainerStatuses[]?, .status.containerStatuses[]?); .state.waiting.reason == "ImagePullBackOff");
def broken($kind): if .spec.restartPolicy != "Never" then $kind + "crash" elif $kind == "" and runs_on then "none" else $kind + "failed" end;

def when_pending:
  if any((inits + .spec.containers)[]; no_image) then (if pull_shown then "none" else "pull" end)
  elif any(inits[]; fails) then broken("init-")
  elif any(.spec.containers[]; fails and sleep == 0) and (broken("") != "none") then broken("")
  else "ready" end;

def when_running:
  if any(.spec.containers[]; fails) then broken("")
  elif once and (runs_on | not) then "complete"
  else "none" end;

def next:
  (.status.phase // "Pending") as $phase
  | if .metadata.deletionTimestamp then
      if once and ($phase == "Pending" or $phase == "Running") then "kill"
      elif .metadata.deletionGracePeriodSeconds != 0 then "delete"
      else "none" end
    elif $phase == "Pending" then when_pending
    elif $phase == "Running" then when_running
    else "none" end;

# Times, as kwok reads them: a duration from now, or a point in time.
def soon: @READY_DELAY@;
def finish:
  if (.status.phase // "Pending") == "Pending" then soon
  elif takes == 0 then "0s"
  else (.status.startTime | fromdateiso8601) + takes + 1 | todateiso8601 end;
def restarts: [(.status.initContainerStatuses[]?, .status.containerStatuses[]?) | .restartCount // 0] | max // 0;
# A Job counts restarts towards its backoffLimit: do not let it wait.
def pause: if of_job then 1 else [5 * pow(2; [restarts - 1, 10] | min), 300] | min end;
def restart: if restarts == 0 then finish else "\(takes + pause)s" end;

