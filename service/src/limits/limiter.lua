-- The twin of rolling-window.ts inside Redis: the two must decide alike, call by call, and a test compares
-- them. KEYS[1] is a hash of counters (field 'o', 'p<project>', 'k<key>'), KEYS[2] a sorted set of leases
-- ('<lease>|p<project>|k<key>|' scored by its end in ms). Both carry the organization as their hash tag.
--
-- Counters are packed: a head with the number of minute and hour buckets and the sums of both, then the
-- buckets, oldest first, minutes before hours. One hash and one packed answer take a third of the time that
-- keys and lists of numbers took. Time comes from this server, never from a caller; tests may give it.
--
-- `struct` and `redis.call` exist only while a function runs: nothing may use them outside.

local MINUTE_MS, DAY_MS = 60000, 86400000
local SECOND_MS, HOUR_MS = 1000, 3600000
local HEAD_BYTES, BUCKET_BYTES = 24, 14
local HEAD, BUCKET = '<I2I2I4I6I4I6', '<I4I4I6'
local LIMITS = '<I6I6I6I6I4I6I6I6I6I4I6I6I6I6I4'
local VERDICT = '<BBBI6I6I4I4I6I6I4I4I4I6I6I4I4I4I6I6I4'
local KEPT_MS = DAY_MS + 2 * HOUR_MS

local function clock(given)
  if given ~= '0' then return tonumber(given) end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- 1 minute buckets, 2 hour buckets, 3 requests and 4 tokens of the minute, 5 and 6 of the day,
-- 7 and 8 where the live minute buckets begin and end, 9 and 10 the same for hours, 11 the bytes.
local function open(raw, now)
  local first = HEAD_BYTES + 1
  if not raw then return {0, 0, 0, 0, 0, 0, first, first, first, first, ''} end
  local minutes, hours, mr, mt, dr, dt = struct.unpack(HEAD, raw)
  local mp, me = first, first + minutes * BUCKET_BYTES
  local dp, de = me, me + hours * BUCKET_BYTES
  local dead = (now - MINUTE_MS) / SECOND_MS - 1
  while minutes > 0 do
    local id, requests, tokens = struct.unpack(BUCKET, raw, mp)
    if id > dead then break end
    mr = mr - requests; mt = mt - tokens; minutes = minutes - 1; mp = mp + BUCKET_BYTES
  end
  dead = (now - DAY_MS) / HOUR_MS - 1
  while hours > 0 do
    local id, requests, tokens = struct.unpack(BUCKET, raw, dp)
    if id > dead then break end
    dr = dr - requests; dt = dt - tokens; hours = hours - 1; dp = dp + BUCKET_BYTES
  end
  return {minutes, hours, mr, mt, dr, dt, mp, me, dp, de, raw}
end

-- An amount added to the live buckets of one window: the bytes that stay, the newest bucket, and how many
-- buckets that makes more. The two are not joined here: every copy of a long text costs.
local function add_to(raw, from, to, id, requests, tokens)
  if to > from then
    local newest, r, t = struct.unpack(BUCKET, raw, to - BUCKET_BYTES)
    -- A clock that steps back counts into the newest bucket.
    if newest >= id then
      return string.sub(raw, from, to - BUCKET_BYTES - 1), struct.pack(BUCKET, newest, r + requests, t + tokens), 0
    end
  end
  return string.sub(raw, from, to - 1), struct.pack(BUCKET, id, requests, tokens), 1
end

local function add(c, now, requests, tokens)
  local raw = c[11]
  local minutes, minute, more = add_to(raw, c[7], c[8], math.floor(now / SECOND_MS), requests, tokens)
  local hours, hour, more_hours = add_to(raw, c[9], c[10], math.floor(now / HOUR_MS), requests, tokens)
  c[1] = c[1] + more; c[2] = c[2] + more_hours
  c[3] = c[3] + requests; c[4] = c[4] + tokens; c[5] = c[5] + requests; c[6] = c[6] + tokens
  return struct.pack(HEAD, c[1], c[2], c[3], c[4], c[5], c[6]) .. minutes .. minute .. hours .. hour
end

-- Until enough buckets have left the window; a whole window for what is larger than its limit.
local function wait_for(raw, from, to, excess, unit, now, bucket_ms, window_ms)
  local freed = 0
  while from < to do
    local id, requests, tokens = struct.unpack(BUCKET, raw, from)
    freed = freed + (unit == 1 and requests or tokens)
    if freed >= excess then return (id + 1) * bucket_ms + window_ms - now end
    from = from + BUCKET_BYTES
  end
  return window_ms
end

