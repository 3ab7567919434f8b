-- Arguments: a file with the body, and a file with one header block per line, used in turn.
-- The requests are built before the load starts, so that building them takes no time during it, and have the number
-- of their turn put in where the body has @number@. Numbers start with the time: those of two loads differ.
local requests, at, number, is_fresh = {}, 0, os.time() % 1000 * 100000, false

local function headers_of(line)
  local headers = {}
  for name, value in line:gmatch("([^\t:]+): ([^\t]+)") do headers[name] = value end
  return headers
end

function init(args)
  local body = io.open(args[1]):read("*a")
  is_fresh = body:find("@number@", 1, true) ~= nil
  for line in io.lines(args[2]) do
    requests[#requests + 1] = wrk.format("POST", nil, headers_of(line), body)
  end
end

function request()
  at = at % #requests + 1
  if not is_fresh then return requests[at] end
  number = number + 1
  return (requests[at]:gsub("@number@", string.format("%08d", number)))
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    'RESULT {"requests":%d,"bytes":%d,"seconds":%f,"failed":%d,"unanswered":%d}',
    summary.requests, summary.bytes, summary.duration / 1e6, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
