-- Arguments: a file with the body, and a file with one header block per line, used in turn.
-- The requests are built before the load starts, so that building them takes no time during it.
local requests, at = {}, 0

local function headers_of(line)
  local headers = {}
  for name, value in line:gmatch("([^\t:]+): ([^\t]+)") do headers[name] = value end
  return headers
end

function init(args)
  local body = io.open(args[1]):read("*a")
  for line in io.lines(args[2]) do
    requests[#requests + 1] = wrk.format("POST", nil, headers_of(line), body)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    'RESULT {"requests":%d,"bytes":%d,"seconds":%f,"failed":%d,"unanswered":%d}',
    summary.requests, summary.bytes, summary.duration / 1e6, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