-- Live leases in the organization, the project and for the key, and whether this one is among them.
local function count_leases(key, now, lease, project, credential)
  local live = redis.call('ZRANGEBYSCORE', key, now, '+inf')
  local in_project, in_key, is_mine = 0, 0, false
  local project_part = '|' .. project .. '|'
  local key_part = project_part .. credential .. '|'
  local mine = lease .. key_part
  for i = 1, #live do
    local name = live[i]
    if name == mine then is_mine = true end
    if string.find(name, project_part, 1, true) then
      in_project = in_project + 1
      if string.find(name, key_part, 1, true) then in_key = in_key + 1 end
    end
  end
  return #live, in_project, in_key, is_mine
end

-- ARGV: now or 0, tokens, lease, lease ms, project field, key field, packed limits.
local function admit(keys, args)
  local now, tokens, lease, lease_ms = clock(args[1]), tonumber(args[2]), args[3], tonumber(args[4])
  local project, credential = args[5], args[6]
  local l = {struct.unpack(LIMITS, args[7])}
  local raw = redis.call('HMGET', keys[1], 'o', project, credential)
  local c = {open(raw[1], now), open(raw[2], now), open(raw[3], now)}
  local slots = {0, 0, 0}
  local is_mine
  slots[1], slots[2], slots[3], is_mine = count_leases(keys[2], now, lease, project, credential)
  local scope, metric, wait = 0, 0, 0
  if not is_mine then
    for m = 1, 4 do
      local cost = m < 3 and 1 or tokens
      local unit = m < 3 and 1 or 2
      local is_minute = m == 1 or m == 3
      for s = 1, 3 do
        local counters = c[s]
        local used = counters[(is_minute and 2 or 4) + unit]
        local excess = used + cost - l[(s - 1) * 5 + m]
        if excess > 0 then
          local w
          if is_minute then w = wait_for(counters[11], counters[7], counters[8], excess, unit, now, SECOND_MS, MINUTE_MS)
          else w = wait_for(counters[11], counters[9], counters[10], excess, unit, now, HOUR_MS, DAY_MS) end
          if w > wait then scope, metric, wait = s, m, w end
        end
      end
    end
    if scope == 0 then
      for s = 3, 1, -1 do
        if scope == 0 and slots[s] >= l[s * 5] then scope, metric, wait = s, 5, 1000 end
      end
    end
    if scope == 0 then
      local hours, minutes = c[1][2], c[1][1]
      redis.call('HSET', keys[1], 'o', add(c[1], now, 1, tokens), project, add(c[2], now, 1, tokens),
        credential, add(c[3], now, 1, tokens))
      local is_new_hour = c[1][2] > hours
      if is_new_hour then redis.call('PEXPIRE', keys[1], KEPT_MS) end
      if lease_ms > 0 then
        redis.call('ZADD', keys[2], now + lease_ms, lease .. '|' .. project .. '|' .. credential .. '|')
        if is_new_hour or slots[1] == 0 then redis.call('PEXPIRE', keys[2], KEPT_MS) end
        for s = 1, 3 do slots[s] = slots[s] + 1 end
        -- At most once a second: what has ended is of no use to anybody.
        if c[1][1] > minutes then redis.call('ZREMRANGEBYSCORE', keys[2], '-inf', '(' .. now) end
      end
    end
  end
  return struct.pack(VERDICT, scope == 0 and 1 or 0, scope, metric, now, wait,
    c[1][3], c[1][5], c[1][4], c[1][6], slots[1], c[2][3], c[2][5], c[2][4], c[2][6], slots[2],
    c[3][3], c[3][5], c[3][4], c[3][6], slots[3])
end

-- Takes tokens out of the bucket with this id, if it is still there, and never more than it holds: where
-- the bucket is, its new bytes, and how much was taken. The newest come first: most calls are short.
local function take_from(raw, from, to, id, tokens)
  local place = to - BUCKET_BYTES
  while place >= from do
    local found, requests, held = struct.unpack(BUCKET, raw, place)
    if found == id then
      local taken = math.min(held, tokens)
      return place, struct.pack(BUCKET, id, requests, held - taken), taken
    end
    if found < id then break end
    place = place - BUCKET_BYTES
  end
  return to, '', 0
end

