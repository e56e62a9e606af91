function worker(study, rollouts, rollout)
% worker("http://HOST:8765/v1/studies/NAME", 40, @(p) -(p.kp/60 - 1)^2 - (p.kd - 0.7)^2)
% The token is in the environment variable RECOUP_TOKEN. What rollout raises is told as a failure.
for k = 1:rollouts
    found = post(study + "/ask", struct("n", 1, "lease", 3600, "worker", "MATLAB"));
    trial = found.trials(1);
    try
        value = rollout(trial.params);
        assert(isscalar(value) && isfinite(value), "its return was no number");
        result = struct("return", value);
    catch why
        result = struct("failed", why.message);
    end
    post(study + "/trials/" + string(trial.id) + "/tell", result);
end
end

function found = post(url, body) % asks again, with the same key, until there is an answer
import matlab.net.http.* matlab.net.http.field.*
key = string(java.util.UUID.randomUUID());
headers = [ContentTypeField("application/json"), GenericField("Idempotency-Key", key), ...
    GenericField("Authorization", "Bearer " + getenv("RECOUP_TOKEN"))];
request = RequestMessage("POST", headers, MessageBody(body));
while true
    try, answer = request.send(url, HTTPOptions("ConnectTimeout", 60)); status = double(answer.StatusCode); catch, status = 0; end
    if status >= 200 && status < 300, found = answer.Body.Data; return, end
    if status >= 400 && status < 500 && ~ismember(status, [408 429]), error("refused: %s", string(answer.Body)), end
    pause(1)
end
end