local function give_back(raw, at, tokens)
  local minutes, hours, mr, mt, dr, dt = struct.unpack(HEAD, raw)
  local first = HEAD_BYTES + 1
  local middle = first + minutes * BUCKET_BYTES
  local last = middle + hours * BUCKET_BYTES
  local place_m, minute, of_minute = take_from(raw, first, middle, math.floor(at / SECOND_MS), tokens)
  local place_h, hour, of_day = take_from(raw, middle, last, math.floor(at / HOUR_MS), tokens)
  return struct.pack(HEAD, minutes, hours, mr, mt - of_minute, dr, dt - of_day)
    .. string.sub(raw, first, place_m - 1) .. minute
    .. string.sub(raw, place_m + #minute, place_h - 1) .. hour .. string.sub(raw, place_h + #hour)
end

-- ARGV: now or 0, lease, reserved, used, time of admission, project field, key field.
local function settle(keys, args)
  local now, project, credential = clock(args[1]), args[6], args[7]
  local name = args[2] .. '|' .. project .. '|' .. credential .. '|'
  local ends = redis.call('ZSCORE', keys[2], name)
  local held = 0
  if ends then
    if tonumber(ends) >= now then held = 1 end
    redis.call('ZREM', keys[2], name)
  end
  local difference = tonumber(args[4]) - tonumber(args[3])
  if difference == 0 or (difference < 0 and held == 0) then return held end
  local fields = {'o', project, credential}
  local raw = redis.call('HMGET', keys[1], fields[1], fields[2], fields[3])
  local changed = {}
  for s = 1, 3 do
    local bytes
    if difference > 0 then bytes = add(open(raw[s], now), now, 0, difference)
    elseif raw[s] then bytes = give_back(raw[s], tonumber(args[5]), -difference) end
    if bytes then changed[#changed + 1] = fields[s]; changed[#changed + 1] = bytes end
  end
  if #changed > 0 then redis.call('HSET', keys[1], unpack(changed)) end
  if difference > 0 then redis.call('PEXPIRE', keys[1], KEPT_MS) end
  return held
end

-- ARGV: now or 0, lease ms, then names of leases. One that was lost is taken again: its call is running.
local function renew(keys, args)
  local now, lease_ms, held = clock(args[1]), tonumber(args[2]), 0
  for i = 3, #args do
    local ends = redis.call('ZSCORE', keys[2], args[i])
    if ends and tonumber(ends) >= now then held = held + 1 end
    redis.call('ZADD', keys[2], now + lease_ms, args[i])
  end
  redis.call('PEXPIRE', keys[2], KEPT_MS)
  return held
end

local KNOWN = '<I6I4I6I4I6'

-- Two sorted lists of buckets as one; what both have is added up.
local function merge(a, from_a, to_a, b, from_b, to_b)
  local parts, count = {}, 0
  while from_a < to_a or from_b < to_b do
    local id_a, ra, ta = math.huge, 0, 0
    local id_b, rb, tb = math.huge, 0, 0
    if from_a < to_a then id_a, ra, ta = struct.unpack(BUCKET, a, from_a) end
    if from_b < to_b then id_b, rb, tb = struct.unpack(BUCKET, b, from_b) end
    local id = math.min(id_a, id_b)
    if id_a > id then ra, ta = 0, 0 else from_a = from_a + BUCKET_BYTES end
    if id_b > id then rb, tb = 0, 0 else from_b = from_b + BUCKET_BYTES end
    count = count + 1
    parts[count] = struct.pack(BUCKET, id, ra + rb, ta + tb)
  end
  return table.concat(parts)
end

-- What is known of a scope that is not there any more, in one bucket; nothing if it has left the window.
local function missing(id, dead, requests, tokens)
  if id <= dead or (requests == 0 and tokens == 0) then return '' end
  return struct.pack(BUCKET, id, requests, tokens)
end

local function sums(buckets)
  local requests, tokens = 0, 0
  for place = 1, #buckets, BUCKET_BYTES do
    local _, r, t = struct.unpack(BUCKET, buckets, place)
    requests = requests + r; tokens = tokens + t
  end
  return requests, tokens
end

-- ARGV: now or 0, then in threes: a field, the counters to add, what was known before ('' if nothing).
local function absorb(keys, args)
  local now = clock(args[1])
  for i = 2, #args, 3 do
    local raw = redis.call('HGET', keys[1], args[i])
    local mine = open(raw, now)
    local more = open(args[i + 1], now)
    local minutes = string.sub(mine[11], mine[7], mine[8] - 1)
    local hours = string.sub(mine[11], mine[9], mine[10] - 1)
    if not raw and args[i + 2] ~= '' then
      local at, mr, mt, dr, dt = struct.unpack(KNOWN, args[i + 2])
      minutes = missing(math.floor(at / SECOND_MS), (now - MINUTE_MS) / SECOND_MS - 1, mr, mt)
      hours = missing(math.floor(at / HOUR_MS), (now - DAY_MS) / HOUR_MS - 1, dr, dt)
    end
    minutes = merge(minutes, 1, #minutes + 1, more[11], more[7], more[8])
    hours = merge(hours, 1, #hours + 1, more[11], more[9], more[10])
    local mr, mt = sums(minutes)
    local dr, dt = sums(hours)
    if #hours > 0 then
      redis.call('HSET', keys[1], args[i],
        struct.pack(HEAD, #minutes / BUCKET_BYTES, #hours / BUCKET_BYTES, mr, mt, dr, dt) .. minutes .. hours)
    end
  end
  redis.call('PEXPIRE', keys[1], KEPT_MS)
  return 1
end
